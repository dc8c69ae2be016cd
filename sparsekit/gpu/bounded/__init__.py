"""CUDA versions of kernels of one wing: NQN and models with bounded coefficients."""
