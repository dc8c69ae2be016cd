"""Kernels of one wing: NQN and models with bounded coefficients."""
