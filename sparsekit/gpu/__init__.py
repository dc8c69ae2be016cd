"""CUDA twins of the kernels in ``sparsekit._cython``: same modules, names and arguments, for CuPy arrays.

Each module loads its CUDA C source from the ``.cu`` file of its name and compiles it when first used
(`sparsekit.gpu._compile`). Nothing here imports CuPy before a function is called with its arrays.
"""

# functions of sparsekit._cython that have no twin here, and why
NOT_HERE: dict[str, str] = {}
