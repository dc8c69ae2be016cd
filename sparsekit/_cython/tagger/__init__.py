"""Kernels of one wing: labels of sequences."""
