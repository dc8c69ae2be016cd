"""CUDA versions of the kernels in ``sparsekit._cython``: same folders, modules and names, for CuPy arrays.

Arguments are the same, too, except for workspace, parts and threads, which a GPU does not need. Kernels whose
steps wait for each other are in main memory only.

Formulas for each entry are CuPy's ElementwiseKernel, over the headers of ``_scalar``. Array expressions call
CuPy's libraries. CUDA C of this folder is for the rest, and for sums whose order must be fixed. It is
compiled when first used (`sparsekit.gpu.shared._compile`). Nothing here imports CuPy before a function gets
its arrays.
"""
