"""Losses: smooth convex functions that the solvers minimise together with a penalty."""

from .linear import LeastSquaresLoss, LogisticLoss, ProbitLoss

__all__ = ["LeastSquaresLoss", "LogisticLoss", "ProbitLoss"]
