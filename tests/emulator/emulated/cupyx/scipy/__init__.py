"""SciPy's functions on device arrays: sparse matrices and triangular systems."""
