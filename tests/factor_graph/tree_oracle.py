"""Dependency trees by their oracle alone, as a user's factor gives them, one after another."""

import numpy as np

from sparsekit import Factor
from sparsekit._cython.factor_graph._structures import tree


class TreeOracle(Factor):
    def __init__(self, variables, projective, single_root=False):
        super().__init__(variables)
        self.projective, self.single_root = projective, single_root

    def maximize(self, scores, additional_scores):
        _, heads = tree(np.ascontiguousarray(scores), self.projective, self.single_root)
        return np.eye(len(scores))[heads]
