"""
Which pixels separate a 3 from an 8: choosing C and l1_ratio
============================================================

Cross-validation chooses C and l1_ratio; stability selection says which pixels are not due to chance.

A sparse model says which columns of X it uses. Their number depends on two parameters. ``C`` is the inverse
strength of the penalty. ``l1_ratio`` says what happens to correlated columns: 1 (the Lasso) uses one of them,
0 (the ridge) all, the elastic net between uses groups.

::

    python examples/choose_elastic_net.py [PICTURE.png]

The data are the handwritten digits that ship with scikit-learn: images of 8 x 8 pixels, whose neighbours are
correlated.
"""

# %%
# The data
# --------
#
# 357 images of a 3 or an 8; a column for each pixel. Pixels that are always white stay zero in every model.
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import L1LogisticOBA, L1LogisticOBACV, StabilitySelection
from sparsekit.inspection import StabilityPathDisplay

X, y = load_digits(return_X_y=True)
chosen = np.isin(y, (3, 8))
X, y = X[chosen], y[chosen]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

# %%
# Both numbers by cross-validation
# --------------------------------
#
# For each ratio a whole path of C is fitted in each of five folds. ``scoring="neg_log_loss"`` scores
# probabilities, which is smoother than counting errors. ``selection="1se"`` takes the sparsest model whose
# score is within one standard error of the best.
ratios = [0.0, 0.2, 0.5, 1.0]
searches = {
    ratio: make_pipeline(
        StandardScaler(),
        L1LogisticOBACV(Cs=20, l1_ratio=ratio, cv=5, scoring="neg_log_loss", selection="1se"),
    ).fit(X_train, y_train)
    for ratio in ratios
}
for ratio, search in searches.items():
    model = search[-1]
    used = np.count_nonzero(model.coef_)
    print(
        f"l1_ratio={ratio}: C={model.C_:.3g}, {used} of 64 pixels, log loss {-model.mean_score_.max():.3f} "
        f"in the folds, accuracy {accuracy_score(y_test, search.predict(X_test)):.3f} on the rest"
    )

# %%
# The ridge has the best log loss, and uses every pixel. To find the pixels that matter, the ridge is left
# out. One search over several ratios chooses the one with the best score. The duality gap says how far the
# fit can be from the optimum of its objective.
best = make_pipeline(
    StandardScaler(),
    L1LogisticOBACV(Cs=20, l1_ratio=ratios[1:], cv=5, scoring="neg_log_loss", selection="1se"),
).fit(X_train, y_train)
model = best[-1]
print(f"chosen: l1_ratio={model.l1_ratio_}, C={model.C_:.3g}")
print(f"certified to {model.dual_gap_ / model.objective_:.1e} of the objective")

# %%
# Which pixels are no accident
# ----------------------------
#
# Fifty times the images are divided into two halves, and a path is followed in each. A pixel that three
# quarters of the halves use at some C is selected. ``max_false=1`` limits the pixels of a half, so that at
# most one false selection is expected.
stable = make_pipeline(
    StandardScaler(),
    StabilitySelection(L1LogisticOBA(l1_ratio=model.l1_ratio_), max_false=1.0, random_state=0),
).fit(X_train, y_train)
selection = stable[-1]
print(
    f"stable: {selection.get_support().sum()} pixels, expected false at most {selection.expected_false_:.2f}"
)

# %%
# The pictures
# ------------
#
# Above: the scores along C, with the chosen C of each ratio, and the stability of the pixels. Below: the
# coefficients of the Lasso, the chosen model and the ridge, on the image. Red means an 8, blue a 3; the
# circles are the stable pixels.
figure = plt.figure(figsize=(12, 8), layout="constrained")
above, below = figure.subfigures(2, 1)
left, right = above.subplots(1, 2)
for ratio, search in searches.items():
    model = search[-1]
    (line,) = left.semilogx(model.Cs_, -model.mean_score_, label=f"l1_ratio = {ratio}")
    at = np.flatnonzero(model.Cs_ == model.C_)
    left.plot(model.C_, -model.mean_score_[at], "o", color=line.get_color())
left.set(xlabel="C", ylabel="log loss in the folds", title="Cross-validation; the dots are chosen")
left.legend()
StabilityPathDisplay.from_estimator(stable, ax=right)

shown = {"the Lasso": searches[1.0], "chosen": best, "the ridge": searches[0.0]}
support = selection.get_support(indices=True)
for axes, (name, search) in zip(below.subplots(1, 3), shown.items()):
    coef = search[-1].coef_.reshape(8, 8)
    largest = np.abs(coef).max()
    image = axes.imshow(coef, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.plot(support % 8, support // 8, "ko", fillstyle="none", markersize=12)
    axes.set(title=f"{name}: {np.count_nonzero(coef)} pixels", xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, shrink=0.8)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=150, bbox_inches="tight")
else:
    plt.show()
