"""Sparsemax on a GPU against softmax, PyTorch's, entmax's, adasplash's and a Triton kernel, and a copy.

    python benchmarks/gpu_sparsemax.py --markdown gpu_sparsemax.md

Standard normal scores times ``--scales``. Ours writes to an array that stands, peers to memory from PyTorch's
cache. Inputs are so large that a call's start does not count, and are taken in turn. Bytes: scores read once
and probabilities written once (forward); probabilities, direction and product (backward).
"""

from __future__ import annotations

import functools
import itertools
import sys

import _common
import _gpu
import numpy as np

import sparsekit

parser = _common.make_parser(__doc__)
parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1.0, 10.0])
parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
parser.add_argument(
    "--widths", type=int, nargs="+",
    default=[2, 8, 32, 33, 64, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 100_000, 1_000_000],
)  # fmt: skip
parser.add_argument("--mib", type=int, default=1024, help="size of an input")


def importable():
    """Name -> map from a tensor to its probabilities, for the peers that are installed."""
    found = {}
    try:
        import torch
    except ImportError:
        print("without PyTorch, entmax, adasplash and Triton: PyTorch is not installed")
        return None, found
    found["torch.softmax"] = lambda x: torch.softmax(x, -1)
    try:
        import entmax

        found["entmax (sort)"] = lambda x: entmax.sparsemax(x, -1)
        found["entmax (top-k)"] = lambda x: entmax.sparsemax(x, -1, k=min(100, x.shape[-1]))
    except ImportError:
        print("without entmax: not installed")
    try:
        from adasplash import triton_sparsemax

        found["adasplash"] = triton_sparsemax
    except ImportError as error:
        print(f"without adasplash: {error}")
    try:
        import _triton_sparsemax

        found["Triton"] = _triton_sparsemax.sparsemax
    except ImportError as error:
        print(f"without Triton: {error}")
    try:
        from sparsekit.torch import sparsemax

        found["sparsekit.torch"] = sparsemax
    except ImportError as error:
        print(f"without sparsekit.torch: {error}")
    return torch, found


def forward(inputs, out, torch, peers):
    """Name -> function and the sets of its arguments."""
    calls = {"sparsekit": (lambda z: sparsekit.sparsemax(z, out=out), [(z,) for z in inputs])}
    for name, f in peers.items():
        calls[name] = f, [(torch.from_dlpack(z),) for z in inputs]
    return calls


def backward(inputs, out, torch, peers):
    """The same for products with the Jacobian, of graphs that stand."""
    pairs = [(sparsekit.sparsemax(z), z) for z in inputs]
    calls = {"sparsekit": (lambda p, v: sparsekit.sparsemax_jvp(p, v, out=out), pairs)}
    for name, f in peers.items():
        leaves = [torch.from_dlpack(z).clone().requires_grad_() for z in inputs]
        graphs = timed(name, lambda f=f, leaves=leaves: [(f(x), x, x.detach()) for x in leaves])
        if graphs is not None:
            calls[name] = lambda y, x, g: torch.autograd.grad(y, x, g, retain_graph=True), graphs
    return calls


def timed(name, call):
    """What ``call`` returns, or None for a peer that cannot work such inputs, with the reason printed."""
    try:
        return call()
    except Exception as error:  # they fail in many ways, at sizes that they do not say
        if name.startswith("sparsekit"):
            raise
        print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        return None


def rows(make, cupy, bandwidth, args):
    """Rows of a table: ours and the peers' time of ``make``'s functions."""
    torch, peers = importable()
    for dtype, K, scale in itertools.product(args.dtypes, args.widths, args.scales):
        size = np.dtype(dtype).itemsize
        n = max(1, (args.mib << 20) // (K * size))
        rng = cupy.random.default_rng(0)
        sets = _gpu.sets_beyond_cache(cupy, n * K * size)
        inputs = [(scale * rng.standard_normal((n, K))).astype(dtype) for _ in range(sets)]
        nbytes = (2 if make is forward else 3) * n * K * size
        ours = None
        for name, (f, given) in make(inputs, cupy.empty((n, K), dtype), torch, peers).items():
            seconds = timed(name, functools.partial(_gpu.seconds, cupy, f, given))
            if seconds is None:
                continue
            ours = ours or seconds
            cells = _gpu.row(name, seconds, nbytes, bandwidth)
            yield [f"{n}x{K}", dtype, f"{scale:g}", *cells, f"{seconds / ours:.2f}"]


def main():
    tables = [
        (["shape", "dtype", "scale", kind, "time", "floor", "bytes/s", "of copy", "time / ours"], measure)
        for kind, measure in (
            ("forward", functools.partial(rows, forward)),
            ("backward", functools.partial(rows, backward)),
        )
    ]
    return _gpu.report("Sparsemax", parser.parse_args(), tables)


if __name__ == "__main__":
    sys.exit(main())
