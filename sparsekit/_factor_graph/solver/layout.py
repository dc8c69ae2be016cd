"""LP-SparseMAP: options and exits of a solve, and the kernels' plan of a graph's factors."""

from dataclasses import dataclass, fields
from numbers import Integral, Real

import numpy as np

from ..._arrays import OnEachDevice
from ..._messages import shown
from ..._solver import outcome
from ..factors.asking import lock_of

MESSAGES = outcome.messages(
    "the residual is at most the tolerance",
    max_iter="Stopped at max_iter before the residual reached the tolerance.",
    max_time="Stopped after max_time seconds, before the residual reached the tolerance.",
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
        gamma of Algorithm 1 at the start; times the scores where these are above 1, unless one of `exact` and
        `adaptive` is False.
    adaptive : bool
        Whether gamma follows the ratio of the residuals.
    relaxation : float
        Between 0 and 2; 1 is Algorithm 1.
    tol_primal, tol_dual : float
        Where the iteration ends: norm of the disagreement, norm of the last change of mu.
    inner_iter : int
        Most calls of a MAP oracle in one local problem of an iteration; max_iter * inner_iter of them in all.
    max_time : float or None
        Seconds after which a solve ends with what it has.
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
    max_time: float | None = None
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
        if self.max_time is None:
            self.max_time = np.inf
        if not isinstance(self.max_time, Real) or isinstance(self.max_time, bool) or not self.max_time > 0:
            raise ValueError(f"max_time must be None or a number > 0; got {shown(self.max_time)}")
        if not isinstance(self.relaxation, Real) or not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation must be between 0 and 2; got {shown(self.relaxation)}")
        for name in ("adaptive", "exact"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False; got {shown(getattr(self, name))}")


# fields of GraphOptions that are public options
OPTIONS = tuple(field.name for field in fields(GraphOptions) if field.name != "quadratic")


def check_options(options, quadratic=True):
    """Settings of a solve from the user's keywords."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(f"unknown option {shown(unknown[0])}; options are {', '.join(OPTIONS)}")
    return GraphOptions(**options, quadratic=quadratic)


class Layout:
    """Which factor lies where: slots by kind, additional scores in the order of the factors.

    Parameters
    ----------
    n_variables : int
    factors : list
        Factors, as in :mod:`sparsekit._factor_graph.factors.factors`.

    Attributes
    ----------
    arrays : dict
        Of the kernels, fg_plan in factor_graph.h, each with an entry more than it needs.
    structured : list of dict
        Fields of fg_spec of the factors with an oracle, and names for messages.
    plan_arguments : tuple
        Of a kernels' Plan.
    """

    def __init__(self, n_variables, factors):
        by_kind = {kind: [] for kind in ("pair", "linear", "orout", "structured")}
        self.n_variables, self.n_additional = n_variables, 0
        self.add_start, self.slot_start = {}, {}
        for factor in factors:
            by_kind[factor._kind].append(factor)
            self.add_start[id(factor)] = self.n_additional
            self.n_additional += factor.n_additional
        self.structured_index = {id(factor): k for k, factor in enumerate(by_kind["structured"])}
        slots = _Slots()
        # the kernels rely on this order of kinds
        arrays = self._lay_out_pairs(by_kind["pair"], slots)
        arrays |= self._lay_out_linear(by_kind["linear"], slots)
        arrays |= self._lay_out_orouts(by_kind["orout"], slots)
        structured = self._lay_out_structured(by_kind["structured"], slots)
        arrays |= slots.arrays(n_variables)
        self.lock = lock_of(self)
        self.arrays, self.structured = arrays, structured
        self.plan_arguments = n_variables, self.n_additional, arrays, structured
        self._plans = OnEachDevice("factor_graph._factor_graph", "Plan", self.plan_arguments)
        self.plan = self._plans.like(arrays["var"])

    def _lay_out_pairs(self, factors, slots):
        """All first variables, then all second ones."""
        ends = np.concatenate([*(factor.index for factor in factors), np.zeros((0, 2), dtype=np.int64)])
        flips = np.concatenate([*(factor.negated for factor in factors), np.zeros((0, 2), dtype=bool)])
        scores, first = [], 0
        for factor in factors:
            self.slot_start[id(factor)] = first
            first += len(factor.index)
            scores.append(self.add_start[id(factor)] + np.arange(len(factor.index)))
        self.n_pairs = len(ends)
        slots.add(ends.T, negated=flips.T)
        return {
            "pair_add": _padded(np.concatenate([*scores, []]), np.int32),
            "flip": _padded(np.flatnonzero(flips.T), np.int32),
        }

    def _lay_out_linear(self, factors, slots):
        """One constraint after the other, with coefficients."""
        ends, relation, bound = [slots.count], [], []
        for factor in factors:
            self.slot_start[id(factor)] = slots.count
            a, b = factor._constraint()
            n, d = factor.index.shape
            ends.extend(range(slots.count + d, slots.count + n * d + 1, d))
            relation.extend([factor._relation] * n)
            bound.append(b)
            slots.add(factor.index, a)
        return {
            "linear": np.array(ends, dtype=np.intp),
            "relation": np.array([*relation, 0], dtype=np.int32),
            "bound": _padded(np.concatenate([*bound, []]), np.float64),
        }

    def _lay_out_orouts(self, factors, slots):
        """One after the other, as the constraint that the others sum to the last."""
        ends = [slots.count]
        for factor in factors:
            self.slot_start[id(factor)] = slots.count
            n, d = factor.index.shape
            ends.extend(slots.count + d * np.arange(1, n + 1))
            a = np.ones((n, d))
            a[:, -1] = -1.0
            slots.add(factor.index, a, factor.negated)
        return {"orout": np.array(ends, dtype=np.intp)}

    def _lay_out_structured(self, factors, slots):
        """Fields of fg_spec (factor_graph.h) of each."""
        found = []
        for factor in factors:
            self.slot_start[id(factor)] = slots.count
            fields = dict(
                name=type(factor).__name__, flag=0, sizes=None, offsets=None, oracle=None, slot=slots.count,
                d=factor.index.shape[1], add=self.add_start[id(factor)], n_add=factor.n_additional,
            )  # fmt: skip
            found.append(fields | factor._structured())
            slots.add(factor.index)
        return found

    @property
    def var(self):
        """Variable of each slot, (n_slots,)."""
        return self.arrays["var"][:-1]

    @property
    def degrees(self):
        """Factors of each slot's variable, (n_slots,)."""
        return self.arrays["deg"][:-1]

    @property
    def is_separate(self):
        """Whether no variable is in two factors."""
        return self.degrees.max(initial=0.0) <= 1.0

    @property
    def n_linear(self):
        """Number of linear constraints."""
        return len(self.arrays["bound"]) - 1

    @property
    def n_orout_slots(self):
        """Slots of OrOut constraints."""
        return int(self.arrays["orout"][-1] - self.arrays["orout"][0])

    @property
    def n_closed_slots(self):
        """Slots of all factors in closed form, which come first."""
        return int(self.arrays["orout"][-1])

    def plan_for(self, x):
        """The plan of the kernels that take arrays like x."""
        return self._plans.like(x)

    def slots(self, factor):
        """Slots of a factor's variables, shaped as its indices (n, d)."""
        start, (n, d) = self.slot_start[id(factor)], factor.index.shape
        if factor._kind == "pair":
            return start + np.arange(n)[:, None] + self.n_pairs * np.arange(2)
        return start + np.arange(n * d).reshape(n, d)


class _Slots:
    """Slots as they are given out: variable, coefficient and negation of each."""

    def __init__(self):
        self.count = 0
        self._var, self._a, self._negated = [], [], []

    def add(self, index, a=None, negated=None):
        """Slots for the variables ``index``, in C order."""
        flat = index.ravel()
        self._var.append(flat)
        if a is not None:
            self._a.append((self.count, a.ravel()))
        if negated is not None:
            self._negated.append((self.count, negated.ravel()))
        self.count += len(flat)

    def arrays(self, n_variables):
        """What the kernels read of all slots, and of the variables' slots."""
        var = np.concatenate(self._var).astype(np.int32)
        degree = np.bincount(var, minlength=n_variables)
        deg = np.append(degree[var], 0.0)
        a = _scattered(self._a, self.count + 1, np.float64)
        return {
            "var": np.append(var, np.int32(0)),
            "var_start": np.concatenate([[0], np.cumsum(degree)]).astype(np.intp),
            "var_slot": _padded(np.argsort(var, kind="stable"), np.int32),
            "deg": deg,
            "w": np.append(1.0 / deg[:-1], 0.0),
            "a": a,
            "ad": a * deg,
            "negated": _scattered(self._negated, self.count + 1, np.int32),
        }


def _scattered(parts, size, dtype):
    """Zeros but for the parts, which are pairs of an index and values."""
    out = np.zeros(size, dtype=dtype)
    for start, values in parts:
        out[start : start + len(values)] = values
    return out


def _padded(values, dtype):
    return np.append(values, 0).astype(dtype)
