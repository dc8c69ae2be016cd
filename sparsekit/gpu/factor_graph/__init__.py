"""CUDA versions of kernels of one wing: LP-SparseMAP in factor graphs."""
