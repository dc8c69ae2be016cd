"""CUDA versions of kernels of one wing: L1-regularised models by OBA."""
