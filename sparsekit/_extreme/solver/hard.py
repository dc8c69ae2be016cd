"""Hard negatives: the blocks of classes with a row's highest scores, searched for after some epochs.

A sample of some hundred classes seldom contains the few among ten thousand with high scores. When it does,
they have a large weight. The blocks with a row's highest scores are therefore in each of its steps, like the
most frequent classes. Only the rest of the sum is sampled. Before the first search they are sampled too: the
estimate of the sum is unbiased, with a larger error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._cython.extreme import _class_blocks as kernels

# Time of a step on a block, in the time of the block's scores, which use a tile of the table in a cache.
SCORES_A_STEP = 22.0
# Time of packing a feature's weights, in the time of the scores of one entry of a row.
PACKING_COST = 2.0
# Largest time of all searches, relative to that of the epochs.
SEARCH_PART = 0.5
# Largest number of searches, at intervals that double.
MAX_SEARCHES = 6


def with_hard_blocks(plan, rows, max_iter):
    """The plan with as many hard blocks as a step has others, if searching for them pays.

    A search scores all classes. One may take as long as all epochs, several together half as long.
    """
    if plan.n_taken == plan.n_blocks:
        return plan
    n_hard = min(plan.n_taken, plan.n_blocks - plan.n_head)
    hard = replace(plan, n_hard=n_hard)
    entries = max(1.0, rows.width * len(rows.y))
    epochs = plan.n_blocks / (SCORES_A_STEP * hard.n_taken)
    epochs *= 1.0 + PACKING_COST * min(rows.n_features, entries) / entries
    if epochs > max_iter:
        return plan
    n_searches = min(MAX_SEARCHES, max(1, int(SEARCH_PART * max_iter / epochs)))
    return replace(hard, searches=tuple(e for e in (2**i for i in range(n_searches)) if e < max_iter))


def is_due(options, epoch):
    """Whether the hard blocks are searched for after this many epochs of a run."""
    return options.plan is not None and epoch in options.plan.searches


def update_hard_blocks(state, rows, options, work, limits):
    """Find the hard blocks of each example by the current weights, for the next steps."""
    plan = options.plan
    if work.hard is None:
        work.hard = np.empty((len(rows.y), plan.n_hard), dtype=np.int32)
    work.hard[:] = -1
    best = np.full(work.hard.shape, np.finfo(state.W.dtype).min, dtype=state.W.dtype)
    used = np.arange(rows.n_features)
    if len(rows.indptr):
        is_used = np.zeros(rows.n_features, dtype=bool)
        is_used[rows.indices] = True
        used = np.flatnonzero(is_used)
    n_threads = max(1, min(options.n_threads, len(rows.y)))
    packed = np.empty((n_threads, rows.n_features * kernels.TILE * kernels.BLOCK), dtype=state.W.dtype)
    # a tile at a time, to check for KeyboardInterrupt and the time limit
    for first in range(plan.n_head, plan.n_blocks, kernels.TILE):
        if limits.reached() is not None:
            return
        kernels.find_hard_blocks(
            rows.data, rows.indices, rows.indptr, state.W, rows, state, work, used, first, best, packed,
        )  # fmt: skip
