"""Inference over labels with pair scores on a GPU: versions of those in ``_cython``.

A block takes one row after the other. It decides what labels it can, builds the graph of the others and
solves it. So a batch is one launch whatever is left of its rows. Sums over rows are in a fixed order.
"""

from __future__ import annotations

import numpy as np

from ..._typing import Array, DeviceArray
from ..shared._compile import kernel, sm_count
from ..shared._sparse import Lines
from ._factor_graph import plain_options, shared_bytes, state_size

# Bytes of shared memory for a row's labels and what is left of its graph. Three blocks and more fit a
# multiprocessor from compute capability 8 on.
SHARED_ROW = 48 * 1024
# bytes of global memory for all blocks' rows that are larger than that
SPARE = 2**31
_ROWS = 64  # of a part of the sums over the rows, at least


class LabelGraph:
    """Pairs of labels and factors over labels, on the current device.

    Parameters
    ----------
    n_labels, n_pairs : int
    arrays : dict
        The NumPy arrays that the CPU version takes, one entry longer than needed.
    """

    def __init__(self, n_labels: int, n_pairs: int, arrays: dict[str, Array]) -> None:
        import cupy

        self.n_labels, self.n_pairs = n_labels, n_pairs
        linear, orout = arrays["linear"], arrays["orout"]
        n_in_linear = int(linear[-1])
        held = np.concatenate([arrays["linear_label"][:-1], arrays["orout_label"][:-1]]).astype(np.int64)
        n_entries = len(held)
        coefficients = np.ones(n_entries)
        coefficients[:n_in_linear] = arrays["a"][:-1]
        coefficients[n_in_linear + orout[1:] - 1] = -1.0
        negated = np.zeros(n_entries, dtype=np.int32)
        negated[n_in_linear:] = arrays["negated"][:-1]
        ints = [arrays[name][:n_labels] for name in ("alone", "may_fall", "may_rise")]
        ints += [linear, n_in_linear + orout, held, negated, arrays["relation"][:-1]]
        ints += [_starts(np.bincount(held, minlength=n_labels)), np.argsort(held, kind="stable")]
        self._counts = (len(linear) - 1, len(orout) - 1, n_entries)
        self._plan = (
            cupy.asarray(np.array([n_labels, *self._counts], dtype=np.int64)),
            cupy.asarray(np.concatenate([*ints, [0]]).astype(np.int32)),
            cupy.asarray(np.concatenate([coefficients, arrays["bound"]])),
        )
        start, other, pair = arrays["start"], arrays["other"][:-1], arrays["pair"][:-1]
        owner = np.repeat(np.arange(n_labels), np.diff(start))
        first = np.empty(n_pairs + 1, dtype=np.int32)
        second = np.empty(n_pairs + 1, dtype=np.int32)
        once = owner < other
        first[pair[once]], second[pair[once]] = owner[once], other[once]
        self._ends = cupy.asarray(first), cupy.asarray(second)
        self._pairs = tuple(
            cupy.asarray(arrays[name].astype(np.int32)) for name in ("start", "other", "pair")
        )

    def live(
        self, plus: DeviceArray, minus: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """start, other, pair of the pairs that have a score, gain and loss, as `marginals` takes them."""
        import cupy

        start, other, pair = self._pairs
        gain, loss = cupy.zeros(self.n_labels + 1), cupy.zeros(self.n_labels + 1)
        of_label = Lines(start, pair, cupy.ones(len(pair)))  # sums over a label's pairs are products
        for side, sums in ((plus, gain), (minus, loss)):
            of_label.product(side, sums[:-1])
        has = (plus > 0) | (minus > 0)
        keep = has[pair]
        keep[-1] = True  # the entry more than needed
        before = cupy.zeros(len(pair) + 1, dtype=np.int32)
        before[1:] = cupy.cumsum(keep)
        return before[start], other[keep], pair[keep], gain, loss

    def marginals(
        self, eta: DeviceArray, start: DeviceArray, other: DeviceArray, pair: DeviceArray, plus: DeviceArray,
        minus: DeviceArray, gain: DeviceArray, loss: DeviceArray, options: dict[str, float], mu: DeviceArray,
    ) -> tuple[DeviceArray, DeviceArray]:  # fmt: skip
        """mu (n, K) of scores eta (n, K), pair scores plus - minus; statuses (n,) and passes.

        The arrays are those of the CPU version; `live` makes start, other, pair, gain and loss.
        """
        import cupy

        n, K = len(eta), self.n_labels
        if eta.shape != (n, K) or mu.shape != (n, K) or len(start) != K + 1 or min(len(gain), len(loss)) < K:
            raise ValueError("arrays do not have the shapes that the labels ask for")
        if min(len(plus), len(minus)) < self.n_pairs or len(other) != len(pair):
            raise ValueError("arrays do not have the shapes that the labels ask for")
        statuses, passes = cupy.zeros(n, dtype=np.int32), cupy.zeros(n, dtype=np.int64)
        if not n or not K:
            return statuses, passes
        n_linear, n_orout, n_entries = self._counts
        # scores of pairs: one may have both. More blocks than a multiprocessor holds would only wait
        n_live = int(cupy.count_nonzero(plus > 0) + cupy.count_nonzero(minus > 0))
        n_row = 3 * K + (4 * K + 3 * n_linear + n_entries + 1) // 2
        n_slot = 2 * n_live + n_entries
        n_ints = 3 * n_slot + K + n_live + 2 * n_linear + n_orout + 3
        n_graph = state_size(K, n_live, n_slot, n_live, n_linear + n_orout) + 4 * n_slot + n_live + n_linear
        n_graph += (n_ints + 1) // 2
        shared = min(SHARED_ROW, shared_bytes()) // 8
        # what does not fit into shared memory
        n_shared = min(shared, n_row + n_graph)
        n_spare = (0 if n_row + n_graph <= n_shared else n_row + n_graph) or 1
        n_blocks = max(1, min(n, 4 * sm_count(), SPARE // (8 * n_spare + 4 * self.n_pairs)))
        kernel("factor_graph/label_graph", "sk_label_graph_marginals")(
            n_blocks,
            _threads(K),
            (
                *self._plan, start, other, pair, plus, minus, gain, loss, eta, n, mu, statuses, passes,
                cupy.zeros(1, dtype=np.int32), cupy.empty((n_blocks, n_spare)), n_spare,
                cupy.empty((n_blocks, self.n_pairs + 1), dtype=np.int32), self.n_pairs + 1, n_row, n_shared,
                *plain_options(options),
            ),
            shared=8 * n_shared,
        )  # fmt: skip
        return statuses, passes

    def pair_sums(self, mu: DeviceArray, weight: DeviceArray, high: DeviceArray, low: DeviceArray) -> None:
        """high, low (n_pairs,) += sums over rows of weight times min(mu_j, mu_k), max(0, mu_j + mu_k - 1)."""
        import cupy

        n, P = len(mu), self.n_pairs
        if mu.shape != (n, self.n_labels) or weight.shape != (n,) or min(len(high), len(low)) < P:
            raise ValueError("arrays do not have the shapes that the labels ask for")
        if not n or not P:
            return
        blocks, threads = -(-P // 128), 128
        n_parts = max(1, min(-(-n // _ROWS), 8 * sm_count() // blocks))
        parts = cupy.empty((n_parts, 2, P))
        launch = kernel("factor_graph/label_graph", "sk_label_graph_pair_sums")
        launch((blocks, n_parts), threads, (mu, weight, n, self.n_labels, *self._ends, P, parts))
        for side, sums in zip((high, low), parts.sum(axis=0)):
            side[:P] += sums


def _starts(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)])


def _threads(n_labels: int) -> int:
    threads = 32
    while threads < 256 and 2 * threads <= n_labels:
        threads *= 2
    return threads
