"""SequenceTagger's hinge loss against enumeration; streams, seen pairs, sparse models."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from reference_chains import features, hinge, labellings

import sparsekit as sk
from sparsekit._linalg.class_design import design_of
from sparsekit._tagger.losses.states import AllStates, SeenStates
from sparsekit._tagger.solver.lbfgs import direction, init_state, step

LENGTHS, K = (3, 1, 4, 0, 2, 3), 3


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 2)) for T in LENGTHS]
    return X, [rng.permuted([0, 1, 2, 1])[:T] for T in LENGTHS]


@pytest.fixture
def words():
    rng = np.random.default_rng(1)
    y = [rng.choice(["N", "V", "D"], size=T).tolist() for T in rng.integers(1, 7, size=25)]
    X = [[{"w": f"{k}{rng.integers(5)}", "first": t == 0} for t, k in enumerate(labels)] for labels in y]
    return X, y


def table(model):
    return np.vstack([model.coef_.T, model.transitions_, model.start_, model.stop_])


def frank_wolfe(X, y, weight):
    """Bounds of the hinge problem's minimum: weight goes from the worst labelling to the best of all."""
    blocks, v = [], 0.0
    for x, labels, c in zip(X, y, weight):
        if len(x) and c > 0:
            found, true = labellings(len(x), K), features(x, labels, K)
            moves = np.array([(true - features(x, z, K)).ravel() for z in found])
            costs = (found != labels).sum(axis=1)
            blocks.append((c, moves, costs, (costs == 0).astype(float)))
            v = np.zeros(true.size)
    for _ in range(5000):
        gap = 0.0
        for c, moves, costs, shares in blocks:
            values = costs - moves @ v
            gap += c * (values.max() - shares @ values)
            high, low = values.argmax(), np.where(shares > 0, values, np.inf).argmin()
            d = moves[high] - moves[low]
            if high != low:
                step = min(shares[low], (values[high] - values[low]) / (c * (d @ d)))
                shares[low] -= step
                shares[high] += step
                v = v + c * step * d
        if gap < 1e-8:
            break
    least = sum(c * shares @ costs for c, _, costs, shares in blocks) - 0.5 * v @ v
    return least, sum(c * (costs - moves @ v).max() for c, moves, costs, _ in blocks) + 0.5 * v @ v


def test_hinge_is_the_documented_problem(data):
    """Against a method of another kind, on the dual."""
    X, y = data
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])
    model = sk.SequenceTagger(0.7, loss="hinge", tol=1e-7).fit(X, y, sample_weight=weight)
    v = table(model)
    value = 0.7 * hinge(v, X, y, weight, K) + 0.5 * np.vdot(v, v)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-10)
    assert 0.0 <= model.dual_gap_ <= 1e-4 * value and model.optimality_ <= 1e-7

    least, most = frank_wolfe(X, y, 0.7 * weight)
    assert most - least <= 1e-7
    np.testing.assert_allclose(value, most, rtol=1e-5)
    assert value - model.dual_gap_ <= most + 1e-9


def test_stream_goes_on_from_a_fit_and_from_a_file(words, tmp_path):
    X, y = words
    one = sk.SequenceTagger(constraints=[("V", "V")])
    y = [[b if (a, b) != ("V", "V") else "D" for a, b in pairwise(["", *labels])] for labels in y]
    y = [[b if (a, b) != ("V", "V") else "D" for a, b in pairwise(["", *labels])] for labels in y]
    one.fit(X, y)
    sk.save(one, tmp_path / "model.skops")
    two = sk.load(tmp_path / "model.skops")
    more = [[{**d, "new": str(t % 2)} for t, d in enumerate(sequence)] for sequence in X]
    for model in (one, two):
        model.partial_fit(more[:9], [labels[::-1] for labels in y[:9]])
    np.testing.assert_array_equal(table(one), table(two))
    assert one.feature_names_in_.tolist()[-2:] == ["new=0", "new=1"] and one.coef_[:, -2:].any()
    code = one.classes_.tolist().index("V")
    assert one.transitions_[code, code] == 0.0
    assert not any(("V", "V") in pairwise(labels) for labels in one.predict(more))


def test_stream_names_what_is_wrong(data, words):
    X, y = data
    model = sk.SequenceTagger()
    with pytest.raises(ValueError, match="classes must be passed in the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes lack the label 2"):
        model.partial_fit(X, y, classes=[0, 1])
    model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="X must hold matrices or arrays of numbers"):
        model.partial_fit(*words)
    with pytest.raises(ValueError, match="expected 2"):
        model.partial_fit([np.zeros((1, 3))], [[0]])
    for options in ({"class_weight": "balanced"}, {"all_possible_states": False}, {"class_weight": {9: 1.0}}):
        with pytest.raises(ValueError, match=r"partial_fit|class_weight"):
            sk.SequenceTagger(**options).partial_fit(X, y, classes=[0, 1, 2])


def test_the_hinge_meets_the_contract_of_the_tagger(words):
    X, y = words
    one, three = (
        sk.SequenceTagger(C=10.0, loss="hinge", n_jobs=n, class_weight={"N": 2.0}).fit(X, y) for n in (1, 3)
    )
    np.testing.assert_array_equal(table(one), table(three))
    assert one.predict(X) == y  # a word says its label
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sk.SequenceTagger(
            loss="hinge", history=True, callback=lambda r: seen.append(r) or r.nit == 3
        ).fit(X, y)
    assert model.n_iter_[0] <= 3 and len(model.history_["fun"]) == len(seen) + 1
    again = sk.SequenceTagger(C=10.0, loss="hinge", warm_start=True).fit(X, y)
    steps = again.n_iter_[0]
    assert again.fit(X, y).n_iter_[0] < steps
    assert sk.SequenceTagger(loss="hinge").fit([np.ones((3, 1))], [[7, 7, 7]]).predict([np.ones((2, 1))]) == [
        [7, 7]
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_one_label_costs_nothing(seed):
    """Rounding leaves a dual value a little below the objective, which is 0."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, size=rng.integers(1, 8))
    X = [rng.normal(size=(T, 2)) * 10 ** rng.uniform(-2, 2) for T in lengths]
    y = [["a"] * T for T in lengths]
    weight = rng.random(len(lengths)) * 10 ** rng.uniform(-3, 3)
    model = sk.SequenceTagger(C=10 * rng.random(), loss="hinge").fit(X, y, sample_weight=weight)
    assert model.objective_ == model.dual_gap_ == 0.0 and model.predict(X) == y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_products_with_seen_pairs(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.2)
    y, D, weights = rng.integers(0, 4, size=40), rng.normal(size=(40, 4)), rng.random(40)
    full = AllStates(design_of(form(X), 1), 4)
    expected = (X != 0).T @ np.eye(4)[y] > 0
    for n_threads in (1, 3):
        seen = SeenStates(design_of(form(X), n_threads), y, 4)
        np.testing.assert_array_equal(seen.table(np.ones(seen.n)) > 0, expected)
        x = rng.normal(size=seen.n)
        np.testing.assert_array_equal(seen.pick(seen.table(x)), x)
        np.testing.assert_allclose(seen.scores(x), X @ seen.table(x), atol=1e-13)
        np.testing.assert_allclose(seen.sums(D), (X.T @ D)[expected], atol=1e-13)
        np.testing.assert_allclose(
            seen.squares(weights, np.arange(4.0)),
            seen.pick(full.squares(weights, np.arange(4.0)).reshape(9, 4)),
        )


@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.5}, {"loss": "sparsemap"}, {"loss": "hinge"}])
def test_pairs_that_were_never_seen_have_no_coefficient(words, options):
    X, y = words
    y = [[a if (b, a) != ("D", "D") else "N" for a, b in zip(labels, ["", *labels])] for labels in y]
    y = [[a if (b, a) != ("D", "D") else "N" for a, b in zip(labels, ["", *labels])] for labels in y]
    model = sk.SequenceTagger(all_possible_states=False, all_possible_transitions=False, **options).fit(X, y)
    codes = {label: k for k, label in enumerate(model.classes_.tolist())}
    names = {name: j for j, name in enumerate(model.feature_names_in_.tolist())}
    states, follow = np.zeros(model.coef_.shape, dtype=bool), np.zeros((3, 3), dtype=bool)
    for sequence, labels in zip(X, y):
        for d, label in zip(sequence, labels):
            states[codes[label], names[f"w={d['w']}"]] = True
            states[codes[label], names["first"]] |= d["first"]
        for a, b in pairwise(labels):
            follow[codes[a], codes[b]] = True
    assert not states.all() and not follow.all()
    assert not model.coef_[~states].any() and not model.transitions_[~follow].any()
    assert np.count_nonzero(model.coef_[states]) > 5
    assert sk.SequenceTagger(**options).fit(X, y).coef_[~states].any() or options


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_sparse_coefficients(data, make, tmp_path):
    X, y = [make(x) for x in data[0]], data[1]
    model = sk.SequenceTagger(l1_ratio=0.9, C=0.5, warm_start=True).fit(X, y)
    labels, marginals, coef = model.predict(X), model.predict_proba(X), model.coef_
    assert sp.issparse(model.sparsify().coef_) and model.coef_.nnz == np.count_nonzero(coef) < coef.size
    sk.save(model, tmp_path / "model.skops")
    for one in (model, sk.load(tmp_path / "model.skops")):
        assert one.predict(X) == labels
        for p, q in zip(one.predict_proba(X), marginals):
            np.testing.assert_allclose(p, q, atol=1e-13)
    np.testing.assert_array_equal(model.densify().coef_, coef)
    assert model.sparsify().fit(X, y).n_iter_[0] <= 1  # a warm start from a sparse matrix
    assert isinstance(model.coef_, np.ndarray)


def test_a_warm_start_forgets_transitions_that_were_never_seen(words):
    X, _ = words
    y = [["NVD"[t % 3] for t in range(len(sequence))] for sequence in X]
    model = sk.SequenceTagger(warm_start=True).fit(X, y)
    assert np.count_nonzero(model.transitions_) == 9
    model.set_params(all_possible_transitions=False, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seen = [("D", "N"), ("N", "V"), ("V", "D")]
    assert set(model.transition_features_) == set(seen)


def test_lbfgs_goes_on_without_pairs_that_lead_uphill():
    """Rounding may make the compact matrix singular; the step is along the scaled gradient then."""
    diagonal = np.array([1.0, 4.0, 100.0])

    def value_and_gradient(x):
        return 0.5 * float(diagonal @ (x - 1.0) ** 2), diagonal * (x - 1.0)

    state = init_state(np.zeros(3), *value_and_gradient(np.zeros(3)), np.sqrt(diagonal), memory=5)
    assert step(value_and_gradient, state) and step(value_and_gradient, state)
    before, state.theta = state.f, np.nan
    assert not direction(state) @ state.g < 0.0
    assert step(value_and_gradient, state)
    assert state.f < before and len(state.pairs) == 1 and state.theta > 0.0
