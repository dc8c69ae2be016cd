"""A regularisation path, and the choice of C
==========================================

The path of L1 logistic regression, C by cross-validation with the one-standard-error rule, and the picture.

::

    python examples/regularization_path.py [PICTURE.png]

The data are the breast cancer measurements that ship with scikit-learn.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from sparsekit import L1LogisticOBACV, l1_logistic_path
from sparsekit.inspection import RegularizationPathDisplay

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data), data.target

# %%
# The path
# --------
#
# Each fit starts from the one before. At the first penalty all coefficients are just zero, so no range has to
# be guessed. Every fit says how far it can be from the optimum.
path = l1_logistic_path(X, y, n_lambdas=50, eps=1e-3)
print(f"path of {len(path.lambdas)} penalties, {path.n_nonzero[0]} to {path.n_nonzero[-1]} non-zeros")
gaps = path.dual_gaps / path.objectives
print(f"optimality measure at most {path.optimality.max():.1e}, relative duality gap {gaps.max():.1e}")

# %%
# The choice of C
# ---------------
#
# The best mean score of ten folds, or the sparsest model whose score is within one standard error of it.
model = L1LogisticOBACV(Cs=30, cv=10, scoring="neg_log_loss", selection="1se").fit(X, y)
for rule, C in (("best score", model.C_best_), ("one standard error", model.C_1se_)):
    column = int(np.flatnonzero(model.Cs_ == C)[0])
    print(
        f"{rule:<19} C = {C:<9.4g} log-loss {-model.mean_score_[column]:.4f} +- {model.se_[column]:.4f}, "
        f"{np.count_nonzero(l1_logistic_path(X, y, Cs=[C]).coefs)} features"
    )
kept = np.flatnonzero(model.coef_[0])
print("kept:", ", ".join(data.feature_names[kept]))

# %%
# The picture
# -----------
RegularizationPathDisplay.from_path(path, feature_names=data.feature_names, chosen=model.C_)
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1], dpi=150, bbox_inches="tight")
else:
    plt.show()
