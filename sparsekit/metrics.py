"""Measures of a solution's quality. Plain NumPy, independent of the solvers that they judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import host_only
from ._docstrings import shares_entries
from ._messages import shown
from ._typing import FloatArray, MatrixLike

# tags that begin a span, go on with one, and end it, by scheme; all else is outside
_SCHEMES = {"BIO": ("B", "I", ""), "BIOES": ("BS", "IE", "ES"), "BILOU": ("BU", "IL", "LU")}

__all__ = [
    "jensen_shannon_divergence",
    "kkt_violation",
    "precision_at_k",
    "span_f1_score",
    "span_precision_recall_f1",
]


def kkt_violation(coef: ArrayLike, grad: ArrayLike, l1: ArrayLike) -> float:
    r"""Largest violation of the optimality conditions of :math:`\min f(x) + \sum_j \lambda_j |x_j|`.

    .. math:: \max_j |\mathrm{mid}(g_j - \lambda_j,\; x_j,\; g_j + \lambda_j)|

    with mid the median of the three numbers and g the gradient of f at x: the semi-smooth residual of
    [1]_, eq. (2.4). It is zero exactly at a minimiser of a convex f and has the unit of the gradient. It
    is continuous in x; the smallest subgradient is not.

    Parameters
    ----------
    coef : array-like
        The variables x, of any shape.
    grad : array-like of the same shape
        Gradient of the smooth part at x.
    l1 : float or array-like of the same shape
        Penalties :math:`\lambda_j \ge 0`; 0 for unpenalised variables, such as the intercept.

    Returns
    -------
    float
        0.0 for no variables.

    Raises
    ------
    ValueError
        If the shapes disagree or a penalty is negative.

    See Also
    --------
    sparsekit.minimize_oba : Stops by this measure.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.

    Examples
    --------
    >>> from sparsekit.metrics import kkt_violation
    >>> kkt_violation([0.0, 2.0], [0.3, -1.0], 1.0)
    0.0
    >>> kkt_violation([0.0, 2.0], [1.5, -1.0], 1.0)
    0.5
    """
    host_only(coef=coef, grad=grad, l1=l1)
    coef, grad = np.asarray(coef, dtype=np.float64), np.asarray(grad, dtype=np.float64)
    l1 = np.asarray(l1, dtype=np.float64)
    if coef.shape != grad.shape:
        raise ValueError(f"coef and grad must have the same shape, got {coef.shape} and {grad.shape}.")
    if l1.ndim and l1.shape != coef.shape:
        raise ValueError(f"l1 must be a number or have the shape of coef, {coef.shape}; got {l1.shape}.")
    if (l1 < 0).any():
        raise ValueError(f"l1 must be >= 0, got {l1.min():g}.")
    # the median of three with the outer two in order is a clip
    return float(np.max(np.abs(np.clip(coef, grad - l1, grad + l1)), initial=0.0))


def jensen_shannon_divergence(
    q: ArrayLike, p: ArrayLike, *, sample_weight: ArrayLike | None = None, average: bool = True
) -> float | FloatArray:
    r"""Jensen-Shannon divergence between target and predicted distributions.

    .. math:: \mathrm{JS}(q, p) = \tfrac12 \mathrm{KL}(q \,\|\, m) + \tfrac12 \mathrm{KL}(p \,\|\, m),
              \quad m = \tfrac12 (q + p),

    with natural logarithms: between 0 (q = p) and log 2 (no common class), finite for sparse distributions.
    (:func:`scipy.spatial.distance.jensenshannon` is its square root.)

    Parameters
    ----------
    q, p : array-like of shape (n_samples, n_classes), or (n_classes,)
        Distributions, a row each: entries >= 0 that sum to 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the average.
    average : bool, default=True
        Whether to return the mean over the rows, or the divergence of each.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In natural units (nats).

    Raises
    ------
    ValueError
        If the shapes disagree, a row is no distribution, there is no row to average over, or a weight is
        negative or not finite.

    Examples
    --------
    >>> from sparsekit.metrics import jensen_shannon_divergence
    >>> p = [[1.0, 0.0], [0.5, 0.5]]
    >>> jensen_shannon_divergence([[1.0, 0.0], [0.0, 1.0]], p, average=False).round(4)
    array([0.    , 0.2158])
    """
    host_only(q=q, p=p, sample_weight=sample_weight)
    q, p = np.asarray(q, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if q.shape != p.shape or q.ndim not in (1, 2):
        raise ValueError(
            f"q and p must have the same shape, (n_samples, n_classes) or (n_classes,); got {q.shape} and "
            f"{p.shape}."
        )
    for name, value in (("q", q), ("p", p)):
        # negated, so that NaN is refused as well
        if not ((value >= 0).all() and (np.abs(value.sum(axis=-1) - 1.0) <= 1e-4).all()):
            raise ValueError(f"the rows of {name} must be distributions: entries >= 0 that sum to 1.")
    total = q + p
    with np.errstate(divide="ignore", invalid="ignore"):
        # 2 q / (q + p), not q / m: half of the smallest number is zero
        terms = np.where(q > 0, q * np.log(2.0 * (q / total)), 0.0)
        terms += np.where(p > 0, p * np.log(2.0 * (p / total)), 0.0)
    each = np.maximum(0.5 * terms.sum(axis=-1), 0.0)
    if q.ndim == 1:
        return float(each)
    return _mean_of_rows(each, sample_weight) if average else each


def precision_at_k(
    y_true: MatrixLike, y_top: ArrayLike, k: int | None = None, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Share of the k first predicted labels that are true, averaged over the rows.

    .. math:: \mathrm{P@}k = \frac{1}{n} \sum_i \frac{|\{\text{first } k \text{ of } y^{top}_i\} \cap Y_i|}{k}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
        The true label of each row; or an indicator of zeros and ones, whose labels are the column numbers.
    y_top : array-like of shape (n_samples, n_predicted)
        Predicted labels, the most probable one first, as those of
        :meth:`~sparsekit.ExtremeSoftmaxSGD.predict_topk`; no label twice in a row.
    k : int, default=None
        How many of them count; None: all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If the numbers of rows disagree or are 0, or k is out of range. If y_top names columns that y_true
        lacks, or a weight is negative or not finite.

    Examples
    --------
    >>> from sparsekit.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[2, 0], [0, 1]])
    0.75
    >>> precision_at_k(["a", "b"], [["a", "b"], ["c", "b"]], k=1)
    0.5
    """
    host_only(y_true=y_true, y_top=y_top, sample_weight=sample_weight)
    top = np.asarray(y_top)
    if top.ndim != 2 or top.shape[1] < 1:
        raise ValueError(
            f"y_top must have a row of predicted labels for each sample, got the shape {top.shape}."
        )
    k = top.shape[1] if k is None else k
    if not 1 <= k <= top.shape[1]:
        raise ValueError(f"k must be between 1 and the {top.shape[1]} columns of y_top, got {k}.")
    top = top[:, :k]
    true: Any = y_true
    if hasattr(true, "tocsr"):
        from ._linalg.structure import check_sparse  # SciPy comes with the matrix, and is not imported before

        true = check_sparse(true, "y_true").tocsr()
    else:
        true = np.asarray(true)
    if true.shape[0] != len(top):
        raise ValueError(f"y_true has {true.shape[0]} rows, y_top {len(top)}.")
    if true.ndim == 1:
        hits = top == true[:, None]
    else:
        if top.dtype.kind not in "iu" or top.min(initial=0) < 0 or top.max(initial=0) >= true.shape[1]:
            raise ValueError(f"y_top must hold column numbers of y_true, 0 .. {true.shape[1] - 1}.")
        rows = np.arange(len(top))[:, None]
        hits = np.asarray(true[np.broadcast_to(rows, top.shape).ravel(), top.ravel()]).reshape(top.shape) != 0
    return _mean_of_rows(hits.mean(axis=1), sample_weight)


def _mean_of_rows(values: FloatArray, sample_weight: ArrayLike | None) -> float:
    """Weighted mean of (n_samples,)."""
    if not len(values):
        raise ValueError("there are no rows, and no mean of them.")
    if sample_weight is None:
        return float(values.mean())
    from ._estimator.checks import check_sample_weight, in_units  # scikit-learn is not imported before

    return float(np.average(values, weights=in_units(check_sample_weight(sample_weight, len(values)))[0]))


def span_precision_recall_f1(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    scheme: Literal["BIO", "BIOES", "BILOU"] = "BIO",
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    zero_division: float = 0.0,
) -> tuple[float | FloatArray, float | FloatArray, float | FloatArray]:
    r"""Precision, recall and F1 of spans: a predicted span counts if its kind and both of its ends are right.

    .. math:: P = \frac{|\hat S \cap S|}{|\hat S|}, \quad R = \frac{|\hat S \cap S|}{|S|}, \quad
              F_1 = \frac{2 |\hat S \cap S|}{|\hat S| + |S|}

    Labels that break the scheme are read as CoNLL's script does. "I-PER" after no span of that kind begins
    one. A span without an end stops before the next one, or with its sequence.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        Labels as "O", "B-PER", "I-PER". Those whose first part is not of the scheme are outside of spans.
    scheme : {"BIO", "BIOES", "BILOU"}, default="BIO"
        How labels mark spans. "BIO" reads IOB1 as well.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        "micro" is over all spans. "macro" is the mean over the kinds of spans in either list. "weighted"
        weights it by the number of spans in y_true (without any, over all spans). None: each kind, in the
        order of their names.
    zero_division : float, default=0.0
        Used instead of 0 / 0.

    Returns
    -------
    precision, recall, f1 : float, or ndarray of shape (n_kinds,) where average is None

    Raises
    ------
    ValueError
        If lengths disagree or scheme or average are not known.
    TypeError
        If a sequence is a string or a number.

    Examples
    --------
    >>> from sparsekit.metrics import span_precision_recall_f1
    >>> span_precision_recall_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-PER"]])
    (0.5, 1.0, 0.6666666666666666)
    """
    if scheme not in _SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(_SCHEMES)}; got {shown(scheme)}.")
    if average not in ("micro", "macro", "weighted", None):
        raise ValueError(f"average must be 'micro', 'macro', 'weighted' or None; got {shown(average)}.")
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, y_pred {len(y_pred)}.")
    counts: dict[str, list[int]] = {}
    for i, (true, predicted) in enumerate(zip(y_true, y_pred)):
        for name, labels in (("y_true", true), ("y_pred", predicted)):
            if isinstance(labels, str) or not hasattr(labels, "__len__"):
                raise TypeError(
                    f"{name}[{i}] must be a sequence of labels; got {shown(labels)}. If {name} is one "
                    f"sequence, pass [{name}]."
                )
        if len(true) != len(predicted):
            raise ValueError(f"y_true[{i}] has {len(true)} labels, y_pred[{i}] {len(predicted)}.")
        there, found = set(_spans(true, scheme)), set(_spans(predicted, scheme))
        for at, part in enumerate((there & found, found, there)):
            for kind, _, _ in part:
                counts.setdefault(kind, [0, 0, 0])[at] += 1
    table = np.array([counts[kind] for kind in sorted(counts)], dtype=np.float64).reshape(-1, 3)
    is_weighted = average == "weighted" and bool(table[:, 2].any())
    if average is not None and not is_weighted and (average != "macro" or not len(table)):
        table = table.sum(axis=0, keepdims=True)
    right, predicted, true = table.T
    precision, recall, f1 = (
        np.divide(a, b, out=np.full(len(a), float(zero_division)), where=b > 0)
        for a, b in ((right, predicted), (right, true), (2.0 * right, predicted + true))
    )
    if average is None:
        return precision, recall, f1
    means = np.average([precision, recall, f1], axis=1, weights=true if is_weighted else None)
    return float(means[0]), float(means[1]), float(means[2])


@shares_entries(span_precision_recall_f1)
def span_f1_score(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    scheme: Literal["BIO", "BIOES", "BILOU"] = "BIO",
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    zero_division: float = 0.0,
) -> float | FloatArray:
    r"""F1 of the spans that the labels of sequences mark.

    The third of `span_precision_recall_f1`, for ``make_scorer``.

    Parameters
    ----------
    {y_true, y_pred, scheme, average, zero_division}

    Returns
    -------
    float, or ndarray of shape (n_kinds,) where average is None
        Between 0 and 1.

    {Raises}

    See Also
    --------
    sparsekit.SequenceTagger : Predicts such labels.

    Examples
    --------
    >>> from sparsekit.metrics import span_f1_score
    >>> span_f1_score([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"]])
    0.5
    """
    return span_precision_recall_f1(
        y_true, y_pred, scheme=scheme, average=average, zero_division=zero_division
    )[2]


def _spans(labels: Sequence[Any], scheme: str) -> Iterator[tuple[str, int, int]]:
    """(kind, first, last) of the spans of a sequence."""
    begins, goes_on, ends = _SCHEMES[scheme]
    start, kind = -1, ""
    for t, label in enumerate(labels):
        tag, _, its = str(label).partition("-")
        first, inner = tag != "" and tag in begins, tag != "" and tag in goes_on
        if start >= 0 and not (inner and its == kind):
            yield kind, start, t - 1
            start = -1
        if start < 0 and (first or inner):
            start, kind = t, its
        if start >= 0 and tag in ends:
            yield kind, start, t
            start = -1
    if start >= 0:
        yield kind, start, len(labels) - 1
