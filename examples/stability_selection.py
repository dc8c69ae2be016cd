"""
Which features matter: stability selection
==========================================

Find the features that matter, with a bound of the false ones.

A model that predicts best uses features that do not matter. Here thirty measurements get a hundred columns of
noise, so false selections can be counted. The C of cross-validation is compared with stability selection,
which bounds the expected number.

::

    python examples/stability_selection.py [PICTURE.png]

The data are the breast cancer measurements that ship with scikit-learn; pandas keeps their names.
"""

# %%
# The data
# --------
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import L1LogisticOBA, L1LogisticOBACV, StabilitySelection
from sparsekit.inspection import StabilityPathDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
rng = np.random.default_rng(0)
noise = pd.DataFrame(rng.standard_normal((len(y), 100)), columns=[f"noise {j}" for j in range(100)])
X = X.join(noise)


def report(who, names):
    false = [name for name in names if name.startswith("noise")]
    print(f"{who}: {len(names)} features, {len(false)} of them noise")


# %%
# The C that predicts best
# ------------------------
search = make_pipeline(
    StandardScaler().set_output(transform="pandas"),  # which hands on the names of the columns
    L1LogisticOBACV(Cs=10, scoring="neg_log_loss"),
).fit(X, y)
table = search[-1].coefficients()
report("cross-validated C", table.index[table["coefficient"] != 0])

# %%
# Stability selection
# -------------------
#
# Fifty times the rows are divided into two halves; a feature is selected if three quarters of the halves use
# it at some penalty. ``max_false=1``: at most one false selection is to be expected.
selection = StabilitySelection(L1LogisticOBA(), max_false=1.0, threshold=0.75, random_state=0)
stable = make_pipeline(StandardScaler(), selection).fit(X, y)
names = stable.get_feature_names_out()
report("stability selection", names)
print("selected:", ", ".join(names))
print(f"false selections to be expected: at most {selection.expected_false_:.2f}")

# %%
# It is a step of a pipeline: a model of the selected features alone predicts about as well.
few = make_pipeline(StandardScaler(), StabilitySelection(n_pairs=20, random_state=0), L1LogisticOBA(C=10.0))
for name, model in (("the selected features", few), ("the cross-validated C", search)):
    print(f"accuracy with {name}: {cross_val_score(model, X, y, cv=3, scoring='accuracy').mean():.3f}")

# %%
# The picture
# -----------
#
# On the left the largest coefficients of the cross-validated model, on the right the share of the halves
# that use a feature. Curves are level once the halves have as many features as the bound allows.
figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5), layout="constrained")
table[:20][::-1].plot.barh(ax=left, legend=False, title="coefficients")
StabilityPathDisplay.from_estimator(stable, ax=right)
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1], dpi=150, bbox_inches="tight")
else:
    plt.show()
