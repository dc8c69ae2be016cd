"""Kernels of several wings."""
