"""A regularisation path, C chosen by cross-validation with the one-standard-error rule, and its picture.

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


def main(picture=None):
    data = load_breast_cancer()
    X, y = StandardScaler().fit_transform(data.data), data.target

    path = l1_logistic_path(X, y, n_lambdas=50, eps=1e-3)
    print(f"path of {len(path.lambdas)} penalties, {path.n_nonzero[0]} to {path.n_nonzero[-1]} non-zeros")
    gaps = path.dual_gaps / path.objectives
    print(f"optimality measure at most {path.optimality.max():.1e}, relative duality gap {gaps.max():.1e}")

    model = L1LogisticOBACV(Cs=30, cv=10, scoring="neg_log_loss", selection="1se").fit(X, y)
    for rule, C in (("best score", model.C_best_), ("one standard error", model.C_1se_)):
        column = int(np.flatnonzero(model.Cs_ == C)[0])
        print(
            f"{rule:<19} C = {C:<9.4g} log-loss {-model.mean_score_[column]:.4f} +- {model.se_[column]:.4f}, "
            f"{np.count_nonzero(l1_logistic_path(X, y, Cs=[C]).coefs)} features"
        )
    kept = np.flatnonzero(model.coef_[0])
    print("kept:", ", ".join(data.feature_names[kept]))

    RegularizationPathDisplay.from_path(path, feature_names=data.feature_names, chosen_C=model.C_)
    if picture is None:
        plt.show()
    else:
        plt.savefig(picture, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:2])
