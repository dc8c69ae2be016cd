"""Newton's method with conjugate gradients for L2-regularised Fenchel-Young losses.

min_T  alpha/2 ||T||^2 + sum_i w_i L(z_i; q_i),  Z = X W + b, T = [W; b]      (eq. (11))

The loss is convex with a Lipschitz gradient; the one of sparsemax is quadratic between the changes of the
supports, and the step is the semismooth Newton step with the Jacobian of eq. (5). Steps are searched on the
scores, which costs no pass over the data, and the curvature of rows is raised to what it is within reach of
their last move where models promise too much. For alpha > 0 the objective is alpha-strongly convex, and
||gradient||^2 / (2 alpha) is exactly the duality gap at the point and its own predictions.
"""

import time

import numpy as np
from scipy.optimize import OptimizeResult

from .._device import is_device, to_host
from .._linalg.positive import solve_positive
from .._linalg.threads import blas_threads
from ._run import MESSAGES

# relative error to expect of an objective
_ROUNDING = 1e-15
_ARMIJO = 1e-4
# steps of conjugate gradients: few as long as models promise too much
_CG_FEW, _CG_MOST = 30, 250
# parts of the promised decrease below and above which models look farther and less far, and how far
_KEPT_LOW, _KEPT_HIGH, _REACH = 0.7, 0.9, 0.4
# largest relative residual of a step
_FORCING = 0.5


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
        Start; None is zero. The solution is where the loss is, in main memory or on a GPU.
    penalize_intercept : bool, default=True
        Whether alpha holds for the last row of T too, as eq. (11) has it.
    tol : float
        Largest entry of the gradient, relative to that at zero, to stop at.
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
        # how far models look, as a part of the rows' last moves, and the decrease that the last one promised
        self.damping, self.last, self.promised = 0.0, None, 0.0
        self.cg_max = _CG_FEW

    def solve(self, x0, tol, max_iter, max_time):
        loss = self.loss
        like = loss.w
        T = np.zeros(loss.shape, like=like) if x0 is None else np.array(x0, dtype=np.float64, like=like)
        if T.shape != loss.shape:
            raise ValueError(f"x0 must have shape {loss.shape}; got {T.shape}")
        if not np.all(np.isfinite(T)):
            raise ValueError("x0 must be finite; it holds NaN or infinity")
        zero = np.zeros((loss.design.shape[0], loss.n_classes), like=like)
        at_zero = self._evaluate(zero)
        scale = _largest(loss.pull(at_zero[1])) or 1.0
        Z, state = (loss.scores(T), None) if T.any() else (zero, at_zero)
        state = state or self._evaluate(Z)
        f = state[0] + self._penalty(T)
        G = self._gradient(T, state[1])
        optimality = _largest(G) / scale
        status, previous, stalls = None, np.inf, 0
        while True:
            if self.nit or self.rows is not None:
                stop = self._report(T, f, optimality)
                status = 3 if stop else None
            if optimality <= tol:
                status = 0
            elif status is None and self.nit >= max_iter:
                status = 1
            elif status is None and time.perf_counter() - self.start >= max_time:
                status = 2
            elif status is None and stalls >= 2:
                status = 4
            if status is not None:
                break
            reach = _REACH * self.damping * self.last if self.damping > 0.0 else None
            D = self._direction(G, Z, reach, min(_FORCING, optimality**0.5))
            step = None if D is None else self._search(T, Z, f, G, D)
            if step is None:
                # a direction of float32 products may be no descent at the last digits
                status = 4
                break
            t, Z, state, f_new, dZ = step
            self._adapt_damping(t, f - f_new, dZ)
            T += t * D
            flat = not f - f_new > _ROUNDING * (abs(f) + self.loss.magnitude)
            f = f_new
            G = self._gradient(T, state[1])
            size = _largest(G) / scale
            stalls = stalls + 1 if flat and size > 0.5 * min(previous, optimality) else 0
            previous, optimality = min(previous, size), size
            self.nit += 1
        return self._result(T, Z, G, f, state, scale, optimality, status)

    def _evaluate(self, Z):
        self.nfev += 1
        return self.loss.derivatives(Z)

    def _dot(self, A, B):
        return self._dots((A, B))[0]

    def _dots(self, *pairs):
        """Inner products; a GPU is waited for once."""
        found = [self.kernels.dot(A.ravel(), B.ravel(), self.loss.n_threads) for A, B in pairs]
        return self.kernels.numbers(found) if self.device else found

    def _penalised(self, T):
        return T[:-1] if self.free else T

    def _penalty(self, T):
        part = self._penalised(T)
        return 0.5 * self.alpha * self._dot(part, part)

    def _gradient(self, T, R):
        self.passes += 1
        G = self.loss.pull(R)
        self._penalised(G)[...] += self.alpha * self._penalised(T)
        return G

    def _direction(self, G, Z, reach, forcing):
        """The Newton step, by a factor where the Hessian is small, else by conjugate gradients."""
        H = self.loss.hessian(Z, reach)
        if H is None:
            return self._conjugate_gradients(G, self.loss.operator(Z, reach), forcing)
        m = len(H)
        every = np.arange(m, like=H)
        kept = every[: m - self.loss.n_classes] if self.free else every
        H[kept, kept] += self.alpha
        self.passes += 1
        # the scores' common shift, and unused features where alpha is 0, have no curvature
        most = (float(H.diagonal().max()) if m else 0.0) or 1.0
        ridge = 1e-13 * most
        while True:
            if not ridge <= most:  # nor is it where H overflowed
                return None
            H[every, every] += ridge
            try:
                D = -solve_positive(H, G.ravel()).reshape(G.shape)
                break
            except np.linalg.LinAlgError:
                ridge *= 100.0  # rounding was larger
        self.promised = -0.5 * self._dot(G, D)
        return D

    def _conjugate_gradients(self, G, operator, forcing):
        """d with (H + alpha) d = -G, preconditioned by the diagonal.

        All vectors are float32 multiples of G's size; outer steps mend what that loses.
        """
        K, scale, threads, kernels = G.shape[1], _largest(G), self.loss.n_threads, self.kernels
        shape = operator.shape
        g = np.zeros(shape, dtype=np.float32, like=G)
        g[:, :K] = G / scale
        M = operator.diag
        self._penalised(M)[...] += self.alpha
        np.maximum(M, 1e-12 * (_largest(M) or 1.0), out=M)
        inverse = np.divide(1.0, M, out=M).ravel()
        r, d, p = -g.ravel(), np.zeros_like(g.ravel()), np.zeros_like(g.ravel())
        Hp = np.empty(shape, dtype=np.float32, like=G)
        kernels.cg_turn(0.0, r, inverse, p, threads)
        size = first = kernels.dot(r, p, threads)
        enough = forcing**2 * float(first)
        penalised = self._penalised(g).size
        for _ in range(self.cg_max):
            operator.product(p.reshape(shape), Hp)
            curve = kernels.cg_curve(p, Hp.ravel(), self.alpha, penalised, threads)
            self.n_cg += 1
            self.passes += 1
            # rounding of flat directions; a GPU's step goes nowhere then, and is not waited for twice
            if not self.device and not curve > 0.0:
                break
            new = kernels.cg_step(size / curve, p, Hp.ravel(), inverse, d, r, threads)
            if not new > enough:
                break
            kernels.cg_turn(new / size, r, inverse, p, threads)
            size = new
        if not d.any():
            d = p  # the steepest descent
        left, slope = self._dots((r, d), (g, d))
        self.promised = 0.5 * (left - slope) * scale**2
        return d.reshape(shape)[:, :K].astype(np.float64) * scale

    def _adapt_damping(self, t, decrease, dZ):
        """Levenberg's rule by rows: models that promised much more than they kept look farther."""
        size = dZ.max(axis=1) - dZ.min(axis=1)
        # a row that was held back keeps half of what it had, or it would break out again
        self.last = size if self.last is None else np.maximum(size, 0.5 * self.last)
        kept = decrease / self.promised if t == 1.0 and self.promised > 0.0 else 0.0
        self.cg_max = min(_CG_MOST, 2 * self.cg_max) if kept > _KEPT_HIGH else _CG_FEW
        if kept < _KEPT_LOW:
            self.damping = min(2.0, max(2.0 * self.damping, 0.5))
        elif kept > _KEPT_HIGH:
            self.damping = 0.5 * self.damping if self.damping > 0.1 else 0.0

    def _search(self, T, Z, f, G, D):
        """Step length by halving, its scores, state and objective; None if no step goes down."""
        part, along = self._penalised(T), self._penalised(D)
        slope, square, cross, length = self._dots((G, D), (part, part), (part, along), (along, along))
        if not slope < 0.0:
            return None
        dZ = self.loss.scores(D)
        self.passes += 1
        a, b = self.alpha * cross, self.alpha * length
        base, t = 0.5 * self.alpha * square, 1.0
        for _ in range(50):
            moved = Z + t * dZ
            state = self._evaluate(moved)
            f_new = state[0] + base + t * a + 0.5 * t * t * b
            if f_new <= f + _ARMIJO * t * slope + 2 * _ROUNDING * (abs(f) + self.loss.magnitude):
                return t, moved, state, f_new, dZ
            t *= 0.5
        return None

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

    def _result(self, T, Z, G, f, state, scale, optimality, status):
        gap = np.nan
        if self.alpha > 0.0:
            if self.free:
                T, Z, G, f, balanced = self._balance(T, Z, G, f, state)
                optimality = _largest(G) / scale
            else:
                balanced = True
            if balanced:
                part = self._penalised(G)
                gap = self._dot(part, part) / (2.0 * self.alpha)
        names = ("time", "fun", "optimality")
        rows = None
        if self.rows is not None:
            rows = {name: np.array(column) for name, column in zip(names, zip(*self.rows))}
        return OptimizeResult(
            x=T, fun=f, nit=self.nit, nfev=self.nfev, njev=self.nit + 1, status=status, success=status == 0,
            message=MESSAGES[status], optimality=optimality, dual_gap=gap, grad=G, n_cg=self.n_cg,
            n_data_passes=self.passes, history=rows,
        )  # fmt: skip

    def _balance(self, T, Z, G, f, state):
        """Newton steps in the free intercepts alone, so that the point's predictions are dual feasible.

        They cost no pass over the data. Returns whether the intercepts' gradient is zero to rounding.
        """
        T, loss = T.copy(), self.loss
        for _ in range(30):
            g = state[1].sum(axis=0)
            if np.max(np.abs(g)) <= 1e-14:
                break
            (P, rest, top), weight = loss.curvature(Z)
            P = P.copy()
            P[np.arange(len(P), like=P), top] = 1.0 - rest
            H = np.diag(weight @ P) - (P * weight[:, None]).T @ P
            # a matrix of few classes is a GPU's burden
            d = -np.linalg.lstsq(to_host(H), to_host(g), rcond=1e-12)[0]
            d = np.asarray(d, like=g)
            size = np.max(np.abs(g))
            for t in (1.0, 0.5, 0.25, 0.125):
                trial = self._evaluate(Z + t * d)
                if np.max(np.abs(trial[1].sum(axis=0))) < size:
                    break
            else:
                break
            T[-1] += t * d
            f += trial[0] - state[0]
            Z, state = Z + t * d, trial
        G = self._gradient(T, state[1])
        return T, Z, G, f, float(np.max(np.abs(G[-1]))) <= 1e-12


def _largest(A):
    """max |A|; one number, wherever A is."""
    return float(np.abs(A).max()) if A.size else 0.0
