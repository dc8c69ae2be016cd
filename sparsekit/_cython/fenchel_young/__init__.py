"""Kernels of one wing: sparsemax and softmax regression."""
