"""The docstring that the losses of a linear predictor share."""


def _document(name, summary, formula, y, value):
    """Docstring of a loss: the parameters that all have, and its value at zero for three targets."""
    return rf"""{summary}

    .. math:: {formula}

    over the variables x = [w, b], the intercept b last and only where there is one: a loss for
    :func:`~sparsekit.minimize_oba`, as a sum over the rows.

    Parameters
    ----------
    X : ndarray of shape (n, p), C or F order, or CSR/CSC matrix
        Rows x_i, float32 or float64; used as it is, never copied whole.
    y : array-like of shape (n,)
        Targets{"" if name == "LeastSquaresLoss" else ", -1 or +1"}.
    sample_weight : array-like of shape (n,), default=None
        Weights s_i >= 0; None means ones.
    fit_intercept : bool, default=False
        Whether there is a variable b.
    n_threads : int, default=1
        Threads of the sparse kernels.

    Attributes
    ----------
    n_variables : int
        Length of x.

    Raises
    ------
    ValueError
        If a shape does not fit, a weight is negative or not finite, or a target is not allowed.

    See Also
    --------
    sparsekit.minimize_oba : Minimises it with an L1 penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import {name}
    >>> loss = {name}(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2]]), {y})
    >>> round(loss.value(np.zeros(2)), 4), loss.gradient(np.zeros(2)).round(4)
    {value}
    """


LOGISTIC = _document(
    "LogisticLoss",
    "Logistic loss of two classes.",
    r"f(x) = \sum_i s_i \log(1 + \exp(-y_i (x_i^T w + b)))",
    [-1, 1, 1],
    "(2.0794, array([-1.5 ,  0.15]))",
)
LEAST_SQUARES = _document(
    "LeastSquaresLoss",
    "Half the weighted sum of squares.",
    r"f(x) = \tfrac12 \sum_i s_i (x_i^T w + b - y_i)^2",
    [1.0, 0.0, 2.0],
    "(2.5, array([-4. , -1.4]))",
)
PROBIT = _document(
    "ProbitLoss",
    "Probit loss: Phi is the normal distribution function. There is no duality gap for it.",
    r"f(x) = -\sum_i s_i \log \Phi(y_i (x_i^T w + b))",
    [-1, 1, 1],
    "(2.0794, array([-2.3937,  0.2394]))",
)
