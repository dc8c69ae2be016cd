"""`save` and `load`: what comes back is what was saved, and what cannot be saved is refused with a remedy."""

import copy
import os
import pickle
import re
import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from saved_models import CSR, KINDS, MODELS, NUMBERS, Extreme, X, fitted
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import sparsekit as sk
from sparsekit._saved.contracts import CONTRACTS

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_marginals",
    "transform",
)


def same(a, b, name=""):
    """Fails where two values differ in a type or a bit."""
    assert type(a) is type(b), (name, type(a), type(b))
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        if a.flags.forc:
            assert a.flags.c_contiguous == b.flags.c_contiguous, name
        np.testing.assert_array_equal(a, b, err_msg=name)
    elif sp.issparse(a):
        for part in ("data", "indices", "indptr"):
            same(getattr(a, part), getattr(b, part), f"{name}.{part}")
        assert a.shape == b.shape
    elif isinstance(a, BaseEstimator):
        same(vars(a), vars(b), name)
    elif isinstance(a, dict):
        assert list(a) == list(b), name
        for key in a:
            same(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), name
        for one, other in zip(a, b):
            same(one, other, name)
    else:
        assert a == b or (a != a and b != b), name


def _spare(model):
    """Whether weights lie in a table with spare columns, which no file has: sums depend on where they lie."""
    coef = getattr(model, "coef_", None)
    return isinstance(coef, np.ndarray) and not (coef.flags.c_contiguous or coef.flags.f_contiguous)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_saved_one(name, compress, tmp_path):
    model, path = fitted(name), tmp_path / "model.npz"
    before = pickle.dumps(model)
    sk.save(model, path, compress=compress)
    assert pickle.dumps(model) == before
    found = sk.load(path)
    check_is_fitted(found)
    assert type(found) is type(model) and os.listdir(tmp_path) == ["model.npz"]
    assert vars(found).keys() == vars(model).keys()
    for key, value in vars(model).items():
        same(value, vars(found)[key], key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of features' names, which only some were fitted to
        for rows in (X, CSR, X[:1], np.asfortranarray(X), X.astype("f4")):
            for method in METHODS:
                if hasattr(model, method):
                    one, other = getattr(model, method)(rows), getattr(found, method)(rows)
                    if sp.issparse(one):
                        one, other = one.toarray(), other.toarray()
                    assert one.dtype == other.dtype
                    if _spare(model) and one.dtype.kind == "f":
                        np.testing.assert_allclose(one, other, rtol=1e-6 if one.itemsize < 8 else 1e-13)
                    else:
                        np.testing.assert_array_equal(one, other, err_msg=method)


def test_every_class_has_a_contract_and_a_model_here():
    tested = {name.split()[0] for name in MODELS} | {"SequenceTagger"}  # that of sequences: tests/tagger
    assert CONTRACTS.keys() == tested
    estimators = {name for name in sk.__all__ if hasattr(getattr(sk, name), "get_params")}
    assert estimators == CONTRACTS.keys()


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("ExtremeSoftmaxSGD")])
def test_partial_fit_goes_on_to_the_same_bits(name, tmp_path):
    model, path = copy.deepcopy(fitted(name)), tmp_path / "model.npz"
    sk.save(model, path)
    found = sk.load(path)
    found.__dict__.pop("feature_names_in_", None), model.__dict__.pop("feature_names_in_", None)
    y = model.predict(X).toarray() if model.multilabel_ else model.predict(X)
    for one in (model, found):
        for rows in (slice(0, 25), slice(25, 40), slice(0, 40)):
            one.partial_fit(X[rows].astype("f4"), y[rows])
    for key, value in vars(model).items():
        same(value, vars(found)[key], key)


def test_what_is_no_fitted_estimator_of_ours_is_refused(tmp_path):
    path = tmp_path / "model.npz"

    class Own(sk.LassoOBA):
        pass

    for model, error, why in [
        (make_pipeline(StandardScaler(), sk.LassoOBA()).fit(X, NUMBERS), TypeError, r"pipeline\[-1\]"),
        (Own().fit(X, NUMBERS), TypeError, "got Own"),
        ("a text", TypeError, "got str"),
        (sk.LassoOBA(), NotFittedError, "not fitted"),
    ]:
        with pytest.raises(error, match=why):
            sk.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    "model, why",
    [
        (sk.LassoOBA(callback=print).fit(X, NUMBERS), r"callback is a builtin.*set_params\(callback=None\)"),
        (sk.L1LogisticOBACV(Cs=2, cv=KFold(2)).fit(X, KINDS), r"cv is a KFold; set_params\(cv=5\)"),
        (
            sk.L1LogisticOBACV(Cs=2, cv=2, scoring=lambda model, X, y: 0.0).fit(X, KINDS),
            r"scoring is a function; set_params\(scoring",
        ),
        (
            Extreme(max_iter=1, learning_rate=0.1, random_state=np.random.RandomState(0)).fit(X, KINDS),
            "random_state is a RandomState",
        ),
        (
            sk.LPSparseMAPClassifier(1.0, factors=lambda labels: []).fit(X, np.eye(3, dtype=int)[KINDS]),
            r"factors is a function; give the rules as tuples",
        ),
        (
            sk.StabilitySelection(Lasso(), penalties=[0.1, 1.0], n_pairs=2).fit(X, NUMBERS),
            r"estimator is a Lasso; set_params\(estimator=None\) first; what was selected stays",
        ),
    ],
)  # fmt: skip
def test_parameters_that_are_no_values_are_refused_with_a_remedy(model, why, tmp_path):
    with pytest.raises(TypeError, match=why):
        sk.save(model, tmp_path / "model.npz")
    assert not os.listdir(tmp_path)


def test_factors_of_the_user_are_refused(tmp_path):
    class Never(sk.Or):
        pass

    model = copy.deepcopy(fitted("LPSparseMAPClassifier")).set_params(factors=[(Never, [0])])
    with pytest.raises(TypeError, match=r"factors\.0\.0 is a type; give the rules as tuples"):
        sk.save(model, tmp_path / "model.npz")


def test_labels_of_mixed_objects_are_refused(tmp_path):
    model = copy.deepcopy(fitted("SparsemaxClassifier"))
    model.classes_ = np.array(["one", 2, 3.0], dtype=object)
    with pytest.raises(
        TypeError, match="classes_ is an array of objects that are not all strings; fit to labels"
    ):
        sk.save(model, tmp_path / "model.npz")
    model.classes_ = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[D]")
    with pytest.raises(TypeError, match=r"classes_ is an array of datetime64\[D\]"):
        sk.save(model, tmp_path / "model.npz")


def test_changed_attributes_are_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "model.npz"
    model = copy.deepcopy(fitted("L1LogisticOBA multinomial"))
    sk.save(model, path)
    before = path.read_bytes()
    model.coef_ = model.coef_[:, :5]
    with pytest.raises(ValueError, match=r"coef_ must have the shape \(3, 6\); got \(3, 5\)"):
        sk.save(model, path)
    model.coef_ = np.full((3, 6), np.nan)
    with pytest.raises(ValueError, match="coef_ holds NaN"):
        sk.save(model, path)
    model.coef_, model.note = np.zeros((3, 6)), "mine"
    with pytest.raises(TypeError, match="has 'note', which no fit sets"):
        sk.save(model, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.npz"]


def test_arrays_can_be_read_by_numpy_alone(tmp_path):
    model, path = fitted("ExtremeSoftmaxSGD"), tmp_path / "model.npz"
    sk.save(model, path)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["coef_"], model.coef_)
        assert file["header.json"].startswith(b"{")


def test_the_guide_names_types_for_skops_as_they_are(checkout):
    text = (checkout / "doc" / "saved_models.md").read_text(encoding="utf-8")
    named = {
        f"sparsekit.{module}.{name}": getattr(import_module(f"sparsekit.{module}"), name)
        for module, name in re.findall(r"(?<=`)(_\w+(?:\.\w+)+)\.(\w+)`", text)
    }
    assert all(f"{kind.__module__}.{kind.__name__}" == full for full, kind in named.items())
    assert {kind.__name__ for kind in named.values()} >= CONTRACTS.keys()


@pytest.mark.parametrize("name", ["LassoOBA sparsified", "ExtremeSoftmaxSGD umax", "LPSparseMAPClassifier"])
def test_skops_takes_them_too(name):
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(fitted(name))
    found = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    np.testing.assert_array_equal(found.predict(X), fitted(name).predict(X))
