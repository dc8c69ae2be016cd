"""Kernels of one wing: LP-SparseMAP in factor graphs."""
