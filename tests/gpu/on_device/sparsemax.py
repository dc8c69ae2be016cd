"""sparsemax forward for rows of 10^2 to 2^20 scores, with PyTorch's softmax, a sort and a Triton kernel."""

from __future__ import annotations

import numpy as np

from .options import benchmark_helpers

TASK_LIMIT, AT_ONCE = 30, False
WIDTHS = (100, 1000, 1024, 4096, 16384, 131072, 1 << 20)
NBYTES = 256 << 20  # of an input, float32
ERROR = 1e-5  # largest difference from the CPU's probabilities
# The Triton kernel holds a row in registers; longer ones take minutes to compile.
TRITON_WIDTH = 16384


def tasks(options):
    return [f"K={K}" for K in options.widths or options.size(WIDTHS, (100, 2048))]


def _sorted_sparsemax(torch, z):
    """The definition of sparsemax by a sort, as one writes it in PyTorch."""
    u = torch.sort(z, dim=-1, descending=True).values
    above = u.cumsum(-1) - 1.0
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    count = (u * k > above).sum(-1, keepdim=True)
    return torch.clamp(z - above.gather(-1, count - 1) / count, min=0.0)


def _peers(K):
    """Name -> map of a tensor, for what is installed, and why others are left out."""
    try:
        import torch
    except ImportError as error:
        return None, {}, {"PyTorch": str(error)}
    if not torch.cuda.is_available():
        return None, {}, {"PyTorch": "it finds no CUDA device"}
    found = {"torch.softmax": lambda x: torch.softmax(x, -1),
             "torch, by a sort": lambda x: _sorted_sparsemax(torch, x)}  # fmt: skip
    if K > TRITON_WIDTH:
        return torch, found, {"Triton": f"a row of {K} scores does not fit into its registers"}
    try:
        import _triton_sparsemax
    except ImportError as error:
        return torch, found, {"Triton": str(error)}
    return torch, {**found, "Triton": _triton_sparsemax.sparsemax}, {}


def run(task, options):
    """Time by events, and the part of the copy's bandwidth, of each; the first rows against the CPU's."""
    import sparsekit

    cupy, gpu = options.cupy(), benchmark_helpers()
    K = int(task.removeprefix("K="))
    if K < 1:
        raise ValueError(f"a row has at least 1 score; got K={K}")
    n = max(1, options.size(NBYTES, 1 << 14) // (4 * K))
    nbytes = 2 * 4 * n * K
    bandwidth = gpu.copy_bandwidth(cupy, options.size(1 << 30, 1 << 16))
    rng = cupy.random.default_rng(0)
    sets = options.size(gpu.sets_beyond_cache(cupy, nbytes // 2), 1)
    inputs = [rng.standard_normal((n, K)).astype(np.float32) for _ in range(sets)]
    out = cupy.empty((n, K), dtype=np.float32)

    def ours(z):
        sparsekit.sparsemax(z, out=out)

    times = {"sparsekit": gpu.seconds(cupy, ours, [(z,) for z in inputs])}
    few = inputs[0][: max(1, 65536 // K)]
    error = float(abs(sparsekit.sparsemax(few).get() - sparsekit.sparsemax(few.get())).max())
    if not error <= ERROR:
        raise AssertionError(f"the device's probabilities differ from the CPU's by {error:.3g}")
    if bool((sparsekit.sparsemax(few) != sparsekit.sparsemax(few)).any()):
        raise AssertionError("two equal calls give other bits")
    torch, peers, left_out = _peers(K)
    for name, call in peers.items():
        try:
            times[name] = gpu.seconds(cupy, call, [(torch.from_dlpack(z),) for z in inputs])
        except Exception as problem:  # peers refuse sizes in many ways
            left_out[name] = f"{type(problem).__name__}: {str(problem)[:200]}"
    return {
        "shape": [n, K],
        "microseconds": {name: round(1e6 * seconds, 1) for name, seconds in times.items()},
        "part_of_copy": {name: round(nbytes / seconds / bandwidth, 3) for name, seconds in times.items()},
        "copy_gb_per_s": round(bandwidth / 1e9, 1),
        "error": error,
        "left_out": left_out,
    }
