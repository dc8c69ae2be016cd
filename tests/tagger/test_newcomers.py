"""What users of other taggers do first: inspect features, pass data frames, pass wrong input."""

from collections import Counter

import numpy as np
import pytest

import sparsekit as sk

WORDS = [[{"w": "Ada", "n": 1.5}, {"w": "runs", "n": 0.0}], [], [{"w": "Bob", "n": 2.0}]]
TAGS = [["B-PER", "O"], [], ["B-PER"]]


class Frame:
    """What a data frame of pandas (or of Polars) has that is needed here."""

    def __init__(self, rows, polars=False):
        self.rows, self.columns, self.shape = rows, ["w", "n"], (len(rows), 2)
        if polars:
            self.to_dicts = lambda: rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        raise KeyError(key)

    def to_dict(self, orient):
        assert orient == "records"
        return self.rows


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


@pytest.mark.parametrize("form", [Frame, lambda rows: Frame(rows, polars=True), objects])
def test_frames_and_columns_of_objects_are_dicts(form):
    expected = sk.SequenceTagger().fit(WORDS, TAGS)
    model = sk.SequenceTagger().fit([form(rows) for rows in WORDS], [objects(part) for part in TAGS])
    assert model.feature_names_in_.tolist() == ["n", "w=Ada", "w=Bob", "w=runs"]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.predict([form(rows) for rows in WORDS]) == expected.predict(WORDS)


def test_pandas():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frames = pd.Series([pd.DataFrame(rows, columns=["w", "n"]) for rows in WORDS], index=[5, 6, 9])
    tags = pd.Series([pd.Series(part, dtype=object, index=range(3, 3 + len(part))) for part in TAGS])
    model = sk.SequenceTagger().fit(frames, tags)
    np.testing.assert_array_equal(model.coef_, sk.SequenceTagger().fit(WORDS, TAGS).coef_)
    with pytest.raises(TypeError, match="a data frame is one"):
        model.predict(frames.iloc[0])
    with pytest.raises(TypeError, match=r"X\[0\]: the feature 'w' must be .* got None"):
        model.predict([pd.DataFrame({"w": [None, "Ada"]}, dtype=object)])


@pytest.mark.parametrize("sparse", [False, True])
def test_features_by_name(sparse):
    model = sk.SequenceTagger(l1_ratio=0.3, C=3.0).fit(WORDS, TAGS)
    coef, labels = model.coef_.copy(), ["B-PER", "O"]
    model = model.sparsify() if sparse else model
    expected = {
        (name, labels[k]): coef[k, j]
        for k in range(2) for j, name in enumerate(["n", "w=Ada", "w=Bob", "w=runs"]) if coef[k, j]
    }  # fmt: skip
    assert 0 < len(expected) < coef.size and model.state_features_ == expected
    follow = model.transitions_
    assert model.transition_features_ == {
        (labels[a], labels[b]): follow[a, b] for a in range(2) for b in range(2) if follow[a, b]
    }
    assert Counter(sk.SequenceTagger().fit(WORDS, TAGS).transition_features_).most_common(1)[0][0] == (
        "B-PER", "O",
    )  # fmt: skip
    assert all(type(part) in (str, float) for key, v in model.state_features_.items() for part in (*key, v))
    columns = sk.SequenceTagger().fit([np.eye(2)], [[7, 8]]).state_features_
    assert set(columns) == {(0, 7), (0, 8), (1, 7), (1, 8)}
    assert not hasattr(sk.SequenceTagger(), "state_features_")
    assert not hasattr(sk.SequenceTagger(), "transition_features_")


def test_messages_say_what_to_pass():
    model = sk.SequenceTagger(loss="hinge").fit(WORDS, TAGS)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(WORDS)
    assert "loss='hinge' has no probabilities" in str(caught.value.__cause__)
    with pytest.raises(TypeError, match=r"such as \{'word': 'Ada'\}"):
        model.predict([["Ada", "runs"]])
    with pytest.raises(ValueError, match="X must hold dicts of features, as in fit; got matrices or arrays"):
        model.predict([np.ones((2, 3))])
    with pytest.raises(
        TypeError, match=r"y_true\[0\] must be a sequence of labels; got 'B'.*pass \[y_true\]"
    ):
        sk.metrics.span_f1_score(["B", "I"], ["B", "I"])
