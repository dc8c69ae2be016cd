"""LP-SparseMAP: options and exits of a solve, and the kernels' plan of a graph's factors."""

import threading
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from .._arrays import is_device, kernel_module, namespace
from .._cython._factor_graph import Plan
from .._messages import shown
from .._solver import outcome

MESSAGES = outcome.messages(
    "the residual is at most the tolerance",
    max_iter="Stopped at max_iter before the residual reached the tolerance.",
    infeasible="Infeasible: no assignment satisfies all factors (certified by a separating direction).",
)


@dataclass
class GraphOptions:
    """How a graph is solved.

    Parameters
    ----------
    max_iter : int
        Largest number of passes over the factors.
    step_size : float
        gamma of Algorithm 1 at the start.
    adaptive : bool
        Whether gamma follows the ratio of the residuals.
    relaxation : float
        Between 0 and 2; 1 is Algorithm 1.
    tol_primal, tol_dual : float
        Where the iteration ends: norm of the disagreement, norm of the last change of mu.
    inner_iter : int
        Most calls of a MAP oracle in one local problem of an iteration.
    exact : bool
        Whether Newton's method on the dual finds the solution once the iteration is near.
    quadratic : bool
        Whether there is the term of eq. (10); without it the problem is LP-MAP.
    """

    max_iter: int = 2000
    step_size: float = 5.0
    adaptive: bool = True
    relaxation: float = 1.6
    tol_primal: float = 1e-11
    tol_dual: float = 1e-9
    inner_iter: int = 10
    exact: bool = True
    quadratic: bool = True

    def __post_init__(self):
        for name, least in (("max_iter", 1), ("inner_iter", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}; got {shown(value)}")
        for name in ("step_size", "tol_primal", "tol_dual"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < value < np.inf:
                raise ValueError(f"{name} must be a finite number > 0; got {shown(value)}")
        if not isinstance(self.relaxation, Real) or not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation must be between 0 and 2; got {shown(self.relaxation)}")
        for name in ("adaptive", "exact"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False; got {shown(getattr(self, name))}")


class Layout:
    """Which factor lies where: slots by kind, additional scores in the order of the factors.

    Parameters
    ----------
    n_variables : int
    factors : list
        Factors, as in :mod:`sparsekit._factor_graph.factors`.
    """

    def __init__(self, n_variables, factors):
        by_kind = {kind: [] for kind in ("pair", "linear", "orout", "structured")}
        self.add_start, self.slot_start = {}, {}
        n_add = 0
        for factor in factors:
            by_kind[factor._kind].append(factor)
            self.add_start[id(factor)] = n_add
            n_add += factor.n_additional
        self.n_variables, self.n_additional = n_variables, n_add
        self.structured_place = {id(factor): k for k, factor in enumerate(by_kind["structured"])}
        parts, a_parts, negated_parts, slot = [], [], [], 0

        def place(index, a=None, negated=None):
            nonlocal slot
            flat = index.ravel()
            parts.append(flat)
            a_parts.append(np.zeros(len(flat)) if a is None else a.ravel())
            negated_parts.append(np.zeros(len(flat), dtype=np.int32) if negated is None else negated.ravel())
            slot += len(flat)

        pairs = [factor.index for factor in by_kind["pair"]]
        ends = np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.int64)
        place(np.ascontiguousarray(ends.T))
        flips = np.concatenate(
            [*(factor.negated for factor in by_kind["pair"]), np.zeros((0, 2), dtype=bool)]
        )
        pair_add, first = [], 0
        for factor in by_kind["pair"]:
            self.slot_start[id(factor)] = first
            first += len(factor.index)
            start = self.add_start[id(factor)]
            pair_add.append(np.arange(start, start + len(factor.index)))
        self.n_pairs = len(ends)
        lines, relation, bound = [slot], [], []
        for factor in by_kind["linear"]:
            self.slot_start[id(factor)] = slot
            a, b = factor._constraint()
            lines.extend(slot + factor.index.shape[1] * np.arange(1, len(b) + 1))
            relation.append(np.full(len(b), factor._relation))
            bound.append(b)
            place(factor.index, a)
        orouts = [slot]
        for factor in by_kind["orout"]:
            self.slot_start[id(factor)] = slot
            n, d = factor.index.shape
            orouts.extend(slot + d * np.arange(1, n + 1))
            a = np.ones((n, d))
            a[:, -1] = -1.0
            place(factor.index, a, factor.negated)
        structured = []
        for factor in by_kind["structured"]:
            self.slot_start[id(factor)] = slot
            fields = dict(flag=0, sizes=None, offsets=None, oracle=None, slot=slot, d=factor.index.shape[1],
                          add=self.add_start[id(factor)], n_add=factor.n_additional)  # fmt: skip
            structured.append(fields | factor._structured())
            place(factor.index)
        var = np.concatenate(parts)
        degree = np.bincount(var, minlength=n_variables)
        deg = degree[var].astype(np.float64)
        a = np.concatenate(a_parts)
        arrays = {
            "var": _padded(var, np.int32),
            "var_start": np.concatenate([[0], np.cumsum(degree)]).astype(np.intp),
            "var_slot": _padded(np.argsort(var, kind="stable"), np.int32),
            "deg": _padded(deg, np.float64),
            "w": _padded(1.0 / np.maximum(deg, 1.0), np.float64),
            "a": _padded(a, np.float64),
            "ad": _padded(a * deg, np.float64),
            "pair_add": _padded(np.concatenate([*pair_add, []]), np.int32),
            "flip": _padded(np.flatnonzero(flips.T), np.int32),
            "linear": np.array(lines, dtype=np.intp),
            "relation": _padded(np.concatenate([*relation, []]), np.int32),
            "bound": _padded(np.concatenate([*bound, []]), np.float64),
            "orout": np.array(orouts, dtype=np.intp),
            "negated": _padded(np.concatenate(negated_parts), np.int32),
        }
        self.lock = threading.Lock()
        self._given = n_variables, n_add, arrays, structured
        self.plan = Plan(*self._given)
        self._on_devices = {}

    def plan_for(self, x):
        """The plan of the kernels that take arrays like x."""
        if not is_device(x):
            return self.plan
        place = namespace(x=x).cuda.Device().id
        if place not in self._on_devices:
            self._on_devices[place] = kernel_module("_factor_graph", x).Plan(*self._given)
        return self._on_devices[place]

    def slots(self, factor):
        """Slots of a factor's variables, shaped as its indices (n, d)."""
        start, (n, d) = self.slot_start[id(factor)], factor.index.shape
        if factor._kind == "pair":
            return start + np.arange(n)[:, None] + self.n_pairs * np.arange(2)
        return start + np.arange(n * d).reshape(n, d)


def _padded(values, dtype):
    return np.append(values, 0).astype(dtype)
