"""One fitted model of each kind that `sparsekit.save` keeps, small, by name."""

import functools
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

import sparsekit as sk

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 6))
CSR = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
FRAME = pd.DataFrame(X, columns=[f"column {k}" for k in range(5)] + ["naïve\0"])
KINDS = np.arange(40) % 3
TEXT = np.where(X[:, 0] > 0, "yes", "no")
OBJECTS = np.array(["one", "two", "three"], dtype=object)[KINDS]
SEVERAL = (rng.random((40, 4)) < 0.4).astype(np.int64)
SEVERAL[:, 0] = 1
NUMBERS = X @ [1.0, -2.0, 0.0, 0.0, 0.5, 0.0] + 0.1 * rng.standard_normal(40)
SHORT = dict(learning_rate=0.1, max_iter=3, random_state=0)
RULES = [(sk.Imply, [1, 0]), (sk.Budget, [0, 1, 2, 3], 4, {"exactly": False})]
Extreme = sk.ExtremeSoftmaxSGD

MODELS = {
    "L1LogisticOBA": lambda: sk.L1LogisticOBA(history=True).fit(FRAME, TEXT),
    "L1LogisticOBA multinomial": lambda: sk.L1LogisticOBA(
        class_weight={"one": 2.0, "two": 1, "three": 0.5}, penalty_weights=np.arange(6.0)
    ).fit(CSR, OBJECTS),
    "L1LogisticOBA float32, bools": lambda: sk.L1LogisticOBA(C=np.float32(0.5)).fit(
        X.astype("f4"), TEXT == "yes"
    ),
    "L1LogisticOBA sparsified": lambda: sk.L1LogisticOBA().fit(X, KINDS).sparsify(),
    "L1LogisticOBA without intercept": lambda: sk.L1LogisticOBA(fit_intercept=False).fit(X, KINDS),
    "L1LogisticOBACV": lambda: sk.L1LogisticOBACV(Cs=[0.1, 1.0], cv=2).fit(FRAME, TEXT),
    "L1LogisticOBACV not refitted": lambda: sk.L1LogisticOBACV(
        Cs=np.array([0.1, 1.0]), cv=2, refit=False, scoring="accuracy"
    ).fit(X, KINDS),
    "L1LogisticOBACV of several ratios": lambda: sk.L1LogisticOBACV(
        Cs=[0.1, 1.0], l1_ratio=[0.5, 1.0], cv=2
    ).fit(X, KINDS),
    "LassoOBA": lambda: sk.LassoOBA(0.1, penalty_weights={"column 0": 0.0}).fit(FRAME, NUMBERS),
    "LassoOBA of a ratio": lambda: sk.LassoOBA(0.1, l1_ratio=0.3).fit(CSR, NUMBERS),
    "LassoOBA float32": lambda: sk.LassoOBA(0.1, history=True).fit(X.astype("f4"), NUMBERS),
    "LassoOBA sparsified": lambda: sk.LassoOBA(0.1).fit(CSR, NUMBERS).sparsify(),
    "LassoOBA positive": lambda: sk.LassoOBA(0.1, positive=True).fit(X, NUMBERS),
    "LassoOBACV": lambda: sk.LassoOBACV(alphas=[0.1, 1.0], cv=2).fit(FRAME, NUMBERS),
    "LassoOBACV not refitted": lambda: sk.LassoOBACV(alphas=3, cv=2, refit=False, scoring="r2").fit(
        X, NUMBERS
    ),
    "LassoOBACV of several ratios": lambda: sk.LassoOBACV(alphas=3, l1_ratio=[0.5, 1.0], cv=2).fit(
        X, NUMBERS
    ),
    "GLMOBA": lambda: sk.GLMOBA(alpha=0.1, history=True).fit(FRAME, np.abs(NUMBERS)),
    "GLMOBA Tweedie float32": lambda: sk.GLMOBA("tweedie", power=1.2, alpha=0.1).fit(
        X.astype("f4"), np.abs(NUMBERS)
    ),
    "GLMOBACV": lambda: sk.GLMOBACV(alphas=3, l1_ratio=[0.5, 1.0], cv=2).fit(FRAME, np.abs(NUMBERS)),
    "GLMOBACV by a criterion": lambda: sk.GLMOBACV(alphas=3, l1_ratio=[0.5, 1.0], selection="bic").fit(
        FRAME, np.abs(NUMBERS)
    ),
    "LassoOBACV by a criterion": lambda: sk.LassoOBACV(3, selection="ebic", relaxed=True).fit(X, NUMBERS),
    "L1LogisticOBACV by a criterion": lambda: sk.L1LogisticOBACV(3, selection="aic").fit(X, KINDS),
    "GLMOBA probit": lambda: sk.GLMOBA("binomial", link="probit", alpha=0.1).fit(X, KINDS == 1),
    "OrdinalOBA": lambda: sk.OrdinalOBA(0.05, categories=[2, 0, 1]).fit(FRAME, KINDS),
    "OrdinalOBA sparse": lambda: sk.OrdinalOBA(0.05, history=True).fit(X.astype("f4"), KINDS).sparsify(),
    "BoundedRegressor": lambda: sk.BoundedRegressor(bounds=(0, None), history=True).fit(X, NUMBERS),
    "BoundedRegressor by name": lambda: sk.BoundedRegressor(
        "huber", alpha=0.1, bounds={"column 1": (-np.inf, np.float64(0.5))}
    ).fit(FRAME, NUMBERS),
    "BoundedRegressor sparsified": lambda: sk.BoundedRegressor(alpha=0.5).fit(X, NUMBERS).sparsify(),
    "BoundedClassifier": lambda: sk.BoundedClassifier(history=True, alpha=0.1).fit(CSR, KINDS),
    "BoundedClassifier two": lambda: sk.BoundedClassifier("hinge", bounds=(np.full(6, -1.0), 1)).fit(X, TEXT),
    "SparsemaxClassifier": lambda: sk.SparsemaxClassifier(history=True).fit(FRAME, OBJECTS),
    "SparsemaxClassifier labels": lambda: sk.SparsemaxClassifier(threshold=0.2).fit(CSR, SEVERAL),
    "SoftmaxClassifier": lambda: sk.SoftmaxClassifier(class_weight="balanced").fit(
        X.astype("f4"), KINDS - 1.0
    ),
    "SoftmaxClassifier distributions": lambda: sk.SoftmaxClassifier().fit(
        X, SEVERAL / SEVERAL.sum(1)[:, None]
    ),
    "SparsemaxClassifierCV": lambda: sk.SparsemaxClassifierCV(alphas=[0.1, 0.01], cv=2).fit(X, TEXT),
    "SoftmaxClassifierCV": lambda: sk.SoftmaxClassifierCV(alphas=(0.1, 0.01), cv=2).fit(CSR, SEVERAL),
    "ExtremeSoftmaxSGD": lambda: Extreme(**SHORT).fit(X, KINDS),
    "ExtremeSoftmaxSGD searched": lambda: Extreme(max_iter=3, random_state=0).fit(FRAME, OBJECTS),
    "ExtremeSoftmaxSGD umax": lambda: Extreme("umax", alpha=0.1, **SHORT).fit(CSR, KINDS),
    "ExtremeSoftmaxSGD labels": lambda: Extreme(**SHORT).fit(X, TEXT),
    "ExtremeSoftmaxSGD hashed": lambda: Extreme("nce", hash_bits=6, **SHORT).fit(CSR, KINDS),
    "ExtremeSoftmaxSGD sets": lambda: Extreme(**SHORT).fit(X.astype("f4"), SEVERAL),
    "ExtremeSoftmaxSGD stream": lambda: (
        Extreme(**SHORT).partial_fit(X[:20], KINDS[:20], classes=[0, 1, 2, 7]).partial_fit(X[20:], KINDS[20:])
    ),
    "ExtremeSoftmaxSGD sparsified": lambda: Extreme(**SHORT).fit(X, KINDS).sparsify(0.05),
    "ExtremeSoftmaxSGD half": lambda: Extreme(**SHORT).fit(X, KINDS).quantize(),
    "ExtremeSoftmaxSGD hashed half": lambda: Extreme(hash_bits=6, **SHORT).fit(X, KINDS).quantize(),
    "LPSparseMAPClassifier": lambda: sk.LPSparseMAPClassifier(
        0.1, pairs="all", factors=RULES, max_iter=20
    ).fit(X, np.maximum(SEVERAL, [1, 0, 0, 0])),
    "LPSparseMAPClassifierCV": lambda: sk.LPSparseMAPClassifierCV([0.1, 0.01], cv=2).fit(CSR, SEVERAL),
    "LPSparseMAPClassifier hinge": lambda: sk.LPSparseMAPClassifier(
        0.1, loss="hinge", pairs=[[0, 1], [1, 3]], history=True, max_iter=20
    ).fit(CSR, SEVERAL),
    "LPSparseMAPClassifier logistic": lambda: sk.LPSparseMAPClassifier(0.1, loss="logistic").fit(FRAME, TEXT),
    "StabilitySelection": lambda: sk.StabilitySelection(n_pairs=2, penalties=3, random_state=0).fit(
        FRAME, TEXT
    ),
    "StabilitySelection of an estimator": lambda: sk.StabilitySelection(
        sk.BoundedRegressor(l1_ratio=1.0, bounds=(np.zeros(6), None)),
        penalties=[0.1, 1.0],
        n_pairs=2,
        random_state=0,
    ).fit(X, NUMBERS),
    "LPSparseMAPClassifier classes": lambda: sk.LPSparseMAPClassifier(0.1).fit(X, OBJECTS),
}


@functools.cache
def fitted(name):
    """The model of that name, which nobody may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a few steps none converges
        return MODELS[name]()
