"""`save` and `load`: what comes back is what was saved, and what `load` would refuse is not saved."""

import copy
import json
import os
import pickle
import sys
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from saved_models import CSR, KINDS, MODELS, NUMBERS, Extreme, X, fitted
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import sparsekit as sk

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_marginals",
    "transform",
)


@pytest.fixture(autouse=True)
def skops():
    return pytest.importorskip("skops.io", reason="writes and reads the files")


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
    model, path = fitted(name), tmp_path / "model.skops"
    before = pickle.dumps(model)
    sk.save(model, path, compress=compress)
    assert pickle.dumps(model) == before
    found = sk.load(path)
    check_is_fitted(found)
    assert type(found) is type(model) and os.listdir(tmp_path) == ["model.skops"]
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


def test_every_estimator_has_a_model_here():
    tested = {name.split()[0] for name in MODELS} | {"SequenceTagger"}  # that of sequences: tests/tagger
    assert {name for name in sk.__all__ if hasattr(getattr(sk, name), "get_params")} == tested


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("ExtremeSoftmaxSGD")])
def test_partial_fit_goes_on_to_the_same_bits(name, tmp_path):
    model, path = copy.deepcopy(fitted(name)), tmp_path / "model.skops"
    sk.save(model, path)
    found = sk.load(path)
    found.__dict__.pop("feature_names_in_", None), model.__dict__.pop("feature_names_in_", None)
    y = model.predict(X).toarray() if model.multilabel_ else model.predict(X)
    for one in (model, found):
        for rows in (slice(0, 25), slice(25, 40), slice(0, 40)):
            one.partial_fit(X[rows].astype("f4"), y[rows])
    for key, value in vars(model).items():
        same(value, vars(found)[key], key)


def test_estimators_of_scikit_learn_around_ours(tmp_path):
    for model in (
        make_pipeline(StandardScaler(), sk.L1LogisticOBA()),
        OneVsRestClassifier(sk.BoundedClassifier()),
        Extreme(max_iter=1, learning_rate=0.1, random_state=np.random.RandomState(0)),
    ):
        sk.save(model.fit(X, KINDS), tmp_path / "model.skops")
        found = sk.load(tmp_path / "model.skops")
        np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_what_is_no_fitted_estimator_of_ours_is_refused(tmp_path):
    path = tmp_path / "model.skops"

    class Own(sk.LassoOBA):
        pass

    class Never(sk.Or):
        pass

    rules = copy.deepcopy(fitted("LPSparseMAPClassifier")).set_params(factors=[(Never, [0])])
    for model, error, why in [
        (Own().fit(X, NUMBERS), TypeError, "holds .*Own, which load refuses"),
        ("a text", TypeError, "got str"),
        (sk.LassoOBA(), NotFittedError, "not fitted"),
        (sk.LassoOBA(callback=print).fit(X, NUMBERS), TypeError, r"builtins\.print.*callback=None"),
        (sk.LassoOBA(callback=lambda _: None).fit(X, NUMBERS), TypeError, r"lambda.*callback=None"),
        (sk.L1LogisticOBACV(Cs=2, cv=KFold(2)).fit(X, KINDS), TypeError, "KFold.*cv=5"),
        (rules, TypeError, "Never.*factors as tuples"),
    ]:
        with pytest.raises(error, match=why):
            sk.save(model, path)
        assert not os.listdir(tmp_path)


def test_an_error_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "model.skops"
    sk.save(fitted("LassoOBA"), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="load refuses"):
        sk.save(sk.LassoOBA(callback=print).fit(X, NUMBERS), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.skops"]


def test_files_that_are_none(tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(FileNotFoundError):
        sk.load(path)
    with pytest.raises(IsADirectoryError):
        sk.load(tmp_path)
    sk.save(fitted("LassoOBA"), path)
    whole = path.read_bytes()
    for content in (b"", b"a text", b"\x80\x04N.", whole[:-9], whole.replace(b'"alpha"', b'"alphA"', 1)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"'.*model\.skops' is no file of sparsekit\.save: "):
            sk.load(path)
    np.savez(path := tmp_path / "arrays.npz", coef_=np.zeros(3))
    with pytest.raises(ValueError, match=r"it has no schema\.json"):
        sk.load(path)
    with zipfile.ZipFile(path, "a") as archive:  # as the format before skops had it
        archive.writestr("header.json", json.dumps({"schema": "sparsekit.model", "version": 1}))
    with pytest.raises(ValueError, match=r"an earlier version of sparsekit wrote it.*skops\.io\.dump"):
        sk.load(path)


def test_other_types_are_refused_before_they_are_made(tmp_path, skops):
    class Burst:
        def __reduce__(self):
            return (pytest.fail, ("a file was executed",))

    path, model = tmp_path / "model.skops", copy.deepcopy(fitted("LassoOBA"))
    for foreign in (Burst(), os.system, sk.lasso_path):
        model.note = foreign
        skops.dump(model, path)
        with pytest.raises(TypeError, match="Untrusted types found"):
            sk.load(path)


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    for call in (lambda: sk.save(fitted("LassoOBA"), tmp_path / "m"), lambda: sk.load(tmp_path / "m")):
        with pytest.raises(ImportError, match=r'pip install "sparsekit\[save\]"'):
            call()
