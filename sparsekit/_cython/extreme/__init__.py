"""Kernels of one wing: softmax over very many classes."""
