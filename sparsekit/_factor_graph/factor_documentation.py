"""The docstring that the logic factors share."""


def document(summary, source, made, scores, marginals, *, further="", d="d"):
    """Docstring of a logic factor: the parameters that all have, further ones, and an example of its use."""
    return f"""{summary}

    {source} of [1]_.

    Parameters
    ----------
    variables : view of shape ({d},) or (n, {d}), or list of views
        Variables; of two dimensions, each row is a factor.{further}
    negated : array-like of bool, broadcast to the variables' shape, default=None
        Which variables count as 1 - x.

    See Also
    --------
    FactorGraph : Solves the graph that it is added to.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020.

    Examples
    --------
    >>> from sparsekit import FactorGraph, {made.partition("(")[0]}
    >>> graph = FactorGraph()
    >>> u = graph.variable({scores})
    >>> graph.add({made})
    >>> graph.solve()[u].round(3)
    array({marginals})
    """
