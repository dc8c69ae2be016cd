"""The structured hinge loss with Hamming cost: a support vector machine over labellings, by smoothing.

    f(x) = sum_i c_i max_y (s(x_i, y) + d(y, y_i) - s(x_i, y_i)) + 1/2 |x|^2 ,   d: how many labels differ,

Taskar, Guestrin, Koller, "Max-margin Markov networks" (2003); Tsochantaridis, Joachims, Hofmann, Altun,
"Large margin methods for structured and interdependent output variables" (JMLR 2005), eq. (8). With a
temperature r the maximum becomes r log sum_y exp(. / r), which forward-backward computes; it is too large by
at most r times the entropy. The smooth problem is minimised by L-BFGS, the temperature lowered, and so on
(Nesterov, "Smooth minimization of non-smooth functions", 2005).

The certificate: with p the distributions at temperature r, v = sum_i c_i (features of y_i - E_p features) and
the dual

    D(p) = sum_i c_i E_p[d(y, y_i)] - 1/2 |v|^2  <=  min f ,

and v is x less the smooth gradient.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from .._solver import outcome
from .chains import best, forward_backward
from .lbfgs import State, look, step
from .loss import ChainLoss

# a stage's temperature, in parts of the last one's; a cost is 1 a position
_FALL, _LAST = 0.1, 1e-12
# a stage ends when what is left of its smooth problem is this share of the gap
_SHARE = 0.1
# the gap may be so many times tol relative to the objective: steps grow as it falls, and labels do not change
_GAP = 100.0

_MESSAGES = outcome.messages("the duality gap is at most a hundred times tol times the objective")


class HingeLoss(ChainLoss):
    """The smooth function at ``temperature``, in the form of its base."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.temperature = 1.0
        self._logs, self._tops, self._risk, self._costly = None, None, 0.0, (None, None)

    def cool(self, temperature):
        """Another temperature: values of the last one are forgotten."""
        self.temperature = temperature
        self._seen = None, np.nan, None

    def infer(self, unary, follow):
        unary += 1.0
        unary[self._rows, self.y] -= 1.0
        self._costly = unary.copy(), follow
        unary /= self.temperature
        logs, pairs = forward_backward(
            unary, self.starts, follow / self.temperature, self.weight, self.n_threads, reach=self.reach,
            parts=self._parts,
        )  # fmt: skip
        self._risk = float(np.sum(self._weights - unary[self._rows, self.y]))
        self._logs = self.temperature * logs
        return self._logs, pairs

    def dual(self, x, gradient):
        """D at the distributions of the last evaluation, which was at x."""
        v = x - gradient
        return self._risk - 0.5 * float(v @ v)

    def excess(self):
        """By how much the smooth function was larger than the hinge loss at the last evaluation."""
        unary, follow = self._costly
        return float(self.weight @ (self._logs - best(unary, self.starts, follow, self.n_threads)[1]))


class WorstLoss(ChainLoss):
    """The hinge loss itself and a subgradient: of the worst labelling."""

    def infer(self, unary, follow):
        unary += 1.0
        unary[self._rows, self.y] -= 1.0
        worst, value = best(unary, self.starts, follow, self.n_threads)
        unary[:] = 0.0
        unary[self._rows, worst] = self._weights
        later = np.ones(len(worst), dtype=bool)
        later[self._first] = False
        later = np.flatnonzero(later)
        pairs = np.bincount(
            worst[later - 1] * self.K + worst[later], self._weights[later], minlength=self.K**2
        )
        return value, pairs.reshape(self.K, self.K)


def minimize_hinge(loss, x0, *, tol, max_iter, max_time, memory=10, callback=None, history=False):
    """The minimiser of a `HingeLoss` without its smoothing.

    ``optimality`` is a hundredth of the gap relative to the objective. While it runs, ``fun`` is the smooth
    value, which is an upper bound.
    """
    limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
    lines = outcome.History(("time", "fun", "optimality"), history)
    x = np.zeros(loss.n_variables) if x0 is None else np.array(x0, dtype=np.float64)
    f, g = loss.value_and_gradient(x)
    state = State(x, f, g, loss.curvature())
    dual, least, found, nit, status = -np.inf, np.inf, x, 0, None
    while status is None:  # a stage
        left = True
        while True:
            dual = max(dual, loss.dual(state.x, state.g))
            optimality = _optimality(state.f, dual)
            status = look(state, nit, optimality, limits, lines, callback)
            if status is None:
                status = outcome.CONVERGED if optimality <= tol else limits.reached(nit)
            inner = 0.5 * float(state.g @ state.g)
            if status is not None or not left or inner <= _SHARE * (state.f - dual):
                break
            left = step(loss.value_and_gradient, state, memory)
            if left:
                nit += 1
            else:  # the last trial was elsewhere
                loss.cool(loss.temperature)
                state.f, state.g = loss.value_and_gradient(state.x)
        value = state.f - loss.excess()
        if not value >= least:
            least, found = value, state.x
        if status is None and _optimality(least, dual) <= tol:
            status = outcome.CONVERGED
        elif status is None and loss.temperature <= _LAST:
            status = outcome.NO_PROGRESS
        elif status is None:
            loss.cool(_FALL * loss.temperature)
            state.f, state.g = loss.value_and_gradient(state.x)
    return OptimizeResult(
        x=found, fun=least, nit=nit, nfev=loss.n_evaluations, status=status, message=_MESSAGES[status],
        success=status in outcome.SUCCESSES, optimality=_optimality(least, dual),
        dual_gap=max(least - dual, 0.0), time=limits.seconds, history=lines.columns(),
    )  # fmt: skip


def _optimality(value, dual):
    gap = max(value - dual, 0.0)
    return gap / (_GAP * abs(value)) if gap > 0.0 else 0.0
