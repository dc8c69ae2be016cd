"""Label sets as a classifier is given them: indicators, pairs, logic; and sets that obey the logic."""

from numbers import Integral

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.utils.multiclass import type_of_target

from ..._arrays import is_sparse, namespace, to_host
from ..._estimator.device_checks import check_device_X, device_weight, encode_device_labels, flatten_column
from ..._estimator.labels import encode_labels, warn_of_many_classes
from ..._estimator.training_data import LabelledData, check_host_data
from ..._linalg.structure import check_sparse
from ..._messages import shown
from ..factors.factors import Factor
from ..graphs.graph import FactorGraph
from ..labels.label_loss import Labels
from ..plan import MARGINAL_TOL
from ..solver.layout import GraphOptions

# Most nodes of HiGHS' tree for one row, so that a prediction ends; 150 labels with 400 pairs take a few.
MAX_NODES = 10_000
_EXAMPLE = "For example [(Imply, [4, 7])]: label 4 implies label 7."


def with_indicator(estimator, X, y, sample_weight):
    """LabelledData whose ``values`` are an indicator, of labels or of sets of labels."""
    if namespace(X=X) is not np:
        X = check_device_X(estimator, X)
        values, classes, multilabel = device_indicator(X, y)
        weight = device_weight(X, sample_weight)
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight, multi_output=True)
        values, classes, multilabel = indicator(y)
    return LabelledData(X, y, values, weight, sample_weight, classes=classes, multilabel=multilabel)


def indicator(y):
    """Indicator (n, K) of float64, classes, and whether y was a matrix."""
    y = flatten_column(y, stacklevel=6)
    if y.ndim == 1:
        classes, codes = encode_labels(y, stacklevel=6)
        return np.eye(len(classes))[codes], classes, False
    return (*_checked(y.toarray() if is_sparse(y) else np.asarray(y), np), True)


def device_indicator(X, y):
    """`indicator` for y on the GPU of X: what is returned is there."""
    if getattr(y, "ndim", 1) == 1:
        classes, codes = encode_device_labels(y, X=X, stacklevel=7)
        warn_of_many_classes(len(classes), X.shape[0], stacklevel=5)
        return namespace(X=X).eye(len(classes))[codes], classes, False
    xp = namespace(X=X, y=y)
    if y.ndim != 2 or y.shape[0] != X.shape[0]:
        raise ValueError(
            f"y must have one row of labels for each row of X; got {y.shape} for {X.shape[0]} rows"
        )
    return (*_checked(check_sparse(y, "y").toarray() if hasattr(y, "nnz") else y, xp), True)


def _checked(dense, xp):
    """An indicator as float64, and the numbers of its columns."""
    if dense.dtype.kind not in "biuf" or not bool(((dense == 0) | (dense == 1)).all()):
        kind = f" {shown(type_of_target(dense))}" if xp is np else ""
        raise ValueError(f"Unknown label type:{kind}; y must be an indicator of zeros and ones")
    return dense.astype(np.float64), xp.arange(dense.shape[1])


def choose_pairs(pairs, Y):
    """Pairs of columns (P, 2), the lesser first."""
    K = Y.shape[1]
    if pairs is None:
        return np.zeros((0, 2), dtype=np.int64)
    if isinstance(pairs, str):
        return np.column_stack(np.triu_indices(K, 1))
    if isinstance(pairs, bool):
        raise ValueError("pairs must be 'all', a number, None or columns of y; got a bool")
    if isinstance(pairs, Integral):
        together = sp.csr_matrix(to_host(Y))
        together = sp.triu(together.T @ together, 1).tocoo()
        # break ties by columns, so that the choice does not depend on the sort
        order = np.lexsort((together.col, together.row, -together.data))[:pairs]
        return np.column_stack([together.row[order], together.col[order]]).astype(np.int64)
    try:
        given = np.asarray(to_host(pairs))
    except ValueError as error:
        raise ValueError(f"pairs must be whole numbers of shape (n_pairs, 2): {error}") from None
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(f"pairs must be whole numbers of shape (n_pairs, 2); got shape {given.shape}")
    if given.min() < 0 or given.max() >= K:
        raise ValueError(f"pairs must be columns of y, 0 to {K - 1}; got {given.min()} to {given.max()}")
    given = np.sort(given, axis=1)
    if (given[:, 0] == given[:, 1]).any() or len(np.unique(given, axis=0)) < len(given):
        raise ValueError("pairs must be of two different labels, and none twice")
    return given.astype(np.int64)


def logic(factors, n_labels):
    """List of factors over a graph of the labels."""
    graph = FactorGraph()
    labels = graph.variable((n_labels,))
    made = made_factors(factors, labels)
    for factor in made:
        if not isinstance(factor, Factor) or factor._kind not in ("linear", "orout"):
            raise TypeError(f"factors must be logic factors; got {type(factor).__name__}")
        if factor.graph is not graph or factor.index.max() >= n_labels:
            raise ValueError("factors must be over the labels that they are given, and no other variables")
        graph.add(factor)
    return list(made)


def made_factors(factors, labels):
    """What ``factors`` are over these variables, as yet in no graph."""
    if factors is None:
        return []
    if not callable(factors):
        return [_factor(given, labels) for given in factors]
    if isinstance(factors, type):
        raise TypeError(f"factors must be a list of tuples; got the class {factors.__name__}. {_EXAMPLE}")
    made = factors(labels)
    if not isinstance(made, (list, tuple)):
        raise TypeError(f"factors must return a list of factors; got {type(made).__name__}")
    return made


def _factor(given, labels):
    """A factor of a tuple (factor class, columns, further arguments, perhaps a dict of keywords)."""
    if not (
        isinstance(given, tuple)
        and len(given) >= 2
        and isinstance(given[0], type)
        and issubclass(given[0], Factor)
    ):
        raise TypeError(
            f"factors must be tuples (factor class, columns, ...); got {shown(given)}. {_EXAMPLE}"
        )
    kind, columns, *further = given
    keywords = further.pop() if further and isinstance(further[-1], dict) else {}
    columns = np.asarray(columns)
    if columns.dtype.kind not in "iu" or not columns.size:
        raise ValueError(f"factors: columns must be whole numbers; got {shown(given[1])}")
    if columns.min() < 0 or columns.max() >= len(labels):
        raise ValueError(f"factors: columns must be 0 to {len(labels) - 1}; got {shown(given[1])}")
    try:
        return kind(labels[columns], *further, **keywords)
    except (TypeError, ValueError) as error:
        raise type(error)(f"factors: {kind.__name__}: {error}") from error


def nearest_sets(scores, factors, n_threads):
    """Sets of labels (n, K) of large score that obey all factors: the largest where the relaxation is tight.

    LP-MAP answers most rows; the rows that it leaves between 0 and 1 are mixed-integer programs.
    """
    labels = Labels(scores.shape[1], np.zeros((0, 2)), logic(factors, scores.shape[1]))
    none, xp = np.zeros(0, like=scores), namespace(scores=scores)
    mu, _ = labels.marginals(scores, none, none, GraphOptions(quadratic=False), n_threads)
    # sets are decided one by one, in main memory
    out, scores = to_host((mu > 0.5).astype(np.int64)), to_host(scores)
    # tied sets give a mixture: rounding it may obey all factors and be far from optimal
    between = (mu > MARGINAL_TOL) & (mu < 1.0 - MARGINAL_TOL)
    for i in np.flatnonzero(labels.breaking(out) | to_host(between.any(axis=1))):
        out[i] = _best_set(labels.polytope, scores[i])
    return xp.asarray(out)


def _best_set(p, scores):
    """Set of labels (K,) of the largest score among those that obey a polytope's rows, by HiGHS."""
    least = np.where(np.arange(len(p.right)) < p.n_upper, -np.inf, p.right)
    found = milp(
        -scores / (np.abs(scores).max(initial=0.0) or 1.0),
        integrality=np.ones(len(scores)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(p.rows, least, p.right),
        options={"mip_rel_gap": 0.0, "node_limit": MAX_NODES},
    )
    if found.x is None:
        is_proven = found.status == 2
        problem = (
            "no set of labels satisfies all of them" if is_proven else f"no set was found: {found.message}"
        )
        raise ValueError(f"factors: {problem}")
    return np.round(found.x).astype(np.int64)
