"""NQN and the bounded models on a GPU: kernels against their floors, runs against the CPU's.

    python benchmarks/gpu_nqn.py --n-threads 2 --markdown gpu_nqn.md

A kernel's floor is the time to read its inputs and write its outputs once, at a copy's bandwidth. Kernels
that return a number include the wait for it. A run is timed from arrays on the device to the solution there.
The GPU pays from the size at which the ratio stays above 1.
"""

from __future__ import annotations

import sys

import _common
import _gpu
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds

from sparsekit import BoundedClassifier, BoundedRegressor, minimize_nqn

# rows, columns, and entries of a row (0: dense)
FITS = [(10_000, 50, 0), (100_000, 200, 0), (1_000_000, 500, 0), (20_000, 20_000, 60), (500_000, 50_000, 80)]


def kernels(cupy, bandwidth, args):
    """Rows of the first table: passes over the pairs, the box and the losses' rows."""
    from sparsekit.gpu.bounded import _row_losses
    from sparsekit.gpu.shared import _box, _pairs

    memory = args.memory
    for n in args.sizes:
        x, g, p, out = (cupy.random.standard_normal(n) for _ in range(4))
        low, high = cupy.full(n, -1.0), cupy.full(n, 1.0)
        pairs, every = _pairs.Pairs(n, memory), cupy.ones(n, dtype=np.uint8)
        few = (cupy.random.random(n) < 0.99).astype(np.uint8)
        pairs.set_free(every)
        for k in range(memory):
            pairs.put(x, x + g, g, g + (1.0 + k) * g)
        wide = 16 * n * memory  # W once
        for name, call, inputs, nbytes in (
            ("put", pairs.put, [(x, p, g, 3.0 * p - 2.0 * x)], 2 * wide + 48 * n),
            ("set_free, 1 % change", pairs.set_free, [(few,), (every,)], 0.01 * wide + 5 * n),
            ("set_free, all change", pairs.set_free, [(1 - every,), (every,)], 0.5 * wide + 5 * n),
            ("direction", pairs.direction, [(g, 1.0, out)], 2 * wide + 26 * n),
            ("feasible_part", _box.feasible_part, [(x, p, g, low, high, out)], 48 * n),
            ("longest_step", _box.longest_step, [(x, p, low, high)], 32 * n),
            ("pair_norms", _pairs.pair_norms, [(x, p, g, out)], 32 * n),
            ("log_loss_all", _row_losses.log_loss_all, [(x, low, low, high, g, p, out)], 56 * n),
            ("piecewise_all", _row_losses.piecewise_all,
             [(x, low, None, high, None, -1.0, 1.0, 0.0, 0.1, g, p, out)], 48 * n),
        ):  # fmt: skip
            t = _gpu.seconds(cupy, call, inputs)
            yield _gpu.row(f"{name}, n = {n}", t, nbytes, bandwidth)


def chain(x):
    """sum |x_i - x_(i+1)| + (x_i - 1)^2 / 2 and its gradient: cheap, so that the solver is what is timed."""
    d, r = np.diff(x), x - 1.0
    g, s = r.copy(), np.sign(d)
    g[1:] += s
    g[:-1] -= s
    return float(np.sum(np.abs(d)) + 0.5 * np.sum(r * r)), g


def runs(cupy, bandwidth, args):
    """Rows of the second table: seconds an iteration of NQN."""
    options = dict(jac=True, bounds=Bounds(-1.0, 0.5), max_iter=args.iterations, ftol=-1.0, gtol=0.0)
    for n in args.sizes:
        x0, seconds = np.random.default_rng(0).standard_normal(n), []
        for x in (x0, cupy.asarray(x0)):
            t, result = _gpu.median_seconds(cupy, lambda x=x: minimize_nqn(chain, x, **options), 2)
            seconds.append(t / max(result.nit, 1))
        slow, fast = seconds
        yield [f"n = {n}", f"{1e3 * slow:.2f} ms", f"{1e3 * fast:.2f} ms", f"{slow / fast:.2f}"]


def fits(cupy, bandwidth, args):
    """Rows of the third table."""
    for n, p, entries in FITS[: args.fits]:
        rng = np.random.default_rng(0)
        X = (
            sp.random(n, p, entries / p, "csr", np.float32, rng)
            if entries
            else rng.random((n, p), np.float32)
        )
        z = X @ rng.standard_normal(p) + rng.standard_normal(n)
        device = _gpu.to_device(cupy, X)
        for cls, loss, y in (
            (BoundedRegressor, "absolute", z),
            (BoundedRegressor, "squared", z),
            (BoundedClassifier, "log_loss", (z > np.median(z)).astype(np.int64)),
            (BoundedClassifier, "hinge", (z > np.median(z)).astype(np.int64)),
        ):
            options = dict(loss=loss, bounds=(0.0, None), alpha=1e-4, max_time=args.max_time)
            there = device, cupy.asarray(y)
            slow, here, fast, there = _gpu.fit_twice(cupy, cls, options, (X, y), there, args)
            gap = float(np.max(np.abs(there.objective_ / here.objective_ - 1.0)))
            cells = [f"{loss}, {n} x {p}" + (f", {entries} a row" if entries else "")]
            cells += [f"{slow:.3f} s", f"{fast:.3f} s", f"{slow / fast:.2f}", f"{gap:.1e}"]
            cells += [f"{there.optimality_:.1e}"]
            yield cells


def main():
    parser = _common.make_parser(__doc__)
    _gpu.add_fits(parser)
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    add("--fits", type=int, default=len(FITS), help="how many of the fits' problems")
    add("--memory", type=int, default=20)
    add("--iterations", type=int, default=50)
    tables = [
        (_gpu.KERNELS, kernels),
        (["iteration of NQN", "CPU", "GPU", "CPU / GPU"], runs),
        (["fit", "CPU", "GPU", "CPU / GPU", "objective's difference", "gap there"], fits),
    ]
    return _gpu.report("NQN and bounded models", parser.parse_args(), tables)


if __name__ == "__main__":
    sys.exit(main())
