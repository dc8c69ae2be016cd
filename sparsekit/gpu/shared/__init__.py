"""CUDA versions of kernels of several wings."""
