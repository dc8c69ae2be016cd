"""CUDA versions of kernels of one wing: sparsemax and softmax regression."""
