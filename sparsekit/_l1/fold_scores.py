"""What the models of cross-validation's folds give: scores at little cost, and the last fit's start."""

import numpy as np
from sklearn.metrics import accuracy_score

from .coefficients import pack


def is_accuracy(scorer):
    """Whether a scorer of scikit-learn's is plain accuracy."""
    return (
        getattr(scorer, "_score_func", None) is accuracy_score
        and getattr(scorer, "_response_method", None) == "predict"
        and getattr(scorer, "_sign", None) == 1
        and not getattr(scorer, "_kwargs", True)
    )


def accuracy(X, codes, coef, intercept):
    """Share of the rows whose class a linear model predicts; scikit-learn's scorer takes milliseconds.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Number of each row's class.
    coef, intercept : ndarray of shape (n_outputs, n_features), ndarray of shape (n_outputs,)
        One output for two classes.

    Returns
    -------
    float
    """
    margins = X @ coef.T + intercept
    found = margins.argmax(axis=1) if len(coef) > 1 else margins[:, 0] > 0
    return float(np.mean(found == codes))


def start_between(whole, solutions, x_null):
    """The mean of the folds' solutions as the start of a fit to all rows, or the null model.

    Their training parts share most of the rows, so that the fit begins near its end. The null model is taken
    where a solution was not kept, or has no intercept for a class that its fold lacks.

    Parameters
    ----------
    whole : PathProblem
        The problem of all rows.
    solutions : list
        Of each fold ``(sparse array of shape (n_outputs, n_features), intercepts)``, or None.
    x_null : ndarray of shape (n_variables,)

    Returns
    -------
    ndarray of shape (n_variables,)
    """
    if any(found is None or not np.isfinite(found[1]).all() for found in solutions):
        return x_null
    coef = sum(coef.astype(np.float64) for coef, _ in solutions) / len(solutions)
    return pack(coef, np.mean([intercept for _, intercept in solutions], axis=0), whole.fit_intercept)
