"""Newton's method for L2-regularised Fenchel-Young losses.

min_T  alpha/2 ||T||^2 + sum_i w_i L(z_i; q_i),  Z = X W + b, T = [W; b]      (eq. (11))

The loss is convex with a Lipschitz gradient; the one of sparsemax is quadratic between the changes of the
supports, and the step is the semismooth Newton step with the Jacobian of eq. (5). Steps are searched on the
scores, which costs no pass over the data, for the place where the objective stops falling. For alpha > 0 the
objective is alpha-strongly convex, and ||gradient||^2 / (2 alpha) is exactly the duality gap at the point and
its own predictions.

Far from the solution of a weak penalty the supports of sparsemax change so much that its steps lead nowhere;
the solutions of falling alphas lead there. So alpha falls in stages, each of them solved roughly.
"""

import time

import numpy as np
from scipy.optimize import OptimizeResult

from .._device import is_device
from .._linalg.threads import blas_threads
from ._fenchel_young_ascent import Ascent
from ._fenchel_young_gap import balance, scaled_gap
from ._fenchel_young_search import search
from ._run import MESSAGES

# relative error to expect of an objective
_ROUNDING = 1e-15
# duality gap in units of tol times the objective at which to stop
GAP_FACTOR = 10.0
# steps of conjugate gradients: few as long as models promise too much
_CG_FEW, _CG_MOST = 30, 250
# products that a step by conjugate gradients is taken to need at first, and how many times as many as the last
# one; what did not get there in time needs more
_EXPECTED, _MORE, _MANY = 20, 1.5, 4.0
# part of the promised decrease above which models may be solved better
_KEPT_HIGH = 0.9
# largest relative residual of a step
_FORCING = 0.5
# first alpha of the stages in units of the loss's curvature at zero, and the relative duality gap that ends one
_FIRST, _STAGE_GAP = 0.01, 0.5
# factor between the alphas of two stages, at least and at first; one of at most _SHORT steps makes the next
# factor larger, one of more than _LONG smaller, and none has more than _LONGEST
_LEAST_FALL, _FALL = 2.0, 3.0
_SHORT, _LONG, _LONGEST = 2, 5, 30


def minimize_fenchel_young(
    loss,
    alpha,
    x0=None,
    *,
    penalize_intercept=True,
    tol=1e-5,
    max_iter=200,
    max_time=None,
    callback=None,
    history=False,
):
    """Minimise alpha/2 ||T||^2 + loss(T).

    Parameters
    ----------
    loss : FenchelYoungLoss
    alpha : float
        Strength of the penalty, >= 0.
    x0 : array-like of shape ``loss.shape``, default=None
        Start; None is zero, and so is one whose objective is larger than zero's. The solution is where the
        loss is, in main memory or on a GPU.
    penalize_intercept : bool, default=True
        Whether alpha holds for the last row of T too, as eq. (11) has it.
    tol : float
        Largest entry of the gradient, relative to that at zero, to stop at; for alpha > 0 the duality gap must
        also be at most 10 tol times the objective.
    max_iter : int
        Newton steps.
    max_time : float, default=None
        Seconds.
    callback : callable, default=None
        ``callback(intermediate_result)`` after each step, of copies; true stops the run.
    history : bool, default=False

    Returns
    -------
    OptimizeResult
        x (the table), fun, nit, nfev, njev, status, success, message, optimality, dual_gap (NaN where
        alpha is 0, or free intercepts could not be balanced), grad, n_cg, n_data_passes, history.
    """
    run = _Run(loss, float(alpha), penalize_intercept, callback, history)
    with blas_threads(loss.blas_threads):
        return run.solve(x0, tol, max_iter, np.inf if max_time is None else max_time)


class _Run:
    def __init__(self, loss, alpha, penalize_intercept, callback, history):
        self.loss, self.alpha, self.callback = loss, alpha, callback
        self.kernels, self.device = loss.kernels, is_device(loss.w)
        self.free = loss.fit_intercept and not penalize_intercept
        self.rows = [] if history else None
        self.start = time.perf_counter()
        self.nit = self.nfev = self.n_cg = self.passes = 0
        # products that the next step by conjugate gradients may ask for
        self.cg_max, self.promised, self.expected = _CG_FEW, 0.0, _EXPECTED
        # the best lower bound of the objective
        self.bound = -np.inf

    def solve(self, x0, tol, max_iter, max_time):
        T, Z, state, at_zero = self._begin(x0)
        pulled = self._pull(state[1])
        scale = (_largest(pulled) if state is at_zero else _largest(self._pull(at_zero[1]))) or 1.0
        ascent = Ascent.where_it_pays(self.loss, self.alpha, self.free, T, state[1], GAP_FACTOR * tol)
        stage = kept = None
        status, best, stalls, flat = None, np.inf, 0, False
        while True:
            f, G = self._objective(T, state, pulled, self.alpha)
            optimality, gap = _largest(G) / scale, self._gap(f, G)
            if self.nit or self.rows is not None:
                status = 3 if self._report(T, f, optimality) else None
            if optimality <= tol and not gap > GAP_FACTOR * tol * f:
                if not self.free or not self.alpha:
                    status = 0
                else:
                    # a gap needs balanced intercepts; where they cannot be, there is none
                    T, Z, state, balanced = balance(self, T, Z, state)
                    pulled = self._pull(state[1])
                    f, G = self._objective(T, state, pulled, self.alpha)
                    gap, optimality = self._gap(f, G), _largest(G) / scale
                    if not balanced or not gap > GAP_FACTOR * tol * f:
                        status = 0
            measure = gap if self.alpha > 0.0 else optimality
            stalls = stalls + 1 if flat and measure > 0.5 * best else 0
            best = min(best, measure)
            if status is None and self.nit >= max_iter:
                status = 1
            elif status is None and time.perf_counter() - self.start >= max_time:
                status = 2
            elif status is None and stalls >= 3:
                status = 4
            if status is not None:
                break
            if ascent is not None:
                if self.nit:
                    ascent.note(gap / f if f > 0.0 else 0.0)
                if kept is None or f < kept[0]:
                    kept = f, T, Z, state, pulled
                if ascent.goes_on():
                    T, bound = ascent.block()
                    self.passes += 2
                    self.bound = max(self.bound, bound)
                    Z = self.loss.scores(T)
                    state = self.evaluate(Z)
                    pulled = self._pull(state[1])
                    self.nit += 1
                    continue
                ascent, (_, T, Z, state, pulled) = None, kept
            stage = stage or self._first_stage(T, state, pulled)
            alpha = stage.at(self.nit, lambda alpha: self._near(T, state, pulled, alpha))
            f, G = self._objective(T, state, pulled, alpha)
            D = self._direction(G, Z, alpha, min(_FORCING, (_largest(G) / scale) ** 0.5))
            step = None if D is None else search(self, T, Z, G, D, alpha)
            if step is None:
                # a direction of float32 products may be no descent at the last digits
                status = 4
                break
            T += step.t * D
            Z, state = step.Z, step.state
            decrease = f - step.f
            good = decrease > _KEPT_HIGH * self.promised > 0.0
            self.cg_max = min(_CG_MOST, 2 * self.cg_max) if good else _CG_FEW
            flat = alpha == self.alpha and not decrease > _ROUNDING * (abs(f) + self.loss.magnitude)
            pulled = self._pull(state[1])
            self.nit += 1
        return self._result(T, Z, state, scale, status)

    def _begin(self, x0):
        loss = self.loss
        like = loss.w
        T = np.zeros(loss.shape, like=like) if x0 is None else np.array(x0, dtype=np.float64, like=like)
        if T.shape != loss.shape:
            raise ValueError(f"x0 must have shape {loss.shape}; got {T.shape}")
        if not np.all(np.isfinite(T)):
            raise ValueError("x0 must be finite; it holds NaN or infinity")
        zero = np.zeros((loss.design.shape[0], loss.n_classes), like=like)
        at_zero = self.evaluate(zero)
        if T.any():
            Z = loss.scores(T)
            state = self.evaluate(Z)
            if state[0] + self._penalty(T, self.alpha) < at_zero[0]:
                return T, Z, state, at_zero
            T[...] = 0.0
        return T, zero, at_zero, at_zero

    def _first_stage(self, T, state, pulled):
        """Stages from where the start is near a solution, or else where steps are good anyway."""
        if self.loss.transform != "sparsemax":
            return _Stages(self.alpha, self.alpha)
        part, slope = self.penalised(T), self.penalised(pulled)
        size, length = self.dots((slope, slope), (part, part))
        if length > 0.0:
            alpha = (size / length) ** 0.5
            if self._near(T, state, pulled, alpha, 1.0):
                return _Stages(self.alpha, alpha / _FALL)
        return _Stages(self.alpha, _FIRST * self.loss.scale())

    def evaluate(self, Z):
        """Loss and its derivative at scores Z."""
        self.nfev += 1
        return self.loss.derivatives(Z)

    def dots(self, *pairs):
        """Inner products; a GPU is waited for once."""
        found = [self.kernels.dot(A.ravel(), B.ravel(), self.loss.n_threads) for A, B in pairs]
        return self.kernels.numbers(found) if self.device else found

    def penalised(self, T):
        """The rows of a table that have a penalty."""
        return T[:-1] if self.free else T

    def _penalty(self, T, alpha):
        part = self.penalised(T)
        return 0.5 * alpha * self.dots((part, part))[0]

    def _pull(self, R):
        self.passes += 1
        return self.loss.pull(R)

    def _objective(self, T, state, pulled, alpha):
        """Objective and gradient."""
        G = pulled.copy()
        self.penalised(G)[...] += alpha * self.penalised(T)
        return state[0] + self._penalty(T, alpha), G

    def _near(self, T, state, pulled, alpha, most=_STAGE_GAP):
        """Whether the point's own duality gap at alpha is small."""
        f, G = self._objective(T, state, pulled, alpha)
        return alpha > 0.0 and self._penalty(G, 1.0) <= most * alpha * f

    def _gap(self, f, G):
        """Duality gap, with the best bound so far; where intercepts are free, as if they were balanced."""
        if not self.alpha > 0.0:
            return np.nan
        gap = self._penalty(G, 1.0) / self.alpha
        if self.free:
            return gap
        self.bound = max(self.bound, f - gap)
        return min(gap, f - self.bound + _ROUNDING * (abs(f) + self.loss.magnitude))

    def _direction(self, G, Z, alpha, forcing):
        """The Newton step, by a factor where that pays, else by conjugate gradients."""
        D = self.loss.newton_step(Z, G, alpha, self.free, self.expected)
        if D is None:
            before = self.n_cg
            D, reached = self._conjugate_gradients(G, self.loss.operator(Z), alpha, forcing)
            self.expected = max(_EXPECTED, (_MORE if reached else _MANY) * (self.n_cg - before))
            return D
        self.passes += 1
        self.promised = -0.5 * self.dots((G, D))[0]
        return D

    def _conjugate_gradients(self, G, operator, alpha, forcing):
        """d with (H + alpha) d = -G, preconditioned by the diagonal, and whether it is as good as asked for.

        All vectors are float32 multiples of G's size; outer steps mend what that loses.
        """
        K, scale, threads, kernels = G.shape[1], _largest(G), self.loss.n_threads, self.kernels
        shape = operator.shape
        g = np.zeros(shape, dtype=np.float32, like=G)
        g[:, :K] = G / scale
        M = operator.diag
        self.penalised(M)[...] += alpha
        np.maximum(M, 1e-12 * (_largest(M) or 1.0), out=M)
        inverse = np.divide(1.0, M, out=M).ravel()
        r, d, p = -g.ravel(), np.zeros_like(g.ravel()), np.zeros_like(g.ravel())
        Hp = np.empty(shape, dtype=np.float32, like=G)
        kernels.cg_turn(0.0, r, inverse, p, threads)
        size = first = kernels.dot(r, p, threads)
        enough = forcing**2 * float(first)
        penalised = self.penalised(g).size
        reached = False
        for _ in range(self.cg_max):
            operator.product(p.reshape(shape), Hp)
            curve = kernels.cg_curve(p, Hp.ravel(), alpha, penalised, threads)
            self.n_cg += 1
            self.passes += 1
            # rounding of flat directions; a GPU's step goes nowhere then, and is not waited for twice
            if not self.device and not curve > 0.0:
                break
            new = kernels.cg_step(size / curve, p, Hp.ravel(), inverse, d, r, threads)
            if not new > enough:
                reached = True
                break
            kernels.cg_turn(new / size, r, inverse, p, threads)
            size = new
        if not d.any():
            d = p  # the steepest descent
        left, slope = self.dots((r, d), (g, d))
        self.promised = 0.5 * (left - slope) * scale**2
        return d.reshape(shape)[:, :K].astype(np.float64) * scale, reached

    def _report(self, T, f, optimality):
        if self.rows is not None:
            self.rows.append((time.perf_counter() - self.start, f, optimality))
        if self.callback is None or not self.nit:
            return False
        current = OptimizeResult(
            x=T.copy(), fun=f, nit=self.nit, optimality=optimality, nnz=int(np.count_nonzero(T)),
            time=time.perf_counter() - self.start,
        )  # fmt: skip
        try:
            return bool(self.callback(current))
        except StopIteration:
            return True

    def _result(self, T, Z, state, scale, status):
        balanced = True
        if self.alpha > 0.0 and self.free and status != 0:
            T, Z, state, balanced = balance(self, T, Z, state)
        elif self.free:
            balanced = float(np.abs(state[1].sum(axis=0)).max(initial=0.0)) <= 1e-12
        f, G = self._objective(T, state, self._pull(state[1]), self.alpha)
        gap = self._gap(f, G) if balanced else np.nan
        if status != 0 and gap > 0.0:
            gap = min(gap, scaled_gap(self, f, state, G, T))
        names = ("time", "fun", "optimality")
        rows = None
        if self.rows is not None:
            rows = {name: np.array(column) for name, column in zip(names, zip(*self.rows))}
        return OptimizeResult(
            x=T, fun=f, nit=self.nit, nfev=self.nfev, njev=self.nit + 1, status=status, success=status == 0,
            message=MESSAGES[status], optimality=_largest(G) / scale, dual_gap=gap, grad=G, n_cg=self.n_cg,
            n_data_passes=self.passes, history=rows,
        )  # fmt: skip


class _Stages:
    """The alphas on the way to the last one: after a stage of few steps the next is farther away."""

    def __init__(self, last, first):
        self.last, self.alpha, self.fall, self.begin = last, max(last, first), _FALL, 0
        self._settle()

    def _settle(self):
        if self.alpha < _LEAST_FALL * self.last:
            self.alpha = self.last

    def at(self, nit, near):
        """The alpha of the next step; ``near(alpha)`` tells whether the point ends the stage."""
        while self.alpha > self.last:
            steps = nit - self.begin
            if steps <= _LONGEST and not near(self.alpha):
                break
            if steps <= _SHORT:
                self.fall *= _FALL
            elif steps > _LONG:
                self.fall = max(self.fall / _FALL, _LEAST_FALL)
            self.begin, self.alpha = nit, max(self.last, self.alpha / self.fall)
            self._settle()
        return self.alpha


def _largest(A):
    """max |A|; one number, wherever A is."""
    return float(np.abs(A).max()) if A.size else 0.0
