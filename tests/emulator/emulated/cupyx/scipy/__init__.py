"""SciPy's functions on device arrays: sparse matrices, triangular systems and functions of each entry."""
