"""The display of a cross-validation's scores: what it draws is what the estimator found."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import scale

from sparsekit import L1LogisticOBA, L1LogisticOBACV, SoftmaxClassifierCV, SparsemaxClassifierCV
from sparsekit.inspection import CVScoreDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def check(display, position, model):
    np.testing.assert_allclose(display.line_.get_xdata(), position)
    np.testing.assert_allclose(display.line_.get_ydata(), model.mean_score_)
    assert len(display.fold_lines_) == len(model.scores_)
    for line, scores in zip(display.fold_lines_, model.scores_):
        np.testing.assert_array_equal(line.get_ydata(), scores)
    (bars,) = display.errorbar_.lines[2]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends.T, [model.mean_score_ - model.se_, model.mean_score_ + model.se_])


def test_scores_of_the_l1_model(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = L1LogisticOBACV(Cs=12, scoring="neg_log_loss").fit(scale(X), y)
    assert model.C_best_ != model.C_1se_
    display = CVScoreDisplay.from_estimator(model)
    check(display, np.log10(model.Cs_), model)
    assert (display.best_, display.one_standard_error_) == (model.C_best_, model.C_1se_)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"best: C = {model.C_best_:.3g}" in labels
    assert f"within one standard error: C = {model.C_1se_:.3g}" in labels
    assert display.ax_.get_ylabel() == "neg_log_loss"
    marked = [
        line.get_xdata()[0] for line in display.ax_.lines if line.get_label().startswith(("best", "within"))
    ]
    np.testing.assert_allclose(marked, np.log10([model.C_best_, model.C_1se_]))
    display.figure_.savefig(tmp_path / "cv.png", dpi=50)
    ax = matplotlib.pyplot.figure().add_subplot()
    again = display.plot(ax=ax, color="k")
    assert again.ax_ is ax and again.line_.get_color() == "k"


@pytest.mark.parametrize("kind", [SparsemaxClassifierCV, SoftmaxClassifierCV])
def test_scores_of_sparsemax_and_softmax(kind):
    model = kind(alphas=[1e-1, 1e-3, 1e-2, 1.0], cv=3).fit(*load_iris(return_X_y=True))
    display = CVScoreDisplay.from_estimator(model)
    check(display, [0, 1, 2, 3], model)
    assert display.best_ == model.alpha_ <= display.one_standard_error_
    assert display.ax_.get_ylabel() == "negative Jensen-Shannon divergence"
    custom = kind(alphas=[1.0], cv=3, scoring=lambda model, X, y: model.score(X, y))
    custom.fit(*load_iris(return_X_y=True))
    assert CVScoreDisplay.from_estimator(custom).ax_.get_ylabel() == "score"


def test_one_standard_error_takes_the_strongest_penalty_that_is_as_good():
    scores = np.array([[0.5, 0.88, 0.91, 0.9], [0.5, 0.9, 0.93, 0.9]])
    display = CVScoreDisplay([1.0, 0.1, 0.01, 0.001], scores, [0.0, 0.01, 0.04, 0.0], "alpha").plot()
    assert (display.best_, display.one_standard_error_) == (0.01, 0.1)


def test_what_has_no_scores_is_refused():
    with pytest.raises(TypeError, match=r"estimator must be L1LogisticOBACV.*got L1LogisticOBA\."):
        CVScoreDisplay.from_estimator(L1LogisticOBA())
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="chose its penalty by selection='bic'"):
        CVScoreDisplay.from_estimator(L1LogisticOBACV(5, selection="bic").fit(X, y))
    with pytest.raises(NotFittedError):
        CVScoreDisplay.from_estimator(SparsemaxClassifierCV())
