"""The piecewise quadratic model of OBA on the GPU; the version of that in ``_cython``.

``solve_model`` is the same subspace method. It identifies the orthant and solves on the free variables, by
conjugate gradients or directly. The corrective cycle and the projected line search follow. Coordinate
descent, which the CPU puts before it, is left out: its steps wait for each other. All vectors stay on the
device. A round of the corrective cycle and a trial of the search bring three numbers back each. A step that
would cross zeros brings its vectors, for the crossings are sorted in main memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import to_host
from ..._typing import Array, DeviceArray
from ..shared._compile import kernel
from ..shared._operators import QuadOperator
from ..shared._reduce import block_of, finish, over, reduced

# steps of conjugate gradients between two tests of whether they are done
_STEPS_A_CHECK = 4


def solve_model(
    op: QuadOperator,
    x0: DeviceArray,
    g0: DeviceArray,
    l1: DeviceArray,
    x: DeviceArray,
    effort: Any,
    one_sided: bool = False,
) -> tuple[float, int, int, int, int]:
    """Minimise q(x) = g0.(x - x0) + 1/2 (x - x0).H(x - x0) + sum l1 |x| from x0 over m variables.

    As on the CPU, but without sweeps. A face is solved directly where ``op.direct`` says that this costs no
    more than a few products. ``one_sided``: variables with a penalty, l1 > 0, must not be negative, and are
    not in x0.
    """
    op.crossed = 0
    if op.size == 0:
        return 0.0, 0, 0, 0, 0
    q, x[:] = 0.0, x0
    search = _Search(op, x0, g0, l1, x, one_sided)
    res, moving, _ = search.evaluate(x, np.zeros_like(x), None)
    search.swap()
    goal, holds, cycle, n_cycles, first = effort.forcing * res, effort.holds, 0, 0, 0
    while cycle < effort.max_cycles and moving and (cycle == 0 or res > goal):
        cycle += 1
        n_cycles += 1
        rounds, n_fixed = search.correct(effort.cg_tol, effort.cg_max, holds)
        if cycle == 1:
            first = rounds
        alpha, trials = 1.0, 0
        while True:
            found = search.try_step(alpha)
            # one-sided variables cannot cross zero
            may_cross = trials == 0 and not one_sided
            straight = search.try_straight(min(found[2], q)) if may_cross else None
            op.crossed += straight is not None
            res_new, moving_new, q_new = straight or found
            if q_new <= q:
                break
            alpha *= 0.5
            trials += 1
            if trials > 40 or (n_fixed and trials > 2):
                break
        if not q_new <= q:
            if not n_fixed:
                break
            # no descent because of the fixed variables: repeat this cycle without fixing any
            holds = 0
            cycle -= 1
            search.evaluate(x, search.step_of(x), search.hp)
            search.swap()
            continue
        stalled = q - q_new <= 1e-15 * abs(q)
        holds, q, res, moving = effort.holds, q_new, res_new, moving_new
        search.accept()
        if stalled:
            break
    return -q, n_cycles, first, search.n_cg, search.n_direct


def crossing_step(x: Array, grad: Array, l1: Array, d: Array, hd: Array) -> Array | None:
    """x + t d, 0 <= t <= 1, where q is least along d; None where q does not fall. All in main memory.

    The slope of q rises with its curvature d.hd, and by 2 l1 |d| where a variable crosses zero.
    """
    curve, jumps = float(d @ hd), l1 * np.abs(d)
    slope = float(d @ grad + jumps @ np.where(x == 0.0, 1.0, np.sign(x) * np.sign(d)))
    if not (slope < 0.0 < curve):
        return None
    crossing = np.flatnonzero(x * d < 0.0)
    at = -x[crossing] / d[crossing]
    crossing, at = crossing[at < 1.0], at[at < 1.0]
    order = np.argsort(at, kind="stable")
    crossing, at = crossing[order], at[order]
    slopes = slope + np.append(0.0, 2.0 * np.cumsum(jumps[crossing]))
    # the first crossing after which q rises; the minimum is there or before
    ends = np.flatnonzero(slopes[1:] + at * curve >= 0.0)
    k = int(ends[0]) if len(ends) else len(at)
    t = -slopes[k] / curve
    if k < len(at) and t > at[k]:
        trial = x + at[k] * d
        trial[crossing[k]] = 0.0
        return trial
    return x + min(t, 1.0) * d


class _Search:
    """Vectors of one model: the point, its face, the direction, the trial."""

    def __init__(
        self,
        op: QuadOperator,
        x0: DeviceArray,
        g0: DeviceArray,
        l1: DeviceArray,
        x: DeviceArray,
        one_sided: bool = False,
    ) -> None:
        self.one_sided = int(one_sided)
        self.op, self.x0, self.g0, self.l1, self.x, self.m = op, x0, g0, l1, x, op.size
        rows = np.empty((11, self.m), like=x)
        self.grad, self.d, self.r, self.p, self.hp, self.pg, self.trial, self.step = rows[:8]
        self.grad_new, self.pg_new, self.hd = rows[8:]
        self.kind, self.kind_new = np.empty((2, self.m), dtype=np.int8, like=x)
        self.n_cg = self.n_direct = 0

    def step_of(self, x: DeviceArray) -> DeviceArray:
        """x - x0, with its product by H in ``hp``."""
        np.subtract(x, self.x0, out=self.step)
        self.op.product(self.step, self.hp)
        return self.step

    def evaluate(self, x: DeviceArray, step: DeviceArray, hp: DeviceArray | None) -> tuple[float, int, float]:
        """Residual, number of moving variables and value of q at x = x0 + step. `swap` adopts its face."""
        hp = step if hp is None else hp  # a step of zeros is its own product
        given = (x, step, hp, self.x0, self.g0, self.l1, self.one_sided, self.m)
        args = (*given, self.grad_new, self.pg_new, self.kind_new)
        res, moving, q = finish(reduced("shared/model", "sk_model_evaluate", self.m, args, x, 3), maxima=1)
        return float(res), int(moving), float(q)

    def swap(self) -> None:
        self.grad, self.grad_new = self.grad_new, self.grad
        self.pg, self.pg_new = self.pg_new, self.pg
        self.kind, self.kind_new = self.kind_new, self.kind

    def try_step(self, alpha: float) -> tuple[float, int, float]:
        args = (self.x, self.d, self.x0, self.kind, float(alpha), self.m, self.trial, self.step)
        over("shared/model", "sk_model_trial", self.m, args)
        self.op.product(self.step, self.hp)
        return self.evaluate(self.trial, self.step, self.hp)

    def try_straight(self, least: float) -> tuple[float, int, float] | None:
        """The best point of x + t d, 0 <= t <= 1, if d crosses zeros and q is below ``least`` there."""
        cut = (self.kind == 1) & ((self.x + self.d) * self.x < 0.0)
        if not bool(cut.any()):
            return None
        self.op.product(self.d, self.hd)
        trial = crossing_step(*map(to_host, (self.x, self.grad, self.l1, self.d, self.hd)))
        if trial is None:
            return None
        kept, kept_step, kept_hp = self.trial.copy(), self.step.copy(), self.hp.copy()
        self.trial[:] = np.asarray(trial, like=self.x)
        self.step_of(self.trial)
        found = self.evaluate(self.trial, self.step, self.hp)
        if found[2] < least:
            return found
        self.trial[:], self.step[:], self.hp[:] = kept, kept_step, kept_hp
        self.evaluate(self.trial, self.step, self.hp)
        return None

    def accept(self) -> None:
        self.x[:] = self.trial
        self.swap()

    def correct(self, cg_tol: float, cg_max: int, holds: int) -> tuple[int, int]:
        """The direction d on the face, corrected; rounds of correction and variables fixed at zero."""
        self.d[:] = 0.0
        rounds = n_fixed = 0
        while True:
            if self.op.direct and self._solve(n_fixed):
                self.n_direct += 1
            else:
                self.n_cg += self._cg(cg_tol, cg_max, warm=rounds > 0)
            args = (self.x, self.pg, int(rounds < holds), self.m, self.d, self.kind)
            bad, now_fixed, left = finish(
                reduced("shared/model", "sk_model_correct", self.m, args, self.x, 3)
            )
            n_fixed += int(now_fixed)
            if not bad:
                return rounds, n_fixed
            rounds += 1
            if not left:
                return rounds, n_fixed

    def _solve(self, n_fixed: int) -> bool:
        """The direct solve on the face; False where rounding left no positive definite matrix."""
        face = (self.kind == 1) | (self.kind == 2)
        self.r[:] = np.where(face, -self.pg, 0.0)
        if n_fixed:
            # product of H and the steps of the fixed variables
            self.op.product(np.where(face, 0.0, self.d), self.hd)
            self.r[:] = np.where(face, self.r - self.hd, 0.0)
        found = self.op.solve_face(self.kind, self.r)
        if found is None:
            return False
        self.d[:] = np.where(face, found, self.d)
        return True

    def _cg(self, tol: float, max_steps: int, warm: bool) -> int:
        """Steps of conjugate gradients on the face from the given d; d of the other variables is fixed."""
        op, m = self.op, self.m
        if warm:
            op.product(self.d, self.hd)
        args = (self.pg, self.hd, self.kind, op.diagonal, int(warm), m, self.r, self.p)
        part = reduced("shared/model", "sk_model_cg_start", m, args, self.x, 3)
        state, other = np.empty((2, 4), like=self.x)
        kernel("shared/model", "sk_model_cg_open")(
            1, block_of(len(part)), (part, len(part), float(tol), state)
        )
        for step in range(max_steps):
            if step % _STEPS_A_CHECK == 0 and step:
                found = to_host(state)
                if found[2]:
                    return int(found[3])
            op.product(self.p, self.hp)
            curve = self.p @ self.hp
            args = (self.p, self.hp, self.kind, op.diagonal, state, curve, int(warm), m, self.d, self.r)
            moved = reduced("shared/model", "sk_model_cg_move", m, args, self.x, 2)
            args = (self.r, self.kind, op.diagonal, state, curve, moved, len(moved), m, self.p, other)
            over("shared/model", "sk_model_cg_turn", m, args)
            state, other = other, state
        return max_steps
