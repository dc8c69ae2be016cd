"""The rows and classes that an estimate of the objective uses, drawn once for a fit."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

# share of a fit's cost that the estimates may take, and scores that they may take anyway: about a millisecond
SHARE, FREE = 0.05, 2**17
# the same of a call of partial_fit
FREE_CALL = 2**11
# Cost of a step's score, in scores that are taken of many rows at once. It is read at a random index, written
# back and comes with the step's other work. Measured: 2 to 60; sparse rows and few classes are at the lower
# end.
STEP_SCORE = 4.0
# Fewer rows than LEAST say too little. Where most of the loss is that of a few rows, fewer than GOOD may miss
# them. More than MOST say nothing new.
LEAST, GOOD, MOST = 64, 1000, 20000
# What the gradient's norm costs, in estimates, and epochs that have to pay for it. Epochs from one estimate
# to the next where more rows are worth more than more estimates.
GRADIENT, PAYING, APART = 3, 15, 5


@dataclass(frozen=True)
class Schedule:
    """``n_rows`` examples after every ``every`` epochs, and the gradient at the end if it is paid for."""

    n_rows: int
    every: int
    gradient: bool

    def is_due(self, epoch, max_iter):
        return self.n_rows > 0 and (epoch % self.every == 0 or epoch == max_iter)

    def cost(self, n_classes, n_epochs):
        """Scores that it takes for so many epochs."""
        due = sum(self.is_due(epoch, n_epochs) for epoch in range(1, n_epochs + 1))
        return n_classes * self.n_rows * (due + GRADIENT * self.gradient)


def allowance(n_rows, classes_a_step, n_epochs, free=0):
    """Scores of many rows at once that take SHARE of the time of these epochs, or ``free`` ones."""
    return max(free, SHARE * STEP_SCORE * n_rows * classes_a_step * n_epochs)


def plan_estimates(n_examples, n_rows, n_classes, classes_a_step, max_iter):
    """The Schedule of a fit of ``max_iter`` epochs over ``n_rows``.

    As many rows after each epoch as SHARE pays for. Where those are not GOOD, more of them after some of the
    epochs, or the last one. Where not even LEAST are paid for, none (very many classes, and few rows).
    """
    an_epoch = allowance(n_rows, classes_a_step, max_iter, FREE) / max_iter / n_classes
    paying = min(max_iter, PAYING)
    enough = min(n_examples, LEAST)
    for every, wanted in ((1, GOOD), (APART, LEAST), (1, LEAST)):
        n_estimates = ceil(paying / every) + (every > 1) + GRADIENT
        size = int(an_epoch * paying / n_estimates)
        if size >= min(n_examples, wanted) and (every == 1 or max_iter >= PAYING):
            return Schedule(min(size, n_examples, GOOD if every > 1 else MOST), every, True)
    times = int(an_epoch * max_iter / enough)
    if times < 1:
        return Schedule(0, 1, False)
    gradient = times > 2 * GRADIENT
    # the last epoch has one of its own
    times -= 1 + GRADIENT * gradient
    return Schedule(enough, ceil(max_iter / times) if times > 0 else max_iter, gradient)


@dataclass(frozen=True)
class Sample:
    """Examples with the weights that they have in an estimate of the mean loss, and classes for the ridge.

    rows : numbers of X's rows, rising.
    codes : classes.
    weight : (m,), sums to 1 unless examples are all and their weights are not equal.
    spare : share of the variance that is left: 1 - m / n without replacement, 0 if all were taken, or 1.
    classes : those whose norms are evaluated.
    """

    rows: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    spare: float
    classes: np.ndarray


def draw(examples, size, n_classes, n_norms, rng):
    """A Sample of so many examples, whose weighted sum of losses has the expectation of that of all.

    Parameters
    ----------
    examples : Examples
    size, n_norms : int
        Examples and classes to draw.
    n_classes : int
    rng : numpy.random.Generator
        Not that of the steps.
    """
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
    classes = (
        np.arange(n_classes)
        if n_norms >= n_classes
        else np.sort(rng.choice(n_classes, n_norms, replace=False))
    )
    return Sample(examples.rows[chosen], examples.codes[chosen], weight, spare, classes)


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


def spawn_generator(rng):
    """Another generator, for the same seed always the same, that leaves ``rng``'s numbers as they are."""
    return np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0])
