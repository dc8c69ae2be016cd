"""CUDA versions of kernels of one wing: softmax over very many classes."""
