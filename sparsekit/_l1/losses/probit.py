"""Probit loss of a linear predictor: the loss of a family, of classes -1 and +1."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..._docstrings import shares_entries
from ..._linalg.structure import check_sparse
from ..._typing import Array, SparseMatrix
from .families.binomial import Probit
from .family_loss import FamilyLoss
from .losses import LogisticLoss, check_signs


@shares_entries(LogisticLoss)
class ProbitLoss(FamilyLoss):
    r"""Probit loss: Phi is the normal distribution function. There is no duality gap for it.

    .. math:: f(x) = -\sum_i s_i \log \Phi(y_i (x_i^T w + b))

    over the variables x = [w, b], the intercept b last and only where there is one. It is a loss for
    :func:`~sparsekit.minimize_oba`, as a sum over the rows.

    {Parameters}

    {Attributes}

    {Raises}

    {See Also}

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import ProbitLoss
    >>> loss = ProbitLoss(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2]]), [-1, 1, 1])
    >>> round(loss.value(np.zeros(2)), 4), loss.gradient(np.zeros(2)).round(4)
    (2.0794, array([-2.3937,  0.2394]))
    """

    def __init__(
        self, X: Array | SparseMatrix, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        fit_intercept: bool = False, n_threads: int = 1, offset: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            Probit(), check_sparse(X), y, sample_weight, fit_intercept=fit_intercept, n_threads=n_threads,
            offset=offset,
        )  # fmt: skip

    def _check_targets(self):
        check_signs(self.y)
        self.y = (self.y + 1.0) / 2.0  # shares of successes
