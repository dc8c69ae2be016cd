"""Which algorithms a fit and a prediction get: the size thresholds of the wing.

- `choices_of`: the method of the steps. "auto" is adaptive steps, or implicit SGD where these can't be.
- `takes_centroids`: what the ridge shrinks to, with prior="auto".
- `newton_follows`: whether Newton's method on all rows and classes ends the fit (`solver/refine.py`).
- `sums_are_dense`, `center_is_dense`: centroids as tables, or by feature.
- `rows_at_once`: rows of a round on a GPU.
- `shortlist_pays`, `shortlist_helps`: whether prediction reads weights in 8 bits first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._linalg.matrix import BUFFER

# Classes that a step of method "auto" uses; chosen on bibtex, delicious, sector, fb15k and a generated graph.
ADAPTIVE_NEGATIVES = 192
# Decay of the adaptive steps, 7 epochs. On new rows of eight sets with a ridge to zeros P@1 is 1.05 and
# hits@10 1.015 times that of 0.85 (29 epochs). Without a ridge, on six sets, they are 1.13 and 1.07 times
# those of 50 epochs without decay. With centroids they are within .004 of those of 0.7 (13 epochs).
ADAPTIVE_DECAY = 0.5
# The same, 29 epochs, where the optimum is the aim: of a ridge whose strength is given, and of one to zeros
# by steps on all classes. On bibtex 0.5 ends 3 % of log K above it, 0.85 ends 0.5 % above.
RIDGE_DECAY = 0.85

# Largest number of multiply-adds of a pass over all scores that takes negligible time.
CHEAP_PASS = 1e7
# Rows are full from this many entries, relative to the features. Features are then so correlated that steps
# along each of them stop too early.
FULL_ROW = 0.1
# Largest number of entries of sparse rows to copy, by rows and by columns.
MAX_COPIED = 2**19

# Scores of rows and classes, or weights, that are held at once: 64 MB of float32.
MAX_SCORES = 2**24
# Class sums and centroids are a table if this part of the classes has the feature of an entry, on average.
# A step of the weights takes 3.5 ms dense and 33 sparse on bibtex (.60), 7 and 45 on sector (.63), 12 and 9
# on a graph (.04). From a table of centroids steps are 1.7 times as fast on bibtex, 1.9 times on sector.
DENSE_PART = 0.125

# Most rows of a round that a class is expected to be in: their steps are independent.
MAX_ROWS_OF_CLASS = 3.0
# Most rows of a round: more than fill a device gain nothing.
MAX_ROWS = 4096

# Smallest number of classes for which single rows gain time by a shortlist.
MIN_CLASSES = 2**12
# Largest number of bytes of one table in 8 bits.
MAX_BYTES = 2**32
# Most entries of dense rows for which weights in 8 bits cost less than a product of matrices. With 20000 to
# 50000 classes 1 to 16 rows of 16 to 256 features, within this, are ranked 0.9 to 6 times as fast.
DENSE_ENTRIES = 2**10
# Fewest rows by which something is decided, since fewer say too little: the use of shortlists, and whether a
# fit has converged.
DECISION_ROWS = 64


@dataclass(frozen=True)
class Choices:
    """What the parameters of steps stand for where they are left open.

    ``adaptive`` steps are those of method "is" in a metric of their own, with blocks of negatives. The
    defaults of ``n_negatives`` and ``decay`` are what the methods of the papers take.
    """

    method: str
    adaptive: bool
    n_negatives: int = 5
    decay: float = 0.9


def adapts(model, on_device=False):
    """Whether the steps of method "auto" are adaptive: nothing else is asked for that they can't be."""
    return model.hash_bits is None and not on_device


def choices_of(model, n_classes, on_device=False, prior=None):
    """`Choices` by the parameters of ``model``, for so many classes and a ridge to ``prior``."""
    method, n_negatives, decay = model.method, model.n_negatives, model.decay
    if method != "auto" or not adapts(model, on_device):
        method = "implicit" if method == "auto" else method
        n_negatives = Choices.n_negatives if n_negatives is None else n_negatives
        return Choices(method, False, n_negatives, Choices.decay if decay is None else decay)
    if n_negatives is None:
        n_negatives = min(n_classes, ADAPTIVE_NEGATIVES)
    if decay is None:
        sees_all = prior is None and n_negatives >= n_classes
        aims_at_optimum = sees_all if model.alpha is None else model.alpha > 0
        decay = RIDGE_DECAY if aims_at_optimum else ADAPTIVE_DECAY
    return Choices("is", True, n_negatives, decay)


def takes_centroids(choices, alpha, rows, n_classes):
    """Whether the ridge of prior="auto" shrinks to centroids, in a fit to rows in main memory."""
    if not choices.adaptive or alpha is not None or n_classes < 2:
        return False
    return not (is_dense(rows) and newton_follows(choices, rows, n_classes))


def is_dense(rows):
    """Whether rows have so many entries that they count as full."""
    return rows.width >= FULL_ROW * rows.n_features


def newton_follows(options, rows, n_classes):
    """Whether a fit to ``rows`` with a ridge to zeros ends with `refine_in_memory`."""
    if not options.adaptive or n_classes < 2:
        return False
    width, n = rows.width, rows.n_rows
    # a table of rows and classes, or features and classes, is no larger than the data or than buffers
    if n_classes * max(n, rows.n_features) > max(BUFFER, len(rows.data)):
        return False
    is_small = n * width * n_classes <= CHEAP_PASS and len(rows.data) <= MAX_COPIED
    return is_small or is_dense(rows)


def sums_are_dense(sums, n_pairs, n_entries):
    """Whether class sums (n_features, n_classes) are a table; pairs are of an entry of X and a class."""
    n_features, n_classes = sums.shape
    is_small = n_features * n_classes <= MAX_SCORES or sums.nnz >= DENSE_PART * n_features * n_classes
    return is_small and n_pairs >= DENSE_PART * n_entries * n_classes


def center_is_dense(weights, width, sums_dense):
    """Whether centroids (n_classes, n_features) are a table of ``width`` columns, as class sums may be."""
    n_classes, n_features = weights.shape
    return (sums_dense and 2 * n_classes >= width) or weights.nnz >= DENSE_PART * n_features * width


def rows_at_once(counts, n_negatives, noise, batch_size):
    """Batches of rows that may start from the same weights without getting in each other's way.

    All of a round's changes are added up. A class that many of the round's rows have, as label or negative,
    moves by as many steps at once. Each of those was meant to be the only one. So a round has so few rows
    that the most frequent class gets only a few of them. With eight fits may diverge, with thirty they do.
    Where every row has every class as a negative, each row moves it by the class's probability only. That is
    on average the share of its label. Steps of a batch's ``batch_size`` rows are a mean.
    """
    K = len(counts)
    label = counts / counts.sum()
    if n_negatives >= K - 1:
        negative = label
    else:
        negative = n_negatives * (np.full(K, 1.0 / (K - 1)) if noise is None else noise.p)
    share = np.minimum(1.0, label + negative).max()
    return int(max(1, min(MAX_ROWS // batch_size, MAX_ROWS_OF_CLASS / share)))


def shortlist_pays(n_classes, k, n_dense):
    """Whether the k best classes may be found by a shortlist; ``n_dense`` entries of dense rows, else 0."""
    return n_classes >= MIN_CLASSES and 0 < k <= n_classes // 256 and n_dense <= DENSE_ENTRIES


def shortlist_helps(n_rows, n_failures):
    """Whether a shortlist is used again after so many rows, of which some had none."""
    return n_rows < DECISION_ROWS or 2 * n_failures < n_rows
