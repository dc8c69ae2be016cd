"""Label sets on a GPU: one graph of labels, pairs and factors, solved for blocks of rows."""

from dataclasses import asdict

import numpy as np

from ..._arrays import DEVICE_BLOCK, kernel_module, namespace, to_host
from ..factors.logic_factors import Pair
from ..factors.variables import Variable
from ..solver.layout import Layout


def marginals(pairs, factors, eta, plus, minus, options):
    """Marginals (n, K) of scores eta (n, K) and of pair scores plus - minus (P,), and statuses (n,)."""
    xp, kernels = namespace(eta=eta, plus=plus, minus=minus), kernel_module("factor_graph._factor_graph", eta)
    signed = xp.concatenate([plus, -minus])
    # most pairs have no score and couple nothing; one may have both
    live = np.flatnonzero(to_host(signed))
    own = [Pair(Variable(None, pairs[live % len(pairs)]))] if len(live) else []
    plan = Layout(eta.shape[1], [*own, *factors]).plan_for(eta)
    mu, statuses = xp.empty(eta.shape), xp.empty(len(eta), dtype=np.int64)
    step = max(1, DEVICE_BLOCK // max(1, plan.stride))
    for at in range(0, len(eta), step):
        part = eta[at : at + step]
        states = kernels.States(plan, len(part))
        add = xp.broadcast_to(signed[xp.asarray(live)], (len(part), len(live)))
        # no label and no pair is forbidden
        states.set_scores(part, add, xp.zeros(part.shape), xp.zeros(add.shape))
        kernels.solve([states], asdict(options), False)
        mu[at : at + step], statuses[at : at + step] = states.marginals(), states.report()["status"]
    return mu, statuses
