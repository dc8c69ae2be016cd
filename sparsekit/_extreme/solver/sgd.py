r"""Stochastic steps for softmax with very many classes: Implicit SGD, U-max, One-vs-Each, NCE, IS, SGD.

The objective is the mean log-loss with a ridge, written as the double sum of Fagan and Iyengar, eq. (6). It
is without their factor N, so that the learning rate does not depend on the number of rows:

.. math:: f_{ik}(u, W) = u_i + e^{-u_i} + (K - 1) e^{x_i^T (w_k - w_{y_i}) - u_i}
          + \tfrac{\alpha}{2} (\beta_{y_i} \|w_{y_i}\|^2 + \beta_k \|w_k\|^2).

State, one call of the kernel and one epoch are functions of their own.
"""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ..._arrays import as_like, full, kernel_module
from ..._cython.extreme import _class_blocks
from ..._solver.outcome import Limits
from .noise import Noise
from .state import set_scale

# methods with one number u a row; the others replace it by a function of the sampled scores
WITH_U = ("implicit", "umax", "sgd")

_NO_LIMITS = Limits()


@dataclass
class DataRows:
    """Examples: CSR (data, indices, indptr), or dense C-ordered data with indices and indptr empty.

    Arrays on a GPU are of CuPy, but for ``first``, which stays in main memory.
    Example e has label y[e], weight[e] (None: 1) and row row_of[e] (None: e). Examples first[i] ..
    first[i + 1] are the labels of row i, of which each epoch takes one (None: one example a row).
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int
    y: np.ndarray
    weight: np.ndarray | None = None
    row_of: np.ndarray | None = None
    first: np.ndarray | None = None

    @property
    def n_rows(self):
        return len(self.y) if self.first is None else len(self.first) - 1

    @property
    def width(self):
        """Mean number of entries of a row."""
        return self.n_features if not len(self.indptr) else len(self.data) / max(1, len(self.indptr) - 1)


def inverse_probability(counts, options, noise=None):
    r"""beta of eq. (6): one over the probability that a step samples class k, as the label or as a negative.

    Infinite (no step ever shrinks it) becomes 1.
    """
    counts = np.asarray(counts, dtype=np.float64)
    K, m = len(counts), options.n_negatives
    label = counts / counts.sum()
    if options.method == "nce":  # with replacement, the label itself too: the number of times
        sampled = label + m * (np.full(K, 1.0 / K) if noise is None else noise.p)
    elif noise is None:
        sampled = label + (1.0 - label) * min(1.0, m / max(1, K - 1))
    else:
        sampled = label + (1.0 - label) * (1.0 - (1.0 - noise.p) ** m)
    return np.divide(1.0, sampled, out=np.ones(K), where=sampled > 0)


@dataclass
class Work:
    """What a run allocates once: order of the rows, u, work space and generators of the threads."""

    kernels: ModuleType
    order: np.ndarray
    chosen: np.ndarray  # the examples of an epoch in order, in main memory
    examples: np.ndarray  # the same where the rows are
    u: np.ndarray | None
    integers: np.ndarray  # of the processor's threads
    doubles: np.ndarray
    states: np.ndarray
    beta: np.ndarray | None
    noise: Noise | None  # of the classes, or of a plan's blocks
    columns: np.ndarray | None = None  # of adaptive steps: those of the examples' labels
    rows: np.ndarray | None = None  # of adaptive steps: what threads work in, two numbers a feature


def init_work(rows, n_classes, options, rng, *, counts=None, noise=None, order=None):
    """Allocate for a run over ``rows``, or those whose numbers are in ``order``; a ridge needs ``counts``."""
    order, x = np.arange(rows.n_rows, dtype=np.int64) if order is None else order, rows.data
    plan = options.plan
    draws = noise if plan is None else plan.noise
    beta = None
    if options.alpha > 0 and not options.adaptive:
        beta = inverse_probability(counts, options, noise)
    kernels = _class_blocks if plan is not None else kernel_module("extreme._extreme", x)
    # threads write next to each other's last numbers only once a step
    shapes = [(options.n_threads, size + 8) for size in kernels.workspace_sizes(options)]
    chosen = order if rows.first is None else np.empty_like(order)
    return Work(
        kernels,
        order,
        chosen,
        as_like(chosen, x),
        # Algorithm 1 starts at log K. Where negatives come from a distribution that fits, a row's first ones
        # give a better guess (NaN). Uniform ones miss the few classes that matter.
        full(len(rows.y), np.log(n_classes) if noise is None else np.nan, like=x)
        if options.method in WITH_U
        else None,
        np.zeros(shapes[0], dtype=np.int64),
        np.zeros(shapes[1]),
        np.asarray(rng.integers(1, 2**63, size=options.n_threads, dtype=np.uint64), like=x),
        None if beta is None else np.asarray(beta, like=x),
        None if draws is None else draws.as_like(x),
        None if plan is None else plan.place[rows.y],
        None if plan is None else np.zeros(options.n_threads * 2 * max(1, rows.n_features)),
    )


def steps(state, rows, options, work, learning_rate, begin, end):
    """One call of the kernel, over work.examples[begin : end]; returns the index of a bad step or -1."""
    bad = work.kernels.run_steps(
        rows.data, rows.indices, rows.indptr, state.W, rows, state, work, options, learning_rate, begin, end
    )
    state.steps += -(-(end - begin) // options.batch_size)
    state.rows_seen += end - begin
    return bad


def epoch(state, rows, options, work, learning_rate, rng, *, limits=_NO_LIMITS):
    """Every row once: (index of a bad step or -1, whether all steps were made)."""
    set_scale(state, rows)
    if options.shuffle:
        rng.shuffle(work.order)
    if rows.first is not None:  # one of each row's examples
        sizes = np.diff(rows.first)[work.order]
        work.chosen[:] = rows.first[work.order] + (rng.random(len(sizes)) * sizes).astype(np.int64)
    if work.examples is not work.chosen:
        work.examples.set(work.chosen)
    unit = options.batch_size * options.n_threads
    of_step = max(1.0, rows.width) * options.classes_of_step
    per_call = max(1, int(work.kernels.WORK_PER_CALL / of_step)) // unit
    per_call = max(1, per_call) * unit
    n, bad, complete = len(work.examples), -1, True
    for begin in range(0, n, per_call):
        if limits.reached() is not None:
            complete = False
            break
        bad = steps(state, rows, options, work, learning_rate, begin, min(n, begin + per_call))
        if bad >= 0:
            complete = False
            break
    return bad, complete
