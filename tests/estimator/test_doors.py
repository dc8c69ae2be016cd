"""A sparse matrix whose arrays describe none is a ValueError at every door, and never a crash.

Doors are found by their signatures, so that new estimators and methods are tried as well.
"""

import inspect
import pickle

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import get_tags

import sparsekit as sk
from sparsekit import inspection, metrics, optimize

matplotlib.use("Agg")

N, P = 40, 12


def _last_index(X, value):
    X.indices[-1] = value


def _resized(X, name, size):
    setattr(X, name, np.resize(getattr(X, name), size))


FAULTS = {
    "index too large": lambda X: _last_index(X, X.shape[X.format == "csr"]),
    "index far out": lambda X: _last_index(X, np.iinfo(X.indices.dtype).max),
    "index negative": lambda X: _last_index(X, -5),
    "first pointer": lambda X: X.indptr.__setitem__(0, 2),
    "first pointer negative": lambda X: X.indptr.__setitem__(0, -(10**6)),
    "pointer falls": lambda X: X.indptr.__setitem__(3, 0),
    "pointer far out": lambda X: X.indptr.__setitem__(3, 10**8),
    "last pointer": lambda X: X.indptr.__setitem__(-1, len(X.indices) + 10**6),
    "short pointers": lambda X: _resized(X, "indptr", len(X.indptr) - 2),
    "long pointers": lambda X: _resized(X, "indptr", len(X.indptr) + 1),
    "short indices": lambda X: _resized(X, "indices", len(X.indices) - 1),
    "short data": lambda X: _resized(X, "data", len(X.data) - 1),
}
LAYOUTS = [(kind, index) for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array) for index in ("i4", "i8")]


def matrices(A, faults=tuple(FAULTS)):
    """Every fault in every layout of A, each a new matrix."""
    for name in faults:
        for kind, index in LAYOUTS:
            X = kind(A)
            X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
            FAULTS[name](X)
            yield f"{name}, {kind.__name__}, {index}", X


def _data():
    rng = np.random.default_rng(0)
    A = np.where(rng.random((N, P)) < 0.4, rng.standard_normal((N, P)), 0.0)
    A[-1, -1] = A[0, 0] = 1.0
    return A, rng.integers(0, 3, N), rng.standard_normal(N)


A, LABELS, NUMBERS = _data()
ESTIMATORS = {
    name: getattr(sk, name)
    for name in sk.__all__
    if inspect.isclass(getattr(sk, name)) and issubclass(getattr(sk, name), BaseEstimator)
    if name != "SequenceTagger"  # it takes lists of matrices: tests/tagger
}
VARIANTS = {
    **{name: make() for name, make in ESTIMATORS.items()},
    "ExtremeSoftmaxSGD, hashed": sk.ExtremeSoftmaxSGD(hash_bits=10, max_iter=2),
    "ExtremeSoftmaxSGD, is": sk.ExtremeSoftmaxSGD("is", max_iter=2),
    "BoundedClassifier, log": sk.BoundedClassifier(loss="log_loss"),
}


def target(model):
    if get_tags(model).target_tags.positive_only:
        return np.abs(NUMBERS)
    return NUMBERS if is_regressor(model) else LABELS


def has_parameter(call, name):
    return name in inspect.signature(call).parameters


def doors(model):
    """Methods that take X, each a call of X alone."""
    y = target(model)
    for name in dir(model):
        if name.startswith("_") or not callable(getattr(model, name, None)):
            continue
        method = getattr(model, name)
        if has_parameter(method, "X"):
            yield name, (lambda X, method=method: method(X, y)) if has_parameter(method, "y") else method


def without_X(method):
    return lambda X: method()


def fitted(model):
    # which is enough to get to every door
    few = {"ExtremeSoftmaxSGD": {"max_iter": 2}, "StabilitySelection": {"n_pairs": 3}}
    model.set_params(**few.get(type(model).__name__, {}))
    return model.fit(A, target(model))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VARIANTS)
def test_every_method_that_takes_X(name):
    model = fitted(VARIANTS[name])
    seen = [door for door, _ in doors(model)]
    wanted = {"transform", "inverse_transform"} if hasattr(model, "transform") else {"predict", "score"}
    assert wanted | {"fit"} <= set(seen)
    for door, call in doors(model):
        for said, X in matrices(A):
            with pytest.raises(ValueError, match=r"X is no valid CS[RC] matrix: "):
                call(X)
                pytest.fail(f"{door}: {said}")
    for door, call in doors(model):  # and the same data as it should be is taken
        for kind, _ in LAYOUTS:
            if door != "inverse_transform" or model.get_support().all():  # it takes the selected columns
                assert call(kind(A)) is not None, door


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SparsemaxClassifier", "SoftmaxClassifierCV", "ExtremeSoftmaxSGD",
                                  "LPSparseMAPClassifier"])  # fmt: skip
def test_targets_that_are_sparse(name):
    Y = np.eye(3)[LABELS]
    model = VARIANTS[name].set_params(**({"max_iter": 2} if name == "ExtremeSoftmaxSGD" else {})).fit(A, Y)
    for door, _ in doors(model):
        method = getattr(model, door)
        if not has_parameter(method, "y"):
            continue
        for said, y in matrices(Y):
            with pytest.raises(ValueError, match=r"y is no valid CS[RC] matrix: "):
                method(A, y)
                pytest.fail(f"{door}: {said}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["L1LogisticOBA", "LassoOBA", "BoundedClassifier", "ExtremeSoftmaxSGD"])
def test_weights_that_are_sparse(name):
    """An estimator as `sparsify` leaves it, unpickled with other arrays."""
    model = VARIANTS[name]
    if "warm_start" in model.get_params():
        model.set_params(warm_start=True)
    model = fitted(model).sparsify()
    dense = model.coef_.toarray()
    dense[0, 0], dense[-1, -1] = 1.0, 2.0
    for said, coef in matrices(dense, ["index too large", "index negative", "last pointer", "short data"]):
        broken = pickle.loads(pickle.dumps(model))
        broken.coef_ = coef
        calls = {door: call for door, call in doors(broken) if door != "path"}
        calls |= {door: without_X(getattr(broken, door)) for door in ("densify", "sparsify")}
        for door, call in calls.items():
            if door == "partial_fit" or (door == "fit" and "warm_start" not in model.get_params()):
                continue  # their weights are what the last call left in addition to coef_, or none
            broken.coef_ = coef
            with pytest.raises(ValueError, match=r"coef_ is no valid CS[RC] matrix: "):
                call(A)
                pytest.fail(f"{door}: {said}")


@pytest.mark.filterwarnings("ignore")
def test_weights_of_another_shape():
    """A hashed table is looked up by hash_bits, others by the numbers of classes and columns."""
    hashed = sk.ExtremeSoftmaxSGD(hash_bits=8, max_iter=2).fit(A, LABELS).set_params(hash_bits=30)
    plain = sk.ExtremeSoftmaxSGD(max_iter=2).fit(A, LABELS)
    half = sk.ExtremeSoftmaxSGD(max_iter=2).fit(A, LABELS).quantize()
    plain.coef_, half.coef_ = plain.coef_[:, :5], half.coef_[:1]
    bias = sk.ExtremeSoftmaxSGD(max_iter=2).fit(A, LABELS)
    bias.intercept_ = bias.intercept_[:1]
    for model, name in ((hashed, "table_"), (plain, "coef_"), (half, "coef_"), (bias, "intercept_")):
        for door, call in doors(model):
            if door != "fit":
                for X in (A, sp.csr_array(A)):
                    with pytest.raises(ValueError, match=f"{name} of this ExtremeSoftmaxSGD has the shape"):
                        call(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "call",
    [
        lambda X: sk.l1_logistic_path(X, LABELS, n_lambdas=2),
        lambda X: sk.LassoOBA.path(X, NUMBERS, n_lambdas=2),
        lambda X: sk.fenchel_young_path(X, LABELS, alphas=[1.0]),
        lambda X: optimize.LogisticLoss(X, np.where(LABELS > 0, 1.0, -1.0)),
        lambda X: optimize.LeastSquaresLoss(X, NUMBERS),
        lambda X: optimize.ProbitLoss(X, np.where(LABELS > 0, 1.0, -1.0)),
        lambda X: metrics.precision_at_k(X, np.zeros((N, 1), dtype=int)),
        lambda X: inspection.AttentionDisplay.from_weights(X),
    ],
)  # fmt: skip
def test_functions(call):
    for said, X in matrices(A):
        with pytest.raises(ValueError, match=r"(X|y_true|the weights) is no valid CS[RC] matrix: "):
            call(X)
            pytest.fail(said)
