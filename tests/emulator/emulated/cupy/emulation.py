"""What the emulated device did, and how it is told to behave. Real CuPy has no such module."""

# syncs: the host waited for the device (get, item, bool, float, a boolean mask's count ...)
# launches: kernels started; uploads: host arrays copied to the device; allocations: device arrays made
counts = {"syncs": 0, "launches": 0, "uploads": 0, "allocations": 0}


def reset():
    """Set all counts to 0."""
    for name in counts:
        counts[name] = 0


def seed(n):
    """Order in which blocks and threads take turns: 0 ascending, 1 descending, else drawn at barriers."""
    import cuda_build

    cuda_build.seed(n)
