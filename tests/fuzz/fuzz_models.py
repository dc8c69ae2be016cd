"""Strategies for the parameters of every public estimator, the extremes of their ranges among them."""

import numpy as np
from hypothesis import strategies as st

import sparsekit as sk

BOOL = st.booleans()
TOL = st.sampled_from([1e-4, 1e-2, 1e-8, 1e-14, 1e-300, 1e6])
ITERATIONS = st.sampled_from([20, 1, 2, 5, 100])
JOBS = st.sampled_from([None, 2, 1, 3])
C = st.sampled_from([1.0, 1e-6, 1e-3, 30.0, 1e3, 1e6])
ALPHA = st.sampled_from([1e-2, 0.0, 1e-8, 1.0, 1e6, 1e-300, 1e300])
RATIO = st.sampled_from([0.0, 0.5, 1.0, 1e-3])
CLASS_WEIGHT = st.sampled_from([None, "balanced", {0: 2.0, 1: 1e-3}, {0: 0.0}, {1: 1e300}, {"a": 1.0}])
# wrong ones among them: a vector of this length fits three columns only
PENALTIES = st.sampled_from([None, None, [0.0, 1.0, 5.0], {0: 0.0}, {1: 1e300, 0: 1e-300}, [-1.0, 1.0, 1.0]])
BOUNDS = st.sampled_from(
    [
        (-np.inf, np.inf),
        (0, None),
        (None, 0.5),
        (-1e-3, 1e-3),
        (2, 3),
        (0, 0),
        {0: (0, 1)},
        (-1e300, 1e300),
        (1, 0),
        ([0.0, -1.0, 0.0], [0.0, 1.0, np.inf]),
    ]
)
SOLVER = {"tol": TOL, "max_iter": ITERATIONS, "n_jobs": JOBS, "history": BOOL, "warm_start": BOOL}
OBA = SOLVER | {
    "l1_ratio": RATIO,
    "penalty_weights": PENALTIES,
    "hessian": st.sampled_from(["exact", "lbfgs"]),
    "memory": st.sampled_from([10, 1, 3, 10**6]),
}
OBA_OF_NUMBERS = OBA | {"alpha": ALPHA, "fit_intercept": BOOL, "positive": BOOL}
BOUNDED = SOLVER | {"bounds": BOUNDS, "alpha": ALPHA, "l1_ratio": RATIO, "fit_intercept": BOOL}
THRESHOLD = st.sampled_from([None, 0.0, 0.5, 0.999])
SCORING = st.sampled_from([None, "accuracy", "neg_log_loss", "roc_auc"])
TABLE = SOLVER | {
    "alpha": ALPHA,
    "threshold": THRESHOLD,
    "fit_intercept": BOOL,
    "penalize_intercept": BOOL,
    "class_weight": CLASS_WEIGHT,
}
FOLDS = {
    "cv": st.sampled_from([2, 3, 5]),
    "n_jobs": JOBS,
    "fit_intercept": BOOL,
    "tol": TOL,
    "max_iter": ITERATIONS,
}
CV = FOLDS | {"scoring": SCORING, "class_weight": CLASS_WEIGHT}
# what the three searches along paths share
SEARCH = {
    "eps": st.sampled_from([1e-3, 0.5, 1e-12]),
    "l1_ratio": st.sampled_from([1.0, 0.5, [0.0, 1.0]]),
    "hessian": OBA["hessian"],
    "memory": OBA["memory"],
    "penalty_weights": PENALTIES,
    "refit": BOOL,
    "selection": st.sampled_from(["best", "1se", "bic", "ebic"]),
    "relaxed": BOOL,
}
GRID = st.sampled_from([3, 1, [1.0, 1e-6], [1e6]])
# of numbers, not of classes
SCORING_OF_NUMBERS = st.sampled_from([None, "r2", "neg_mean_absolute_error"])
SEARCH_OF_NUMBERS = SEARCH | FOLDS | {"alphas": GRID, "positive": BOOL, "scoring": SCORING_OF_NUMBERS}
TABLE_SEARCH = {
    "alphas": st.sampled_from([[0.1], [1.0, 1e-6], [1e6, 1e-300]]),
    "penalize_intercept": BOOL,
    "threshold": THRESHOLD,
}
FACTORS = [
    None,
    None,
    [(sk.Imply, [0, 1])],
    [(sk.Budget, [0, 1, 2], 2)],
    [(sk.AtMostOne, [0, 1])],
    [(sk.Xor, [0, 7])],
    [(sk.Budget, [0, 1], 1, {"exactly": True})],
]
# what a classifier of labels and its search share
LABEL_MODEL = {
    "max_iter": st.just(10),
    "loss": st.sampled_from(["sparsemap", "hinge", "logistic"]),
    "fit_intercept": BOOL,
    "never_empty": st.sampled_from([None, False]),
    "pair_alpha": st.sampled_from([None, 0.0, 1e-3, 1e6]),
    "pairs": st.sampled_from(["all", None, 1, 100, [[0, 1]], [[0, 0]], [[0, 9]]]),
    "factors": st.sampled_from(FACTORS),
}

FAMILY = {
    "family": st.sampled_from(
        ["gaussian", "huber", "poisson", "gamma", "tweedie", "negative-binomial", "binomial"]
    ),
    "link": st.sampled_from(["auto", "auto", "log", "logit", "identity"]),
    "power": st.sampled_from([1.5, 0, 1, 2, 1.0001, 3.0]),
    "dispersion": st.sampled_from([1.0, 1e-12, 1e12]),
    "epsilon": st.sampled_from([1.35, 1e-12, 1e6]),
}

LABELS, SETS, NUMBERS = "labels", "sets", "numbers"

# class, kinds of targets, strategy of each parameter
MODELS = {
    "L1LogisticOBA": (
        sk.L1LogisticOBA,
        (LABELS,),
        OBA | {"C": C, "fit_intercept": BOOL, "class_weight": CLASS_WEIGHT},
    ),
    "L1LogisticOBACV": (sk.L1LogisticOBACV, (LABELS,), CV | SEARCH | {"Cs": GRID}),
    "LassoOBA": (
        sk.LassoOBA,
        (NUMBERS,),
        OBA_OF_NUMBERS | {"solver": st.sampled_from(["auto", "gram", "oba"])},
    ),
    "LassoOBACV": (sk.LassoOBACV, (NUMBERS,), SEARCH_OF_NUMBERS),
    "GLMOBA": (sk.GLMOBA, (NUMBERS,), OBA_OF_NUMBERS | FAMILY),
    "OrdinalOBA": (
        sk.OrdinalOBA,
        (LABELS,),
        OBA
        | {"alpha": ALPHA, "class_weight": CLASS_WEIGHT}
        | {"categories": st.sampled_from([None, [0, 1, 2], ["b", "a"], [1]])},
    ),
    "GLMOBACV": (sk.GLMOBACV, (NUMBERS,), SEARCH_OF_NUMBERS | FAMILY),
    "BoundedRegressor": (
        sk.BoundedRegressor,
        (NUMBERS,),
        BOUNDED
        | {
            "loss": st.sampled_from(["absolute", "quantile", "huber", "squared", "epsilon_insensitive"]),
            "quantile": st.sampled_from([0.5, 1e-6, 0.9]),
            "epsilon": st.sampled_from([0.1, 1e-12, 1e6]),
        },
    ),
    "BoundedClassifier": (
        sk.BoundedClassifier,
        (LABELS,),
        BOUNDED
        | {
            "loss": st.sampled_from(["log_loss", "hinge", "squared_hinge", "modified_huber"]),
            "class_weight": CLASS_WEIGHT,
        },
    ),
    "SparsemaxClassifier": (sk.SparsemaxClassifier, (LABELS, SETS), TABLE),
    "SoftmaxClassifier": (sk.SoftmaxClassifier, (LABELS, SETS), TABLE),
    "SparsemaxClassifierCV": (sk.SparsemaxClassifierCV, (LABELS, SETS), CV | TABLE_SEARCH),
    "SoftmaxClassifierCV": (sk.SoftmaxClassifierCV, (LABELS, SETS), CV | TABLE_SEARCH),
    "ExtremeSoftmaxSGD": (
        sk.ExtremeSoftmaxSGD,
        (LABELS, SETS),
        {
            "method": st.sampled_from(["auto", "implicit", "umax", "ove", "nce", "is", "sgd"]),
            "prior": st.sampled_from(["auto", None, "centroids"]),
            "alpha": ALPHA,
            "fit_intercept": BOOL,
            "learning_rate": st.sampled_from([0.1, 1e-6, 1e6, 1.0, "auto"]),
            "decay": st.sampled_from([0.9, 1e-6, 1.0]),
            "max_iter": st.sampled_from([2, 1, 5]),
            "batch_size": st.sampled_from([1, 3, 100]),
            "n_negatives": st.sampled_from([1, 5, 50]),
            "noise": st.sampled_from([None, "uniform", "frequency", [0.5, 0.5], [0.2, 0.3, 0.5]]),
            "hash_bits": st.sampled_from([None, None, 4, 10]),
            "label_choice": st.sampled_from(["first", "sample"]),
            "tol": st.sampled_from([1e-4, 0.0, 1e6]),
            "shuffle": BOOL,
            "n_jobs": st.just(None),
            "random_state": st.integers(0, 3),
        },
    ),
    "LPSparseMAPClassifier": (
        sk.LPSparseMAPClassifier,
        (SETS, LABELS),
        SOLVER
        | LABEL_MODEL
        | {
            "alpha": st.one_of(st.just("auto"), ALPHA),
            "threshold": st.sampled_from(["auto", "expected_f1", 0.5, 0.0, 0.999]),
        },
    ),
    "LPSparseMAPClassifierCV": (
        sk.LPSparseMAPClassifierCV,
        (SETS, LABELS),
        LABEL_MODEL
        | {
            "tol": TOL,
            "n_jobs": JOBS,
            "alphas": TABLE_SEARCH["alphas"],
            "thresholds": st.sampled_from([["auto"], ["expected_f1"], [0.5, 0.0, 0.999], []]),
            "cv": st.sampled_from([2, 3]),
            "scoring": SCORING,
        },
    ),
}

# of lists of sequences, not of matrices: tests/fuzz/test_fuzz_sequences.py
SEQUENCES = {
    "C": C,
    "loss": st.sampled_from(["crf", "hinge", "sparsemap"]),
    "l1_ratio": RATIO,
    "constraints": st.sampled_from(
        [None, "none", "BIO", [(0, 1)], [(None, 0)], [(1, None), (1, 1)], [(0, 9)]]
    ),
    "all_possible_states": BOOL,
    "all_possible_transitions": BOOL,
    "fit_ends": BOOL,
    "class_weight": CLASS_WEIGHT,
    **SOLVER,
}


@st.composite
def models(draw, name):
    """An estimator with a few parameters that are not its defaults, as many as matter to small examples."""
    kind, _, parameters = MODELS[name]
    chosen = draw(st.lists(st.sampled_from(sorted(parameters)), max_size=6, unique=True))
    always = [key for key in ("max_iter", "random_state", "cv", "Cs", "alphas") if key in parameters]
    return kind(**{key: draw(parameters[key]) for key in [*always, *chosen]})
