"""Kernels of one wing: L1-regularised models by OBA."""
