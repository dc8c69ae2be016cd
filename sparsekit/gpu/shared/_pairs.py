"""Kernels of quasi-Newton methods on the GPU; the version of that in ``_cython``.

Everything of length n lives on the device. The small matrices of the pairs are in main memory, where the
system of twice as many unknowns as pairs is solved. A direction fetches what changed in them once. Products
are cuBLAS's. The Gram matrix of the variables that enter and leave has a kernel, because to choose their rows
would wait for the device.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import enlarged, to_host
from ..._cython.shared._pairs import INITIAL_CAPACITY
from ..._typing import DeviceArray
from ._box import leaves
from ._compile import THREADS, kernel, sm_count
from ._operators import QuadOperator

_TILE = 32  # side of the part of a Gram matrix that a block sums, as in the source


class Pairs:
    """The last ``memory`` pairs (s, y) of n variables, and the steps of their compact L-BFGS matrix.

    As the CPU's. ``put``, ``correct`` and ``direction`` wait for the device once each, ``set_free`` does not.
    What it changes in the Gram matrix of the free variables arrives with the next direction.
    """

    def __init__(self, n: int, memory: int) -> None:
        import cupy

        self.n, self.most, self.memory, self.unit = int(n), int(memory), 0, 1.0
        self.W = cupy.zeros((n, 0))
        self.free, self.fresh = cupy.zeros(n, dtype=np.uint8), cupy.zeros(n, dtype=np.uint8)
        self.sts, self.sty, self.yty = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self.gram = np.zeros((0, 0))  # of the free rows
        self.order: list[int] = []  # slots, the oldest first
        self._allocate(min(self.most, INITIAL_CAPACITY))

    def _allocate(self, capacity: int) -> None:
        import cupy

        old, self.memory, self.c = self.memory, capacity, 2 * capacity
        c, former, gram = self.c, self.W, self.gram
        self.W, self.gram = cupy.zeros((self.n, c)), np.zeros((c, c))
        # the steps' halves stay first, those of the gradients come after the new capacity
        halves = (slice(0, old), slice(0, old)), (slice(capacity, capacity + old), slice(old, 2 * old))
        for here, there in halves:
            self.W[:, here] = former[:, there]
            for also, too in halves:
                self.gram[here, also] = gram[there, too]
        self.sts, self.sty = (
            enlarged(self.sts, (capacity, capacity)),
            enlarged(self.sty, (capacity, capacity)),
        )
        self.yty = enlarged(self.yty, (capacity,))
        side = -(-c // _TILE)
        self.tiles = [(j, k) for j in range(side) for k in range(j + 1)]
        # variables that changed and that are free, W_F^T g_F, tiles of the Gram matrix's change
        self.box = cupy.zeros(2 + c + len(self.tiles) * _TILE**2)
        self.changes, self.times, self.delta = self.box[:2], self.box[2 : 2 + c], self.box[2 + c :]
        self._pending = False  # whether such a change is on the device only

    def __len__(self) -> int:
        return len(self.order)

    def clear(self) -> None:
        """Remove all pairs."""
        self.order = []
        self.W[:] = 0.0
        self.gram[:] = 0.0
        self._pending = False

    def put(
        self,
        x: DeviceArray,
        x_new: DeviceArray,
        g: DeviceArray,
        g_new: DeviceArray,
        length: float = 1.0,
        unit: float = 1.0,
    ) -> None:
        """Take the pair s = x_new - x, y = g_new - g (n,), instead of the oldest if the memory is full.

        The pair is divided by ``length``, and all y by ``unit``, that of the first pair, as on the CPU.
        """
        if self.most == 0:
            return
        if self._pending:
            self._settle(self.box.get())
        slot = self.order.pop(0) if len(self.order) == self.most else len(self.order)
        if slot == self.memory:
            self._allocate(min(2 * slot, self.most))
        if not self.order:
            self.unit = unit
        m = self.memory
        a, b = slot, m + slot
        pair = np.stack([(x_new - x) / length, (g_new - g) / (length * self.unit)])
        self.W[:, a], self.W[:, b] = pair
        free = np.where(self.free, pair, 0.0)
        s_on, y_on, s_off, y_off = to_host(np.concatenate([free, pair - free]) @ self.W)
        self.sts[slot] = self.sts[:, slot] = (s_on + s_off)[:m]
        self.sty[slot] = (s_on + s_off)[m:]  # s_slot . y_j
        self.sty[:, slot] = (y_on + y_off)[:m]
        self.yty[slot] = (y_on + y_off)[b]
        self.gram[a], self.gram[b] = s_on, y_on
        self.gram[:, a], self.gram[:, b] = s_on, y_on
        self.order.append(slot)

    def smallest_curvature(self) -> float:
        """The least y.y / s.y of the pairs; 0 without pairs."""
        least = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            for slot in self.order:
                t = float(self.yty[slot] / self.sty[slot, slot])
                if least == 0.0 or t < least:
                    least = t
        return least * self.unit

    def newest_products(self) -> tuple[float, float, float]:
        """(s.s, s.y, y.y) of the pair `newest`."""
        slot = self.order[-1]
        return float(self.sts[slot, slot]), float(self.sty[slot, slot]), float(self.yty[slot])

    def newest(self) -> tuple[DeviceArray, DeviceArray]:
        """s and y (n,) of the last pair that was put, divided by its length, and y by ``unit``: views."""
        return self.W[:, self.order[-1]], self.W[:, self.memory + self.order[-1]]

    def restricted(self, rows: DeviceArray | None) -> Pairs:
        """A copy of the pairs on the variables ``rows`` (m,), all where it is None; none of them is free."""
        k, slots = len(self.order), np.array(self.order, dtype=np.intp)
        part, W = Pairs(self.n if rows is None else len(rows), k), self.W if rows is None else self.W[rows]
        if k > part.memory:
            part._allocate(k)
        part.W[:, :k], part.W[:, k:] = W[:, slots], W[:, self.memory + slots]
        pick = np.ix_(slots, slots)
        part.sts, part.sty, part.yty = self.sts[pick], self.sty[pick], self.yty[slots]
        part.order, part.unit = list(range(k)), self.unit
        return part

    def operator(self, theta: float, ridge: float) -> LBFGSOperator:
        """The `LBFGSOperator` of this copy."""
        return LBFGSOperator(self, theta, ridge)

    def set_free(self, free: DeviceArray) -> None:
        """Make ``free`` (n,), of zeros and ones, the set of free variables."""
        if not self.order:
            self.free[:] = free
            return
        if self._pending:
            self._settle(self.box.get())
        self.fresh[:] = free
        self.changes[0], self.changes[1] = (self.fresh != self.free).sum(), self.fresh.sum()
        self._change()

    def correct(self, x: DeviceArray, p: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> int:
        """Step 8 of Algorithm 3: variables at a bound that p would leave are no longer free.

        Returns their number.
        """
        if self._pending:
            self._settle(self.box.get())
        self.fresh[:] = np.where(leaves(x, p, lower, upper), 0, self.free)
        self.changes[0], self.changes[1] = (self.fresh != self.free).sum(), self.fresh.sum()
        count = int(self.changes.get()[0])
        if count and self.order:
            self._change()
        elif count:
            self.free, self.fresh = self.fresh, self.free
        return count

    def _change(self) -> None:
        """Sum the Gram matrix's change from the rows of ``free`` to those of ``fresh``, the new ``free``."""
        tiles = len(self.tiles)
        blocks = min(-(-self.n // THREADS), max(1, 4 * sm_count() // tiles))
        part = np.empty((blocks, self.delta.size), like=self.W)
        args = self.n, self.c, self.W, self.fresh, self.free, self.changes, part
        kernel("shared/pairs", "sk_pairs_gram")((blocks, tiles), THREADS, args)
        part.sum(axis=0, out=self.delta)
        self.free, self.fresh = self.fresh, self.free
        self._pending = True

    def _settle(self, box: np.ndarray) -> None:
        """Take the change, fetched with ``box``, into the Gram matrix."""
        if box[0] >= box[1]:  # it was summed anew
            self.gram[:] = 0.0
        for (j, k), tile in zip(self.tiles, box[2 + self.c :].reshape(-1, _TILE, _TILE)):
            rows, columns = slice(j * _TILE, (j + 1) * _TILE), slice(k * _TILE, (k + 1) * _TILE)
            target = self.gram[rows, columns]
            target += tile[: target.shape[0], : target.shape[1]]
            if j != k:
                self.gram[columns, rows] = target.T
        self._pending = False

    def free_set(self) -> DeviceArray:
        """A copy of the free set (n,), of zeros and ones."""
        return self.free.copy()

    def direction(self, g: DeviceArray, theta: float, p: DeviceArray) -> bool:
        """p (n,) becomes the solution of (3.2): B_FF p_F = -g_F on the free set F, 0 elsewhere.

        Returns whether the small system could be solved.
        """
        return self._solve(g, float(theta), 1.0, p)

    def _solve(self, g: DeviceArray, theta: float, shift: float, p: DeviceArray) -> bool:
        # (B + (shift - 1) theta I)_FF p_F = -g_F by Sherman-Morrison-Woodbury; t is theta in the unit of Y
        v, t = np.zeros(self.c), theta / self.unit
        if self.order:
            self.times[:] = np.where(self.free, g, 0.0) @ self.W
            times = self._fetch()
            m, k, slots = self.memory, len(self.order), np.array(self.order, dtype=np.intp)
            with np.errstate(all="ignore"):  # what is not finite becomes a direction that is refused
                system, scale = self._assemble(t, shift, 1.0)
                rhs = scale * np.concatenate([times[m + slots], t * times[slots]])
                try:
                    found = scale * np.linalg.solve(system, rhs)
                except np.linalg.LinAlgError:
                    return False
                v[m + slots], v[slots] = found[:k] / (t * shift), found[k:] / shift
        self._along(self.free, g, v, theta * shift, p)
        return True

    def _along(self, free: DeviceArray, g: DeviceArray, v: np.ndarray, theta: float, p: DeviceArray) -> None:
        """p = -(g + W v) / theta on the variables of ``free``, 0 elsewhere."""
        moved = g + self.W @ np.asarray(v, like=g) if self.order else g
        p[:] = np.where(free, moved / -theta, 0.0)

    def _fetch(self) -> np.ndarray:
        """W_F^T g_F in main memory, and with it the Gram matrix's change if there is one."""
        if not self._pending:
            return self.times.get()
        box = self.box.get()
        self._settle(box)
        return box[2 : 2 + self.c]

    def _assemble(self, t: float, shift: float, of_free: float) -> tuple[np.ndarray, np.ndarray]:
        """N^-1 - of_free V_F^T V_F / (t shift) of theta = t, (2k, 2k), rows and columns times a scale (2k,).

        The scale brings the diagonals -D and t S^T S to size 1.
        """
        m, k = self.memory, len(self.order)
        slots = np.array(self.order, dtype=np.intp)
        pick = np.ix_(slots, slots)
        sts, sty = self.sts[pick], self.sty[pick]
        both = np.concatenate([m + slots, slots])
        gram = of_free * self.gram[np.ix_(both, both)]
        scale = 1.0 / np.sqrt(np.concatenate([np.diag(sty), t * np.diag(sts)]))
        system = np.empty((2 * k, 2 * k))
        system[:k, :k] = -np.diag(np.diag(sty)) - gram[:k, :k] / (t * shift)
        system[k:, :k] = np.tril(sty, -1) - gram[k:, :k] / shift
        system[:k, k:] = system[k:, :k].T
        system[k:, k:] = t * (sts - gram[k:, k:] / shift)
        return system * np.outer(scale, scale), scale


class LBFGSOperator(QuadOperator):
    """B + ridge theta I of ``pairs``, a copy of `Pairs.restricted`; its free set changes with each solve.

    W lives on the device, the small systems in main memory. LinAlgError where N is singular by rounding.
    """

    direct = always_direct = True

    def __init__(self, pairs: Pairs, theta: float, ridge: float) -> None:
        self.pairs, self.size, self.theta = pairs, pairs.n, float(theta)
        self.ridge, self.shift = float(ridge), 1.0 + float(ridge)
        k = len(pairs)
        with np.errstate(all="ignore"):
            system, scale = pairs._assemble(theta / pairs.unit, 1.0, 0.0)
            scale[k:] *= theta / pairs.unit
            middle = pairs.unit * np.linalg.inv(system) * np.outer(scale, scale)
        if not np.isfinite(middle).all():
            raise np.linalg.LinAlgError("the middle matrix of the L-BFGS pairs is singular")
        self.middle = np.roll(middle, (k, k), (0, 1))  # S comes first in W
        self.diagonal = np.full_like(pairs.W, self.theta * self.shift, shape=self.size)
        self.every = np.ones_like(pairs.free)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        if not self.size:
            return
        theta = self.theta * self.shift
        short = self.middle @ (v @ self.pairs.W).get() / -theta if len(self.pairs) else np.empty(0)
        # with -1 / theta instead of theta this is theta (v + W short)
        self.pairs._along(self.every, v, short, -1.0 / theta, out)

    def _solve(self, free: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        found = np.empty_like(rhs)
        self.pairs.set_free(free.astype(np.uint8))
        if not self.pairs._solve(-rhs, self.theta, self.shift, found):
            return None
        # the right side once more: whether rounding left the matrix positive definite
        along = float(rhs @ found)
        return found if along > 0.0 or not bool(rhs.any()) else None

    def solve_face(self, kind: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        return self._solve((kind == 1) | (kind == 2), rhs)

    def solve(self, rhs: DeviceArray, free: DeviceArray | None = None) -> DeviceArray:
        """Solve B[free, free] x = rhs, (f,); all variables where ``free`` is None.

        Raises LinAlgError where the matrix is not positive definite by rounding.
        """
        chosen = np.arange(self.size, like=self.diagonal) if free is None else free
        if rhs.shape != (len(chosen),):
            raise ValueError(f"rhs must have length {len(chosen)}, one entry a free variable; got {len(rhs)}")
        is_free, whole = np.zeros_like(self.every), np.zeros_like(self.diagonal)
        is_free[chosen], whole[chosen] = 1, rhs
        found = self._solve(is_free, whole)
        if found is None:
            raise np.linalg.LinAlgError("the reduced L-BFGS matrix is not positive definite")
        return found[chosen]


def pair_norms(
    x: DeviceArray, x_new: DeviceArray, g: DeviceArray, g_new: DeviceArray
) -> tuple[float, float, float]:
    """(s.y, s.s, y.y) of s = x_new - x and y = g_new - g."""
    s, y = x_new - x, g_new - g
    sy, ss, yy = to_host(np.stack([s @ y, s @ s, y @ y]))
    return float(sy), float(ss), float(yy)
