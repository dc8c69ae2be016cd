"""Estimates of the objective of ExtremeSoftmaxSGD, from the same rows after each epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import to_host
from .scores import HashedScores, LinearScores, log_losses


@dataclass(frozen=True)
class Examples:
    """Pairs of a row and a label, and their shares of the objective (n,), which sum to 1 (None: equal)."""

    rows: np.ndarray
    codes: np.ndarray
    share: np.ndarray | None


def examples_of(targets, label_choice, use):
    """The Examples of the rows in the mask ``use``; a label that is drawn anew in each epoch has its part."""
    rows = np.flatnonzero(use)
    weight = None if targets.weight is None else targets.weight[rows]
    if not targets.multilabel:
        codes = targets.codes[rows]
    elif label_choice == "first":
        codes = targets.codes[targets.first[:-1][rows]]
    else:
        sizes = np.diff(targets.first)
        codes = targets.codes[np.repeat(use, sizes)]
        sizes = sizes[rows]
        weight = np.repeat((1.0 if weight is None else weight) / sizes, sizes)
        rows = np.repeat(rows, sizes)
    if weight is not None:
        weight = None if (weight == weight[:1]).all() else weight / weight.sum()
    return Examples(rows, codes, weight)


@dataclass(frozen=True)
class Sample:
    """Examples with the weights that they have in an estimate of the mean loss.

    rows : numbers of X's rows, rising.
    codes : classes.
    weight : (m,), sums to 1 unless examples are all and their weights are not equal.
    spare : share of the variance that is left: 1 - m / n without replacement, 0 if all were taken, or 1.
    examples : their numbers among those of the steps, None: none of these.
    """

    rows: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    spare: float
    examples: np.ndarray | None = None


def draw(examples, size, rng):
    """A Sample of so many examples, whose weighted sum of losses has the expectation of that of all."""
    n, share = len(examples.codes), examples.share
    if size >= n:
        chosen = np.arange(n)
        weight = np.full(n, 1.0 / n) if share is None else share
        spare = 0.0
    else:
        # by their weights, with replacement, where these differ
        chosen = np.sort(rng.choice(n, size, replace=share is not None, p=share))
        weight = np.full(size, 1.0 / size)
        spare = 1.0 - size / n if share is None else 1.0
    return Sample(examples.rows[chosen], examples.codes[chosen], weight, spare, chosen)


@dataclass(frozen=True)
class Evaluation:
    """Number of epochs before an estimate, losses of the sample's examples (m,), and the ridge."""

    epoch: int
    losses: np.ndarray
    ridge: float


class SampledObjective:
    """Mean log-loss and ridge of a model: losses of a `Sample`, whose rows are those of ``X`` in order."""

    def __init__(self, sample, X, alpha):
        self.sample, self.X, self.alpha = sample, X, alpha

    def evaluate(self, epoch, state, options):
        """Evaluate the objective at the state between two epochs; an `Evaluation`."""
        scores = scores_of(state, options)
        labels = self.sample.codes if options.plan is None else options.plan.place[self.sample.codes]
        with np.errstate(all="ignore"):
            losses = to_host(log_losses(scores, self.X, np.asarray(labels, like=scores.intercept)))
            ridge = self.alpha / 2 * _squared_norm(state, options) if self.alpha > 0 else 0.0
            own = None if state.center is None else state.center.own
            if own is not None and self.sample.examples is not None:
                own = own[self.sample.examples]  # rows are scored as by the steps
                losses = losses + own + np.log(np.exp(-losses - own) - np.expm1(-losses))
        return Evaluation(epoch, losses, ridge)

    def value(self, found):
        """The objective and its standard error."""
        return self._mean(found.losses, found.ridge)

    def fall(self, before, after):
        """How much the objective fell between two evaluations, and the standard error of that."""
        return self._mean(before.losses - after.losses, before.ridge - after.ridge)

    def _mean(self, losses, ridge):
        weight, n = self.sample.weight, len(losses)
        with np.errstate(all="ignore"):
            mean, variance = float(weight @ losses), 0.0
            if n > 1:
                variance = self.sample.spare * float(weight**2 @ (losses - mean) ** 2) * n / (n - 1)
        return float(mean + ridge), float(np.sqrt(variance))


def scores_of(state, options):
    """Scores of the model between two epochs, classes in the order of its columns."""
    W, K = state.W, state.n_classes
    bias = np.zeros(K, dtype=W.dtype, like=W) if state.bias is None else state.bias[:K]
    if state.shift:
        return HashedScores(W.reshape(-1), bias, state.shift, options.n_threads)
    return LinearScores(W if options.plan is None else W[:, :K].T, bias, options.n_threads)


def _squared_norm(state, options):
    """Squared norm of the distance to the ridge's center, intercepts included, whose center is 0."""
    W = state.W if options.plan is None else state.W[:, : state.n_classes]
    total = float(np.einsum("ij,ij->i", W, W).sum(dtype=np.float64))
    if state.center is not None:  # (w - m)^2 = w^2 + m (m - 2 w)
        entries = state.center.weights.tocoo()
        m = entries.data.astype(np.float64)
        total += float(m @ (m - 2.0 * W[entries.col, entries.row]))
    if state.bias is not None:
        total += float(np.square(state.bias[: state.n_classes].astype(np.float64)).sum())
    return total
