"""Kernels of `sparsekit.datasets`: files of data sets."""
