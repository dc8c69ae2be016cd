"""How ExtremeSoftmaxSGD fits: checks, options, the search of a learning rate, the run, the attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._arrays import host_only, is_device, namespace, to_host
from .._estimator.decorators import PlainParametersMixin
from .._estimator.device_checks import DeviceEstimatorMixin
from .._linalg.threads import count_threads
from .._messages import numbers, shown
from .._solver import outcome
from .._typing import FloatArray
from .blocks import BLOCK, plan_blocks
from .device import check_extreme_data, largest_norm
from .monitor import EpochMonitor, Judge
from .noise import Noise, rows_at_once
from .scores import HashedScores, LinearScores
from .solver import init_work, minimize_sampled_softmax
from .state import SamplingOptions, SoftmaxState, averaged, finish, grow, init_state, prepare
from .targets import is_sparse, label_counts, make_rows

# the papers tune over 10^-3 .. 10^3 on a tenth of the rows; fewer rows than this say little
RATES = tuple(10.0**k for k in range(-3, 4))
MORE_RATES = 4
# share of log K, the log-loss of no model, by which log-losses count as equal
NO_WORSE = 1e-3
TUNING_SHARE, TUNING_ROWS = 0.1, 500
# rows that judge a rate: the log-loss of one costs n_classes scores
JUDGING_ROWS = 2000
# a table of more weights is not looked through after every call, but some hundred rows of it
LOOKED_AT, FEW = 2**26, 500


class ExtremeFitMixin(PlainParametersMixin, DeviceEstimatorMixin):
    """The private half of ExtremeSoftmaxSGD."""

    # the parameters and attributes of ExtremeSoftmaxSGD that it reads
    method: str
    alpha: float
    fit_intercept: bool
    learning_rate: float | str
    decay: float
    max_iter: int
    batch_size: int
    n_negatives: int
    sampling: str
    noise: Any
    double_sum: str
    delta: float
    weight_bound: float | str
    u_bound: float | str
    average: bool | int
    hash_bits: int | None
    label_choice: str
    class_weight: Any
    validation_fraction: float
    max_time: float | None
    warm_start: bool
    n_jobs: int | None
    verbose: int
    coef_: Any
    table_: FloatArray
    intercept_: FloatArray
    learning_rate_losses_: dict[float, float]
    _state: Any

    def _check_data(self, X, y, sample_weight, classes, reset=True, grow=True):
        """Checked X (C-ordered or CSR) and targets."""
        X, targets = check_extreme_data(self, X, y, sample_weight, classes, reset, grow)
        if classes is not None and hasattr(self, "multilabel_") and targets.multilabel != self.multilabel_:
            raise ValueError(
                f"y is {'an indicator' if targets.multilabel else 'one label a row'}, but the model was "
                f"fitted to {'an indicator' if self.multilabel_ else 'one label a row'}."
            )
        if self.double_sum == "raman" and self.method not in ("umax", "sgd"):
            raise ValueError(f"double_sum='raman' is for method 'umax' or 'sgd', not {shown(self.method)}.")
        if self.hash_bits is not None and self.alpha > 0:
            raise ValueError("alpha > 0 does not go with hash_bits: classes share the entries of the table.")
        if self.sampling == "blocks":
            for name, wrong in (
                ("batch_size", self.batch_size > 1),
                ("average", self.average is not False),
                ("hash_bits", self.hash_bits is not None),
            ):
                if wrong:
                    raise ValueError(
                        f"{name}={shown(getattr(self, name))} does not go with sampling='blocks'; take "
                        "sampling='independent'."
                    )
        return X, targets

    def _split(self, n, rng):
        """Numbers of the rows held out, and of the others."""
        n_out = max(1, round(self.validation_fraction * n))
        if n_out >= n:
            raise ValueError(
                f"early_stopping holds out {n_out} of {n} rows, which leaves none; lower validation_fraction."
            )
        order = rng.permutation(n)
        return np.sort(order[:n_out]), np.sort(order[n_out:])

    def _options(self, rows, n_classes, counts, noise):
        bound, u_bound = np.inf, np.inf
        if self.method == "umax":
            bound, u_bound = self.weight_bound, self.u_bound
            if bound == "auto":  # Lemma 1, for the mean loss
                bound = np.sqrt(2.0 * np.log(n_classes) / self.alpha) if self.alpha > 0 else np.inf
                bound = bound if bound > 0 else np.inf
            if u_bound == "auto" and not np.isfinite(bound):
                u_bound = np.inf
            elif u_bound == "auto":  # Lemma 2
                largest = largest_norm(rows) if is_device(rows.data) else _largest_norm(rows)
                largest += self.fit_intercept
                u_bound = np.logaddexp(0.0, np.log(max(1, n_classes - 1)) + 2.0 * largest * bound)
            if self.hash_bits is not None and np.isfinite(bound):
                raise ValueError(
                    "weight_bound does not go with hash_bits: classes share the table's entries."
                )
        average = None
        if self.average is not False:
            average = 0 if self.average is True else int(self.average)
        return SamplingOptions(
            method=self.method, learning_rate=np.nan, decay=self.decay, max_iter=self.max_iter,
            batch_size=self.batch_size, n_negatives=self.n_negatives, raman=self.double_sum == "raman",
            alpha=self.alpha, delta=self.delta, u_bound=float(u_bound), weight_bound=float(bound),
            average=average, n_threads=self._threads(rows, counts, noise),
        )  # fmt: skip

    def _threads(self, rows, counts, noise):
        """Threads of a fit, or on a GPU the rows that step at once."""
        if not is_device(rows.data):
            return count_threads(self.n_jobs)
        if self.n_jobs is not None and self.n_jobs > 0:
            return self.n_jobs
        size = BLOCK if self.sampling == "blocks" else 1
        return rows_at_once(counts, -(-self.n_negatives // size) * size, noise, self.batch_size)

    def _make_noise(self, counts):
        """The distribution of negatives, or None for the uniform one."""
        noise = self.noise
        if noise is None:
            noise = "frequency" if self.method in ("nce", "is") else "uniform"
        if isinstance(noise, str):
            return None if noise == "uniform" else Noise(counts / counts.sum())
        host_only(noise=noise)
        p = numbers(noise, "noise")
        if p.shape != counts.shape:
            raise ValueError(f"noise has shape {p.shape}, but there are {len(counts)} classes.")
        if not (p > 0).all() or abs(p.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"noise must be positive and sum to 1; its smallest entry is {p.min():g}, its sum "
                f"{p.sum():g}."
            )
        return Noise(p / p.sum())

    def _plan(self, counts, noise, dtype, options, rng):
        """The blocks of classes for sampling="blocks", or None."""
        if self.sampling != "blocks":
            return None
        if np.isfinite(options.weight_bound):
            raise ValueError(
                "method='umax' has a weight_bound here (alpha > 0 sets one), which does not go with "
                "sampling='blocks'; take sampling='independent' or weight_bound=inf."
            )
        return plan_blocks(counts, self.n_negatives, noise, np.dtype(dtype).itemsize, rng)

    def _choose_rate(self, X, targets, rows, options, noise, rng):
        """The learning rate, searched for where it is "auto"; sets the attributes that tell of it."""
        if self.learning_rate != "auto":
            self.learning_rate_ = float(self.learning_rate)
            if hasattr(self, "learning_rate_losses_"):
                del self.learning_rate_losses_
            return self.learning_rate_
        every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(to_host(rows.row_of))
        n = len(every)
        size = min(max(TUNING_ROWS, int(TUNING_SHARE * n)), n - n // 5)
        order = rng.permutation(n)
        chosen = np.sort(every[order[:size]])
        part = make_rows(X, targets, self.label_choice, chosen)
        judge = Judge(
            X,
            targets,
            self._judging(targets, part, every[order[size:]], chosen),
            self._scores_of(len(targets.classes)),
        )
        counts = label_counts(part, len(targets.classes))
        losses = {}

        def loss_of(rate):
            trial = replace(options, learning_rate=rate, max_iter=self.max_iter)
            state = self._new_state(len(targets.classes), X, trial, counts)
            work = init_work(part, len(targets.classes), trial, rng, counts=counts, noise=noise)
            result = minimize_sampled_softmax(part, state, trial, work, rng)
            diverged = result.status == outcome.DIVERGED
            losses[rate] = np.inf if diverged else judge.loss(*averaged(state, trial))
            if self.verbose:
                print(
                    f"{type(self).__name__} learning_rate {rate:g}: log-loss {losses[rate]:.5f}, {size} rows"
                )

        for rate in RATES:
            loss_of(rate)
        # a smaller rate that is as good is better: what comes later moves the weights less
        slack = NO_WORSE * np.log(max(2, len(targets.classes)))
        # the best at an end of the range is none yet
        for factor, end in ((10.0, max), (0.1, min)):
            for _ in range(MORE_RATES):
                last = end(losses)
                others = min((v for r, v in losses.items() if r != last), default=np.inf)
                if not (
                    np.isfinite(losses[last]) and losses[last] <= others - (slack if end is max else 0.0)
                ):
                    break
                loss_of(last * factor)
        if not np.isfinite(min(losses.values())):
            raise FloatingPointError(
                f"method={shown(self.method)} diverged at every learning rate from {RATES[0]:g} to "
                f"{RATES[-1]:g}: bring the rows of X to norm 1 "
                "(sklearn.preprocessing.normalize) or take method='implicit'."
            )
        lowest = min(losses.values())
        self.learning_rate_ = min(rate for rate, value in losses.items() if value <= lowest + slack)
        self.learning_rate_losses_ = losses
        if self.verbose:
            print(f"{type(self).__name__} takes learning_rate={self.learning_rate_:g}")
        return self.learning_rate_

    @staticmethod
    def _judging(targets, part, others, chosen):
        """Rows that judge a rate: others, of labels that the tried ones have too; else the tried ones."""
        known = np.zeros(len(targets.classes), dtype=bool)
        known[to_host(part.y)] = True
        first = targets.codes[targets.first[others]] if targets.multilabel else targets.codes[others]
        judging = others[known[first]][:JUDGING_ROWS]
        return np.sort(judging) if len(judging) else chosen[:JUDGING_ROWS]

    def _new_state(self, n_classes, X, options, counts=None):
        state = init_state(
            n_classes, X.shape[1], X.dtype, options,
            fit_intercept=self.fit_intercept, table_bits=self.hash_bits or 0, like=_values(X),
        )  # fmt: skip
        if options.method == "nce" and self.fit_intercept and counts is not None:
            # NCE has no normaliser: scores are to be logarithms of probabilities from the start
            order = slice(None) if options.plan is None else options.plan.order
            start = np.log(np.maximum(counts, 0.5) / counts.sum())[order]
            state.bias[:n_classes] = np.asarray(start, like=state.bias)
        return state

    def _initial_state(self, targets, X, options, counts=None):
        """Zeros, or the last fit's weights; with counts, intercepts of the frequencies for NCE."""
        state = self._new_state(len(targets.classes), X, options, counts)
        old = getattr(self, "classes_", None)
        if self.warm_start and old is not None:
            self._check_place(X)
        if self.warm_start and old is not None and np.array_equal(old, targets.classes):
            W = getattr(self, "table_", None)
            W = self.coef_ if W is None else W[None, :]
            W = W.toarray() if options.plan is not None and sp.issparse(W) else W
            if options.plan is not None and W.shape == (state.n_classes, len(state.W)):
                options.plan.from_classes(W, self.intercept_, state.W, state.bias)
            elif W.shape == state.W.shape:
                state.W[...] = W.toarray() if sp.issparse(W) else W
                if state.bias is not None:
                    state.bias[...] = self.intercept_
        return state

    def _resume(self, n_classes, dtype, options):
        """The state that the last call left, in the dtype of its weights, for n_classes."""
        state = getattr(self, "_state", None)
        if state is None:
            W = getattr(self, "table_", None)
            W = self.coef_ if W is None else W[None, :]
            W = W.toarray() if sp.issparse(W) else W
            xp = namespace(W=W)
            is_read_only = not getattr(W.flags, "writeable", True)  # CuPy's arrays never are
            if W.dtype != dtype or is_read_only or not W.flags.c_contiguous:
                W = xp.array(W, dtype=dtype, order="C")
            bias = xp.array(self.intercept_, dtype=dtype) if self.fit_intercept else None
            shift = 64 - self.hash_bits if self.hash_bits else 0
            state = SoftmaxState(W, bias, len(self.intercept_), shift)
            state.rows_seen = self.t_
        return prepare(grow(state, n_classes), options)

    def _weight_dtype(self):
        """What steps compute in: the weights' type, float32 for those in half precision."""
        dtype = (self.coef_ if self.hash_bits is None else self.table_).dtype
        return np.dtype(np.float32) if dtype == np.float16 else dtype

    def _scores_of(self, n_classes):
        """Function of (W, bias) that gives their scores."""
        n_threads = count_threads(self.n_jobs)

        def scores(W, bias):
            bias = np.zeros(n_classes, dtype=W.dtype, like=W) if bias is None else bias
            if self.hash_bits is not None:
                return HashedScores(W.reshape(-1), bias, 64 - self.hash_bits, n_threads)
            return LinearScores(W, bias, n_threads)

        return scores

    def _run(self, state, rows, options, work, rng, held_out, data, targets, again=None):
        """Run the epochs and set the attributes; ``again()`` gives a new state and work for another rate."""
        context = None
        if hasattr(self, "_init_callback_context"):
            context = self._init_callback_context(max_subtasks=options.max_iter + 1)
            context.call_on_fit_task_begin(estimator=self, **data)
        monitor = EpochMonitor(
            self, context, data, lambda _: self._attributes(state, options, targets), held_out
        )
        monitor.begin(None)
        while True:
            result = minimize_sampled_softmax(
                rows, state, options, work, rng, callback=monitor, max_time=self.max_time
            )
            if result.status != outcome.DIVERGED or self.learning_rate != "auto" or again is None:
                break
            # what a tenth of the rows survives may be too much for all
            self.learning_rate_losses_[options.learning_rate] = np.inf
            options.learning_rate = self.learning_rate_ = options.learning_rate / 10
            if self.verbose:
                print(f"{type(self).__name__} diverged; learning_rate={options.learning_rate:g} instead")
            new_state, work = again()
            vars(state).update(vars(new_state))
            monitor.restart()
        monitor.end()
        seen = rows.y if options.plan is None else np.arange(len(state.W))
        if result.status == outcome.DIVERGED or not _is_finite(state.W, seen):
            raise FloatingPointError(
                f"method={shown(self.method)} diverged in epoch {result.nit} at learning_rate="
                f"{options.learning_rate:g}. Lower it (try {options.learning_rate / 10:g}), take "
                "method='implicit', which is finite at any rate, or learning_rate='auto'; rows of X of "
                "norm 1 (sklearn.preprocessing.normalize) help all methods."
            )
        finish(state, options)
        attributes = self._attributes(state, options, targets, None if held_out is None else held_out.kept())
        stale = "coef_" if "table_" in attributes else "table_"
        if hasattr(self, stale):  # of a fit with another hash_bits
            delattr(self, stale)
        for name, value in attributes.items():
            setattr(self, name, value)
        # without an average, coef_ is all that the next partial_fit needs
        self._state = state if options.average is not None else None
        self._rng_state = int(rng.integers(2**31))
        self.n_iter_ = result.nit
        self.t_ = state.rows_seen
        self.loss_curve_ = np.array(monitor.losses if monitor.losses else [result.fun])
        if held_out is not None:
            self.validation_loss_curve_ = np.array(monitor.validation)
        elif hasattr(self, "validation_loss_curve_"):
            del self.validation_loss_curve_
        if context is not None:
            context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **data)

    def _attributes(self, state, options, targets, best=None):
        W, bias = averaged(state, options) if best is None else best
        weights = {"table_": W.reshape(-1)} if state.shift else {"coef_": W}
        mean_labels = 1.0
        if targets.multilabel:
            mean_labels = len(targets.codes) / max(1, int(np.count_nonzero(np.diff(targets.first))))
        return {
            **weights,
            "intercept_": np.zeros(state.n_classes, dtype=W.dtype, like=W) if bias is None else bias,
            "classes_": targets.classes,
            "multilabel_": targets.multilabel,
            "_mean_labels": mean_labels,
        }


def make_generator(random_state):
    """NumPy's generator for scikit-learn's random_state."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _values(X):
    """An array beside X."""
    return X.data if is_sparse(X) else X


def _is_finite(W, codes):
    """Whether the weights are finite: all of a small table, of a large one some of the rows ``codes``."""
    if W.size > LOOKED_AT and not is_device(W):
        codes = np.unique(codes)
        return all(np.isfinite(W[k]).all() for k in codes[:: 1 + len(codes) // FEW])
    return bool(np.isfinite(W).all())


def _largest_norm(rows):
    """Largest norm of a row, without the intercept."""
    if len(rows.indptr):
        squares = sp.csr_array(
            (np.square(rows.data, dtype=np.float64), rows.indices, rows.indptr),
            shape=(len(rows.indptr) - 1, rows.n_features),
        ).sum(axis=1)
    else:
        X = rows.data.reshape(-1, rows.n_features)
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return float(np.sqrt(np.max(squares, initial=0.0)))
