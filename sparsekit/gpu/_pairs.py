"""Kernels of the bound-constrained quasi-Newton method on the GPU; the twin of ``sparsekit._cython._pairs``.

Everything of length n lives on the device. The small matrices of the pairs are in main memory, where the
system of twice as many unknowns as pairs is solved: a direction fetches what changed in them once. Sums have
a fixed order: the same data gives the same bits on the same kind of device.
"""

from __future__ import annotations

import numpy as np

from .._arrays import enlarged, to_host
from .._typing import DeviceArray
from ._compile import THREADS, Sizes, kernel, sm_count
from ._reduce import WARP, block_of, finish, over, reduced

_TILE = 32  # side of the part of a Gram matrix that a block sums, as in the source
_WIDEST = 128  # columns of W that a block takes
_ROOM = 2**22  # numbers in the blocks' Gram matrices at most

ROOM = 64  # pairs that there is room for at first


def _launch(name: str, blocks: Sizes, threads: int, args: tuple[object, ...]) -> None:
    kernel("pairs", name)(blocks, threads, args)


def _reduced(name: str, n: int, args: tuple[DeviceArray, ...], k: int = 1) -> DeviceArray:
    return reduced("pairs", name, n, (n, *args), args[0], k)


def _total(part: DeviceArray, out: DeviceArray) -> None:
    """out = sums of part (blocks, size) over the blocks."""
    blocks, size = len(part), part.size // len(part)
    rows = 4
    while rows < THREADS // 8 and rows < blocks:
        rows *= 2
    _launch("sk_pairs_total", -(-size // 8), 8 * rows, (part, blocks, size, out))


class Pairs:
    """The last ``memory`` pairs (s, y) of n variables, and the steps of their compact L-BFGS matrix.

    As the CPU's. ``put``, ``correct`` and ``direction`` wait for the device once each, ``set_free`` does not:
    what it changes in the Gram matrix of the free variables arrives with the next direction.
    """

    def __init__(self, n: int, memory: int) -> None:
        import cupy

        self.n, self.most, self.memory = int(n), int(memory), 0
        self.W = cupy.zeros((n, 0))
        self.free, self.fresh = cupy.zeros(n, dtype=np.uint8), cupy.zeros(n, dtype=np.uint8)
        self.sts, self.sty, self.yty = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self.gram = np.zeros((0, 0))  # of the free rows
        self.order: list[int] = []  # slots, the oldest first
        self._make_room(min(self.most, ROOM))

    def _make_room(self, room: int) -> None:
        import cupy

        old, self.memory, self.c = self.memory, room, 2 * room
        c, former, gram = self.c, self.W, self.gram
        self.W, self.gram = cupy.zeros((self.n, c)), np.zeros((c, c))
        # the steps' halves stay first, those of the gradients come after the new room
        halves = (slice(0, old), slice(0, old)), (slice(room, room + old), slice(old, 2 * old))
        for here, there in halves:
            self.W[:, here] = former[:, there]
            for also, too in halves:
                self.gram[here, also] = gram[there, too]
        self.sts, self.sty = enlarged(self.sts, (room, room)), enlarged(self.sty, (room, room))
        self.yty = enlarged(self.yty, (room,))
        side = -(-c // _TILE)
        self.tiles = [(j, k) for j in range(side) for k in range(j + 1)]
        # variables that changed and that are free, W_F^T g_F, tiles of the Gram matrix's change
        self.box = cupy.zeros(2 + c + len(self.tiles) * _TILE**2)
        self.changes, self.times, self.delta = self.box[:2], self.box[2 : 2 + c], self.box[2 + c :]
        self._pending = False  # whether such a change is on the device only

    def __len__(self) -> int:
        return len(self.order)

    def clear(self) -> None:
        """Forget all pairs."""
        self.order = []
        self.W[:] = 0.0
        self.gram[:] = 0.0
        self._pending = False

    def _grid(self) -> tuple[tuple[int, int], int, int]:
        """Blocks, threads and columns of a block for a pass over all rows of W."""
        width = min(self.c, _WIDEST)
        threads = block_of(width * min(self.n, THREADS // width), THREADS)
        tiles = -(-self.c // width)
        rows = -(-self.n // (threads // width))
        return (max(1, min(rows, 8 * sm_count() // tiles)), tiles), threads, width

    def put(self, x: DeviceArray, x_new: DeviceArray, g: DeviceArray, g_new: DeviceArray) -> None:
        """Take the pair s = x_new - x, y = g_new - g (n,), in place of the oldest if there is no room."""
        if self.most == 0:
            return
        if self._pending:
            self._settle(self.box.get())
        slot = self.order.pop(0) if len(self.order) == self.most else len(self.order)
        if slot == self.memory:
            self._make_room(min(2 * slot, self.most))
        m, c = self.memory, self.c
        a, b = slot, m + slot
        args = self.n, c, self.W, a, b
        over("pairs", "sk_pairs_put", self.n, (*args, x, x_new, g, g_new))
        blocks, threads, width = self._grid()
        part = np.empty((blocks[0], 4, c), like=self.W)
        _launch("sk_pairs_products", blocks, threads, (*args, self.free, width, part))
        sums = np.empty((4, c), like=self.W)
        _total(part, sums)
        s_on, y_on, s_off, y_off = to_host(sums)
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
        return least

    def set_free(self, free: DeviceArray) -> None:
        """Make ``free`` (n,), of zeros and ones, the set of free variables."""
        if not self.order:
            self.free[:] = free
            return
        if self._pending:
            self._settle(self.box.get())
        self.fresh[:] = free
        _reduced("sk_pairs_changes", self.n, (self.fresh, self.free), 2).sum(axis=0, out=self.changes)
        self._change()

    def correct(self, x: DeviceArray, p: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> int:
        """Step 8 of Algorithm 3: variables at a bound that p would leave are no longer free.

        Returns their number.
        """
        if self._pending:
            self._settle(self.box.get())
        args = x, p, lower, upper, self.free, self.fresh
        _reduced("sk_pairs_correct", self.n, args, 2).sum(axis=0, out=self.changes)
        count = int(self.changes.get()[0])
        if count and self.order:
            self._change()
        elif count:
            self.free, self.fresh = self.fresh, self.free
        return count

    def _change(self) -> None:
        """Sum the Gram matrix's change from the rows of ``free`` to those of ``fresh``, the new ``free``."""
        tiles = len(self.tiles)
        blocks = min(-(-self.n // THREADS), max(1, 4 * sm_count() // tiles), max(1, _ROOM // self.delta.size))
        part = np.empty((blocks, self.delta.size), like=self.W)
        args = self.n, self.c, self.W, self.fresh, self.free, self.changes, part
        _launch("sk_pairs_gram", (blocks, tiles), THREADS, args)
        _total(part, self.delta)
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
        v = np.zeros(self.c)
        if self.order:
            blocks, threads, width = self._grid()
            part = np.empty((blocks[0], self.c), like=self.W)
            _launch("sk_pairs_times", blocks, threads, (self.n, self.c, self.W, self.free, g, width, part))
            _total(part, self.times)
            times = self._fetch()
            try:
                self._solve(times, float(theta), v)
            except np.linalg.LinAlgError:
                return False
        import cupy

        c = self.c if self.order else 0  # without pairs W need not be read
        args = self.n, c, self.W, self.free, g, cupy.asarray(v), float(theta), p
        over("pairs", "sk_pairs_direction", self.n, args, lanes=WARP)
        return True

    def _fetch(self) -> np.ndarray:
        """W_F^T g_F in main memory, and with it the Gram matrix's change if there is one."""
        if not self._pending:
            return self.times.get()
        box = self.box.get()
        self._settle(box)
        return box[2 : 2 + self.c]

    def _solve(self, times: np.ndarray, theta: float, v: np.ndarray) -> None:
        """v (c,) becomes what W multiplies in the direction; LinAlgError where the system is singular."""
        m, k = self.memory, len(self.order)
        slots = np.array(self.order, dtype=np.intp)
        pick = np.ix_(slots, slots)
        sts, sty = self.sts[pick], self.sty[pick]
        both = np.concatenate([m + slots, slots])
        gram = self.gram[np.ix_(both, both)]
        with np.errstate(all="ignore"):  # what is not finite becomes a direction that is refused
            # M^-1 - V_F^T V_F / theta, scaled so that the diagonals -D and theta S^T S have size 1
            scale = 1.0 / np.sqrt(np.concatenate([np.diag(sty), theta * np.diag(sts)]))
            system = np.empty((2 * k, 2 * k))
            system[:k, :k] = -np.diag(np.diag(sty)) - gram[:k, :k] / theta
            system[k:, :k] = np.tril(sty, -1) - gram[k:, :k]
            system[:k, k:] = system[k:, :k].T
            system[k:, k:] = theta * (sts - gram[k:, k:])
            rhs = scale * np.concatenate([times[m + slots], theta * times[slots]])
            found = scale * np.linalg.solve(system * np.outer(scale, scale), rhs)
            v[m + slots], v[slots] = found[:k] / theta, found[k:]


def free_variables(
    x: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray, free: DeviceArray
) -> DeviceArray:
    """free (n,) becomes 1 outside B(g) of (3.4), else 0.

    Returns the number of free variables as an array () of the device, so that nobody waits who does not ask.
    """
    return _reduced("sk_box_free", len(x), (x, g, lower, upper, free)).sum()


def feasible_part(
    x: DeviceArray, p: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray, out: DeviceArray
) -> float:
    """out (n,) becomes T(x, p) of (3.3); returns g . T(x, p)."""
    return float(finish(_reduced("sk_box_part", len(x), (x, p, g, lower, upper, out)))[0])


def feasible_slope(
    x: DeviceArray, p: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray
) -> float:
    """g . T(x, p)."""
    return float(finish(_reduced("sk_box_slope", len(x), (x, p, g, lower, upper)))[0])


def optimality(x: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> float:
    """max_i |T(x, -g)_i|."""
    return float(finish(_reduced("sk_box_optimality", len(x), (x, g, lower, upper)), maxima=1)[0])


def trial_point(
    x: DeviceArray, p: DeviceArray, alpha: float, lower: DeviceArray, upper: DeviceArray, out: DeviceArray
) -> None:
    """out (n,) becomes P(x + alpha p)."""
    over("pairs", "sk_box_trial", len(x), (len(x), x, p, float(alpha), lower, upper, out))


def longest_step(x: DeviceArray, p: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> float:
    """The largest step at which some variable is still on its way to its bound; p = T(x, p), x in the box."""
    return float(finish(_reduced("sk_box_longest", len(x), (x, p, lower, upper)), maxima=1)[0])


def pair_norms(
    x: DeviceArray, x_new: DeviceArray, g: DeviceArray, g_new: DeviceArray
) -> tuple[float, float, float]:
    """(s.y, s.s, y.y) of s = x_new - x and y = g_new - g."""
    sy, ss, yy = finish(_reduced("sk_pair_norms", len(x), (x, x_new, g, g_new), 3))
    return float(sy), float(ss), float(yy)
