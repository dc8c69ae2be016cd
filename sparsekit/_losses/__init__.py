"""Losses: smooth convex functions that the solvers minimise together with a penalty."""

from .linear import LeastSquaresLoss, LogisticLoss, ProbitLoss
from .multinomial import MultinomialLoss

__all__ = ["LeastSquaresLoss", "LogisticLoss", "MultinomialLoss", "ProbitLoss"]
