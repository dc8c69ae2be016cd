"""The SparseMAP loss of linear chains: marginals that are exactly 0 for most labels.

Let s(y) be the score of a labelling, and y also its indicator of labels (T, K). The marginals of a sequence
are

    mu = argmax over mixtures p of labellings of  E_p[s(y)] - 1/2 |E_p[y]|^2,

as in eq. (5) of Niculae, Martins, Blondel, Cardie, "SparseMAP: Differentiable Sparse Structured Inference"
(ICML 2018). The Fenchel-Young loss is that maximum minus s(y) - 1/2 |y|^2 of the true labels. Sequences of
one length share a plan.
"""

import numpy as np

from ..._factor_graph.factors.structured_factors import Sequence
from ..._factor_graph.graphs.graph import FactorGraph
from ..._factor_graph.solver.graph_run import GraphRun, solve_runs
from ..._factor_graph.solver.layout import GraphOptions
from ..losses.loss import ChainLoss

# the gradient sums over positions: this accuracy suffices for the tolerances of fits
_OPTIONS = GraphOptions(tol_primal=1e-8, tol_dual=1e-8)


class SparseChains:
    """SparseMAP of many sequences, of which each solve goes on from the last one."""

    def __init__(self, starts, K):
        self.starts, self.K = starts, K
        lengths = np.diff(starts)
        self._groups = []
        for T in np.unique(lengths[lengths > 0]):
            which = np.flatnonzero(lengths == T)
            graph = FactorGraph()
            graph.add(Sequence(graph.variable((int(T), K))))
            run = GraphRun(graph._plan(), len(which), np.empty(0))
            self._groups.append((int(T), which, starts[which][:, None] + np.arange(T), run))
        self._warm = False

    def solve(self, unary, trans, weight, n_threads):
        """The maxima (S,), transition marginals (K, K) times weight summed, and how many were not solved.

        unary (N, K) becomes weight times the marginals.
        """
        value, pairs, unsolved, K = np.zeros(len(self.starts) - 1), np.zeros(trans.shape), 0, self.K
        for T, which, rows, run in self._groups:
            scores = unary[rows].reshape(len(which), T * K)
            run.prepare(scores, np.tile(trans.ravel(), (len(which), T - 1)))
        runs = [run for *_, run in self._groups]
        if runs:
            solve_runs(runs, _OPTIONS, self._warm, n_threads)
        self._warm = True
        finite = np.where(trans > -np.inf, trans, 0.0)
        for T, which, rows, run in self._groups:
            report, mu, extra = run.finish()
            unsolved += int(np.count_nonzero(report["status"]))
            scores = unary[rows].reshape(len(which), T * K)
            xi = extra.reshape(len(which), T - 1, K * K).sum(axis=1)
            value[which] = (mu * np.where(scores > -np.inf, scores, 0.0)).sum(axis=1)
            value[which] += xi @ finite.ravel() - 0.5 * (mu * mu).sum(axis=1)
            pairs += (weight[which] @ xi).reshape(K, K)
            unary[rows] = (weight[which][:, None] * mu).reshape(len(which), T, K)
        return value, pairs, unsolved


class SparseMAPLoss(ChainLoss):
    """The same sum with SparseMAP losses instead of likelihoods.

    f(x) = sum_i c_i (max_p - s(x_i, y_i) + T_i / 2) + ridge / 2 |x|^2, the maximum that of this module's
    head.
    """

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self._chains = SparseChains(self.starts, self.K)
        self.unsolved = 0

    def infer(self, unary, follow):
        value, pairs, self.unsolved = self._chains.solve(unary, follow, self.weight, self.n_threads)
        return value + 0.5 * np.diff(self.starts), pairs
