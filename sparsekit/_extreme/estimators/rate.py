"""The search of ExtremeSoftmaxSGD's learning rate, on a part of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._arrays import to_host
from ..._messages import shown
from ..._solver import outcome
from ..solver.epochs import OneBlock, minimize_sampled_softmax
from ..solver.sgd import init_work
from .objective import Sample, SampledObjective, examples_of
from .settings import ADAPTIVE_RATE, DECAYING_RATE, new_state
from .targets import count_labels, make_rows, take_rows, used_rows

# The papers tune over 10^-3 .. 10^3 on a tenth of the rows. Beyond either end there are as many more at most.
RATES = tuple(10.0**k for k in range(-3, 4))
# Part of log K, the log-loss of no model, by which log-losses count as equal.
EQUAL_LOSSES = 1e-3
# Part of the rows that rates are tried on, and that are set aside.
TUNING_PART = 0.1
# Fewest rows that rates are tried on.
TUNING_ROWS = 500
# Most rows that judge a rate or a ridge: the log-loss of one costs n_classes scores.
JUDGING_ROWS = 2000


def choose_rate(model, source, options, noise, rng):
    """The learning rate, searched for where it is "auto"; sets the attributes that record it."""
    if options.adaptive or model.learning_rate != "auto":
        rate = model.learning_rate
        if rate == "auto":
            rate = ADAPTIVE_RATE if options.decay == 1.0 else DECAYING_RATE
        model.learning_rate_ = float(rate)
        if hasattr(model, "learning_rate_losses_"):
            del model.learning_rate_losses_
        return model.learning_rate_
    X, targets, rows = source.sample(rng)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(to_host(rows.row_of))
    n = len(every)
    size = min(max(TUNING_ROWS, int(TUNING_PART * source.use.sum())), n - n // 5)
    order = rng.permutation(n)
    chosen = np.sort(every[order[:size]])
    part = make_rows(X, targets, model.label_choice, chosen)
    counts = count_labels(targets, model.label_choice, used_rows(targets, chosen))
    sample = rows_aside(model, targets, every[order[size:]][:JUDGING_ROWS], counts)
    if not len(sample.codes):
        sample = rows_aside(model, targets, chosen[:JUDGING_ROWS], counts)
    judge = SampledObjective(sample, take_rows(X, sample.rows), 0.0)
    losses = {}

    def loss_of(rate):
        trial = replace(options, learning_rate=rate, max_iter=model.max_iter)
        state = new_state(model, len(targets.classes), X, trial, counts)
        result = minimize_sampled_softmax(
            OneBlock(part), state, trial, rng,
            lambda rows: init_work(rows, len(targets.classes), trial, rng, counts=counts, noise=noise),
        )  # fmt: skip
        diverged = result.status == outcome.DIVERGED
        loss = np.inf if diverged else judge.value(judge.evaluate(0, state, trial))[0]
        losses[rate] = loss if np.isfinite(loss) else np.inf
        if model.verbose:
            print(f"{type(model).__name__} learning_rate {rate:g}: log-loss {losses[rate]:.5f}, {size} rows")

    for rate in RATES:
        loss_of(rate)
    # a smaller rate that is as good is better: what comes later moves the weights less
    slack = EQUAL_LOSSES * np.log(max(2, len(targets.classes)))
    # the best at an end of the range is none yet
    for factor, end in ((10.0, max), (0.1, min)):
        for _ in range(len(RATES)):
            last = end(losses)
            others = min((v for r, v in losses.items() if r != last), default=np.inf)
            if not (np.isfinite(losses[last]) and losses[last] <= others - (slack if end is max else 0.0)):
                break
            loss_of(last * factor)
    if not np.isfinite(min(losses.values())):
        raise FloatingPointError(
            f"method={shown(model.method)} diverged at every learning rate from {RATES[0]:g} to "
            f"{RATES[-1]:g}: bring the rows of X to norm 1 "
            "(sklearn.preprocessing.normalize) or take method='implicit'."
        )
    lowest = min(losses.values())
    model.learning_rate_ = min(rate for rate, value in losses.items() if value <= lowest + slack)
    model.learning_rate_losses_ = losses
    if model.verbose:
        print(f"{type(model).__name__} takes learning_rate={model.learning_rate_:g}")
    return model.learning_rate_


def rows_aside(model, targets, rows, counts):
    """The Sample of the labels of ``rows`` that other rows, with ``counts`` of each label, have too."""
    examples = examples_of(targets, model.label_choice, used_rows(targets, rows))
    known = counts[examples.codes] > 0
    weight = np.ones(len(known)) if examples.share is None else examples.share
    weight = weight[known] / max(weight[known].sum(), np.finfo(float).tiny)
    return Sample(examples.rows[known], examples.codes[known], weight, 1.0)
