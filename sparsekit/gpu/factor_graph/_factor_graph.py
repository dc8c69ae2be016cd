"""LP-SparseMAP inference in factor graphs on a GPU: versions of those in ``_cython``.

One launch solves a batch, a block a graph: a block ends when its graph is solved, whatever the others do.
Every sum is in a fixed order, so runs repeat bit by bit. Factors with a MAP oracle are not here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array, DeviceArray
from ..shared._compile import THREADS, elementwise, kernel, largest_shared
from ..shared._reduce import WARP

_PAIRS = "float64 first, float64 second, T not_first, T not_second, float64 score"
_BOTH = "both = sk_pair_both(not_first ? 1.0 - first : first, not_second ? 1.0 - second : second, score)"


def pair_entries(*pairs: DeviceArray) -> DeviceArray:
    """N p of pairs: marginals of their two variables, whether these are negated, scores of both on."""
    return elementwise(_PAIRS, "float64 both", _BOTH, "sk_pair_entries", "pair.h")(*pairs)


def shared_bytes() -> int:
    """Bytes of shared memory that a block may have for a state: two blocks fit a multiprocessor."""
    # less what kernels have of their own
    return largest_shared() // 2 - 4096


def count_threads(n_slots: int) -> int:
    """Threads of the block that works at a graph of so many slots."""
    threads = WARP
    while threads < THREADS and 4 * threads < n_slots:
        threads *= 2
    return threads


class Plan:
    """A graph without its scores, on the current device.

    Parameters
    ----------
    n_var, n_add : int
    arrays : dict
        The NumPy arrays that the CPU version takes.
    structured : list
        Factors with an oracle: none.
    """

    def __init__(
        self, n_var: int, n_add: int, arrays: dict[str, Array], structured: list[dict[str, Any]]
    ) -> None:
        import cupy

        if structured:
            names = sorted({given["name"] for given in structured})
            raise TypeError(
                f"factors with a MAP oracle are not solved on a GPU; got {', '.join(names)}. Pass NumPy "
                "scores (cupy.asnumpy), which are solved in main memory."
            )
        # all arrays but those of counts have one entry more than they need
        ints = {name: arrays[name][:-1] for name in ("var", "var_slot", "pair_add", "relation", "negated")}
        deg, n_pair = arrays["deg"][:-1], len(ints["pair_add"])
        linear, orout = arrays["linear"], arrays["orout"]
        lengths = np.concatenate([np.diff(linear), np.diff(orout)])
        # a warp works at a linear factor or an OrOut where its lanes have an entry each, else a thread
        lanes = WARP if len(lengths) and lengths.mean() >= WARP else 1
        self.n_var, self.n_add, self.n_slot, self.n_pair = n_var, n_add, len(deg), n_pair
        n_closed = len(lengths)
        counts = [
            n_var,
            self.n_slot,
            n_add,
            n_pair,
            len(linear) - 1,
            len(orout) - 1,
            deg.max(initial=0) <= 1,
            lanes,
        ]
        parts = [
            ints["var"], arrays["var_start"], ints["var_slot"], ints["pair_add"], linear, ints["relation"],
            orout, ints["negated"],
        ]  # fmt: skip
        reals = [arrays[name][:-1] for name in ("deg", "w", "a", "ad")]
        reals += [1.0 / (deg[:n_pair] + deg[n_pair : 2 * n_pair]), arrays["bound"][:-1]]
        self.arrays = (
            cupy.asarray(np.array(counts, dtype=np.int64)),
            cupy.asarray(np.concatenate(parts).astype(np.int32)),
            cupy.asarray(np.concatenate([*reals, [0.0]])),
        )
        self.n_threads = count_threads(self.n_slot)
        # the variables of pairs, first ones and second ones, and which of them are negated
        both = slice(2 * n_pair)
        self.pair_var, self.pair_negated = (
            cupy.asarray(ints[name][both].reshape(2, n_pair)) for name in ("var", "negated")
        )
        self.pair_add = cupy.asarray(ints["pair_add"])
        # factor_graph.cuh has the state's arrays in this order
        sizes = {"eta": n_var, "mu": n_var, "add": n_add, "x": self.n_slot, "l": self.n_slot}
        sizes |= {"f": self.n_slot, "e": self.n_slot, "c": n_pair}
        self.slices: dict[str, slice] = {}
        at = 0
        for name, size in sizes.items():
            self.slices[name] = slice(at, at + size)
            at += size
        # doubles of a state, as factor_graph.cuh arranges them
        self.stride = 11 * n_var + 2 * n_add + 8 * self.n_slot + 2 * n_pair + 2 * n_closed
        self.oracles: list[object] = []

    @property
    def n_shared(self) -> int:
        """Doubles of a state that lies in shared memory while it is worked at, or 0."""
        return self.stride if 8 * self.stride <= shared_bytes() else 0


class States:
    """What is known of the solutions of ``n`` graphs of one plan: scores, answers, multipliers, Jacobians."""

    def __init__(self, plan: Plan, n: int) -> None:
        import cupy

        self.plan, self.n = plan, n
        self.block = cupy.zeros((n, plan.stride))
        self.off = cupy.zeros((n, plan.n_var + plan.n_add), dtype=np.uint8)
        self.whole = cupy.zeros((n, 3), dtype=np.int64)
        self.levels = cupy.zeros((n, 4))

    def _part(self, name: str) -> DeviceArray:
        return self.block[:, self.plan.slices[name]]

    def _check(self, first: DeviceArray, second: DeviceArray, what: str) -> None:
        if first.shape != (self.n, self.plan.n_var) or second.shape != (self.n, self.plan.n_add):
            raise ValueError(f"{what} do not have the shape of the states")

    def set_scores(self, eta: DeviceArray, add: DeviceArray, off: DeviceArray, off_add: DeviceArray) -> None:
        """Scores of the variables (n, n_var) and the additional ones (n, n_add), and which of them forbid."""
        self._check(eta, add, "scores")
        self._check(off, off_add, "flags")
        self._part("eta")[...] = eta
        self._part("add")[...] = add
        self.off[:, : self.plan.n_var] = off
        self.off[:, self.plan.n_var :] = off_add

    def marginals(self) -> DeviceArray:
        """mu (n, n_var)."""
        return self._part("mu").copy()

    def additionals(self) -> DeviceArray:
        """N p of all factors, (n, n_add)."""
        import cupy

        out = cupy.zeros((self.n, self.plan.n_add))
        if out.size:
            mu, var, negated = self._part("mu"), self.plan.pair_var, self.plan.pair_negated
            pairs = mu[:, var[0]], mu[:, var[1]], negated[0], negated[1], self._part("c")
            out[:, self.plan.pair_add] = pair_entries(*pairs)
        return out

    def copies(self, i: int) -> DeviceArray:
        """Local solutions x of graph i, (n_slot,)."""
        return self._part("x")[i].copy()

    def report(self) -> dict[str, DeviceArray]:
        """Arrays (n,): status, n_iter, n_newton, primal, dual, step_size, n_fallbacks (always 0)."""
        names = ("status", "n_iter", "n_newton", "primal", "dual", "step_size")
        both = [self.whole[:, k] for k in range(3)] + [self.levels[:, k] for k in range(3)]
        found = {name: values.copy() for name, values in zip(names, both)}
        return found | {"n_fallbacks": np.zeros_like(found["status"])}

    def _launch(self, name: str, *args: object) -> None:
        plan = self.plan
        if not self.n:
            return
        shared = plan.n_shared
        launch = kernel("factor_graph/factor_graph", f"sk_factor_graph_{name}")
        fixed = (*plan.arrays, self.block, plan.stride, self.off)
        launch(self.n, plan.n_threads, (*fixed, *args), shared=8 * shared)

    def vjp(self, to_eta: DeviceArray, to_add: DeviceArray) -> None:
        """to_eta (n, n_var) holds directions d, and becomes the gradients of <d, mu>; likewise to_add."""
        self._check(to_eta, to_add, "directions")
        if self.plan.n_var:
            self._launch("vjp", to_eta, to_add, self.plan.n_shared)

    def jvp(self, d_eta: DeviceArray, d_add: DeviceArray) -> DeviceArray:
        """How mu (n, n_var) moves with the scores."""
        import cupy

        self._check(d_eta, d_add, "directions")
        out = cupy.empty((self.n, self.plan.n_var))
        if self.plan.n_var:
            self._launch("jvp", d_eta, d_add, out, self.plan.n_shared)
        return out


def solve(batches: list[States], options: dict[str, float], warm: bool) -> None:
    """Solve all graphs of a list of `States`; options are fg_options' fields."""
    if options["max_time"] < float("inf"):
        raise ValueError("max_time is for graphs in main memory: a kernel on the GPU reads no clock")
    import cupy

    # in the order of factor_graph.cu
    switches = [int(options[name]) for name in ("max_iter", "adaptive", "exact", "quadratic")]
    flags = cupy.asarray(np.array([bool(warm), *switches], dtype=np.int64))
    limits = [float(options[name]) for name in ("step_size", "relaxation", "tol_primal", "tol_dual")]
    limits = cupy.asarray(np.array(limits))
    for batch in batches:
        batch._launch("solve", batch.whole, batch.levels, batch.plan.n_shared, flags, limits)
