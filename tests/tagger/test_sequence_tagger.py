"""SequenceTagger: objective and optimum, input of every kind, constraints, weights, scikit-learn's tools."""

import io
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from reference_chains import chain, score
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sparsekit as sk
from sparsekit.metrics import span_f1_score


def objective(model, X, y, weight=None, forbidden=()):
    """The documented objective, by enumeration."""
    K = len(model.classes_)
    code = {label: k for k, label in enumerate(model.classes_.tolist())}
    trans = model.transitions_.copy()
    for j, k in forbidden:
        trans[j, k] = -np.inf
    total = 0.0
    for x, labels, c in zip(X, y, np.ones(len(X)) if weight is None else weight):
        if len(x):
            unary = x @ model.coef_.T
            unary[0] += model.start_
            unary[-1] += model.stop_
            total += c * (chain(unary, trans)[0] - score(unary, trans, [code[label] for label in labels]))
    v = np.concatenate(
        [part.ravel() for part in (model.coef_, model.transitions_, model.start_, model.stop_)]
    )
    assert len(model.start_) == K
    l1 = model.l1_ratio
    return model.C * total + 0.5 * (1.0 - l1) * v @ v + l1 * np.abs(v).sum()


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
def test_objective_is_the_documented_one_and_least(arrays, l1_ratio):
    X, y = arrays
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])
    model = sk.SequenceTagger(C=2.0, l1_ratio=l1_ratio, tol=1e-9).fit(X, y, sample_weight=weight)
    value = objective(model, X, y, weight)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)
    other = clone(model)
    other.classes_ = model.classes_

    def f(v):
        other.coef_, other.transitions_ = v[:9].reshape(3, 3), v[9:18].reshape(3, 3)
        other.start_, other.stop_ = v[18:21], v[21:]
        return objective(other, X, y, weight)

    # the problem is convex: where no variable's slopes to its sides fall, it is at its least
    parts = (model.coef_, model.transitions_, model.start_, model.stop_)
    v = np.concatenate([part.ravel() for part in parts])
    ahead, back = (
        np.array([(f(v + side * e) - value) / 1e-5 for e in 1e-5 * np.eye(24)]) for side in (1, -1)
    )
    assert min(ahead.min(), back.min()) > -1e-3
    np.testing.assert_allclose(ahead[v != 0], -back[v != 0], atol=1e-3)
    if l1_ratio == 0.0:
        assert 0.0 <= model.dual_gap_ < 1e-7
    else:
        assert (model.coef_ == 0).any()


@pytest.mark.parametrize("loss, tol", [("crf", 1e-10), ("hinge", 1e-6)])
def test_dual_gap_bounds_the_error(arrays, loss, tol):
    least = sk.SequenceTagger(loss=loss, tol=tol).fit(*arrays).objective_
    for max_iter in (1, 3, 5):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
            model = sk.SequenceTagger(loss=loss, max_iter=max_iter).fit(*arrays)
        assert -1e-9 <= model.objective_ - least <= model.dual_gap_


def test_weak_penalties_end_near_the_optimum(spans):
    """The gradient at zero, the unit of tol, grows with C; the objective does not."""
    X, y = spans
    model = sk.SequenceTagger(C=1e4).fit(X, y)
    least = sk.SequenceTagger(C=1e4, tol=1e-9).fit(X, y).objective_
    assert model.objective_ - least <= model.dual_gap_ <= 1e-3 * model.objective_


def test_marginals_and_best_labellings_are_those_of_enumeration(arrays):
    X, y = arrays
    model = sk.SequenceTagger(C=5.0).fit(X, y)
    for x, labels, p in zip(X, model.predict(X), model.predict_proba(X)):
        assert p.shape == (len(x), 3) and len(labels) == len(x)
        if len(x):
            unary = x @ model.coef_.T
            unary[0] += model.start_
            unary[-1] += model.stop_
            _, marginals, _, best = chain(unary, model.transitions_)
            np.testing.assert_allclose(p, marginals, atol=1e-12)
            codes = np.searchsorted(model.classes_, labels)
            np.testing.assert_allclose(score(unary, model.transitions_, codes), best)


def same(one, other, rtol=1e-6):
    for name in ("coef_", "transitions_", "start_", "stop_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, np.float32, np.ndarray.tolist])
def test_layouts_and_types(arrays, make):
    X, y = arrays
    expected = sk.SequenceTagger(tol=1e-7).fit(X, y)
    model = sk.SequenceTagger(tol=1e-7).fit([make(x) for x in X], y)
    same(model, expected, 1e-4)
    assert model.coef_.dtype == (np.float32 if make is np.float32 else np.float64)
    assert model.predict([make(x) for x in X]) == expected.predict(X)


@pytest.mark.parametrize("make", [np.array, np.asfortranarray, sp.csr_array, sp.csr_matrix])
def test_what_is_given_is_not_written_to(arrays, make):
    X, y = arrays
    given = [make(x) for x in X]
    for x in given:
        for part in (x.data, x.indices, x.indptr) if sp.issparse(x) else (x,):
            part.flags.writeable = False
    labels = [np.array(labels) for labels in y]
    for loss in ("crf", "sparsemap"):
        model = sk.SequenceTagger(loss=loss, tol=1e-2).fit(given, labels)
        assert model.predict(given) == model.predict(X)
        model.predict_proba(given)
    # one sequence alone could have been used as it is
    sk.SequenceTagger(tol=1e-2).fit(given[:1], labels[:1]).predict_proba(given[:1])


def test_dicts_are_those_of_dict_vectorizer(spans):
    X, y = spans
    flat = DictVectorizer().fit([d for words in X for d in words])
    expected = sk.SequenceTagger(tol=1e-6).fit([flat.transform(words) for words in X], y)
    model = sk.SequenceTagger(tol=1e-6).fit(X, y)
    assert model.feature_names_in_.tolist() == flat.get_feature_names_out().tolist()
    same(model, expected)
    assert not hasattr(expected, "feature_names_in_")
    # what fit has not seen changes nothing
    more = [[{**d, "new": "x", "word2": 3.0} for d in words] for words in X]
    assert model.predict(more) == model.predict(X)


def test_kinds_of_features():
    X = [[{"a": ["x", "y"], "b": np.float32(2.0), "c": True}, ["a=x", "c"], {"a=x": 3, "a": "x"}]]
    model = sk.SequenceTagger().fit(X, [[0, 1, 0]])
    assert model.feature_names_in_.tolist() == ["a=x", "a=y", "b", "c"]
    plain = [np.array([[1, 1, 2, 1], [1, 0, 0, 1], [4, 0, 0, 0.0]])]
    same(model, sk.SequenceTagger().fit(plain, [[0, 1, 0]]))
    assert model.predict(X) == [[0, 1, 0]] or model.predict(X)[0][0] in (0, 1)


@pytest.mark.parametrize(
    "options", [{}, {"l1_ratio": 0.5}, {"loss": "sparsemap"}, {"loss": "hinge"}], ids=str
)
@pytest.mark.parametrize("constraints", ["BIO", [("O", "I-A"), ("O", "I-B"), (None, "I-A"), ("I-A", None)]])
def test_constraints_hold(spans, constraints, options):
    X, y = spans
    if constraints != "BIO":
        y = [[*labels[:-1], "O"] for labels in y]
    options = {"C": 0.1, **options}
    model = sk.SequenceTagger(constraints=constraints, **options).fit(X, y)
    names = model.classes_.tolist()
    rng = np.random.default_rng(0)
    words = sorted({d["word"] for sequence in X for d in sequence})
    odd = [[{"word": str(word)} for word in rng.choice(words, size=9)] for _ in range(50)]
    forbidden = {("O", "I-A"), ("O", "I-B")}
    if constraints == "BIO":
        forbidden |= {("B-A", "I-B"), ("I-A", "I-B"), ("B-B", "I-A"), ("I-B", "I-A")}
    for labels in model.predict(odd):
        assert not forbidden & set(pairwise(labels)) and labels[0] != "I-A"
    for p in model.predict_proba(odd) if hasattr(model, "predict_proba") else ():
        assert p[0, names.index("I-A")] == 0.0
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
    free = sk.SequenceTagger(**options).fit(X, y).predict(odd)
    assert any(forbidden & set(pairwise(labels)) for labels in free)
    for j, k in forbidden:
        assert model.transitions_[names.index(j), names.index(k)] == 0.0


def test_constraints_are_part_of_the_objective(arrays):
    X, _ = arrays
    y = [["B-A", "I-A", "O", "B-A", "I-A"][: len(x)] for x in X]
    model = sk.SequenceTagger(constraints=[("I-A", "I-A")], tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.objective_, objective(model, X, y, forbidden=[(1, 1)]), rtol=1e-9)


@pytest.mark.parametrize("scheme, end", [("BIOES", "E"), ("BILOU", "L")])
def test_schemes_with_ends(scheme, end):
    single = {"BIOES": "S", "BILOU": "U"}[scheme]
    y = [["B-A", "I-A", f"{end}-A", "O", f"{single}-A"]]
    model = sk.SequenceTagger(constraints=scheme, C=1e-3).fit([np.eye(5)], y)
    for T in range(1, 7):
        labels = model.predict([np.zeros((T, 5))])[0]
        tags = "".join(label[0] for label in labels)
        assert tags.replace(single, "").replace("O", "").count("B") == tags.count(end)
        assert tags[0] in f"BO{single}" and tags[-1] in f"O{single}{end}"


def test_weights_are_repetitions(arrays):
    X, y = arrays
    weight = np.array([2, 0, 1, 1, 3, 1])
    more, labels = ([one for one, times in zip(part, weight) for _ in range(times)] for part in (X, y))
    expected = sk.SequenceTagger(tol=1e-8).fit(more, labels)
    same(sk.SequenceTagger(tol=1e-8).fit(X, y, sample_weight=weight), expected)


def test_class_weight_is_a_mean_over_the_labels(arrays):
    X, y = arrays
    given = {"O": 3.0, "B-A": 0.5}
    weight = [np.mean([given.get(label, 1.0) for label in labels]) if labels else 0.0 for labels in y]
    same(
        sk.SequenceTagger(class_weight=given, tol=1e-8).fit(X, y),
        sk.SequenceTagger(tol=1e-8).fit(X, y, sample_weight=weight),
    )
    sk.SequenceTagger(class_weight="balanced").fit(X, y)


def test_threads_change_no_bit(spans):
    X, y = spans
    one, three = (sk.SequenceTagger(n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.predict_proba(X)[3], three.predict_proba(X)[3])


def test_warm_start_follows_the_names(spans):
    X, y = spans
    model = sk.SequenceTagger(warm_start=True, tol=1e-6).fit(X[:20], y[:20])
    cold = sk.SequenceTagger(tol=1e-6).fit(X, y)
    steps = model.fit(X, y).n_iter_[0]
    assert steps < cold.n_iter_[0] and model.fit(X, y).n_iter_[0] == 0
    same(model, cold, 1e-4)
    model.fit([np.eye(3)], [["a", "b", "c"]])  # nothing in common
    assert model.coef_.shape == (3, 3)


def test_callback_history_and_limits(arrays):
    seen = []
    model = sk.SequenceTagger(history=True, callback=seen.append).fit(*arrays)
    assert len(seen) == model.n_iter_[0] == len(model.history_["fun"]) - 1
    assert (np.diff(model.history_["fun"]) <= 0).all() and model.optimality_ <= 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sk.SequenceTagger(callback=lambda r: r.nit == 2).fit(*arrays).n_iter_[0] == 2
    with pytest.warns(ConvergenceWarning, match="max_time"):
        sk.SequenceTagger(max_time=1e-9).fit(*arrays)


def test_one_label_and_unseen_ones():
    X, y = [np.ones((3, 1)), np.ones((1, 1))], [[7, 7, 7], [7]]
    model = sk.SequenceTagger().fit(X, y)
    assert model.predict(X) == y and model.predict([]) == [] and model.predict([np.zeros((0, 1))]) == [[]]
    assert model.score(X, [[7, 7, 8], [9]]) == 0.5
    assert model.score(X, [[7, 7, 8], [9]], sample_weight=[1, 0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e9, 1e100])
def test_features_of_any_size(arrays, size):
    X, y = arrays
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = sk.SequenceTagger(max_iter=50).fit([size * x for x in X], y)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_)
    assert model.objective_ <= 15 * np.log(3) + 1e-9
    for p in model.predict_proba(X):
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_grid_search_pipelines_clones_and_pickles(spans):
    X, y = spans
    search = GridSearchCV(
        sk.SequenceTagger(constraints="BIO"), {"C": [0.1, 1.0]}, scoring=make_scorer(span_f1_score), cv=2
    ).fit(X, y)
    assert 0.0 < search.best_score_ <= 1.0
    steps = make_pipeline(FunctionTransformer(lambda Z: [[{**d, "n": 1} for d in words] for words in Z]))
    steps.steps.append(("tagger", clone(search.best_estimator_)))
    assert steps.fit(X, y).score(X, y) > 0.5
    model = search.best_estimator_
    again = pickle.load(io.BytesIO(pickle.dumps(model)))
    assert again.predict(X) == model.predict(X)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("dicts", [True, False])
def test_saved(spans, arrays, dicts, tmp_path):
    X, y = spans if dicts else arrays
    model = sk.SequenceTagger(constraints="BIO" if dicts else None).fit(X, y)
    sk.save(model, tmp_path / "model.skops")
    again = sk.load(tmp_path / "model.skops")
    assert again.predict(X) == model.predict(X)
    np.testing.assert_array_equal(again.predict_proba(X)[0], model.predict_proba(X)[0])
