"""Dependency parsing as a layer
=============================

LP-SparseMAP over dependency trees, with gradients in PyTorch.

::

    python examples/dependency_parsing.py [--plot arcs.png]

The second program of Appendix F of the LP-SparseMAP paper. Marginals of the arcs of a projective dependency
tree, first without a limit, then with at most two modifiers for every word. Row i, column j is the arc from
the head j to its modifier i; the diagonal holds the arcs from the root. Needs PyTorch (pip install torch
matplotlib); without it the example says so and ends.
"""

import argparse

import numpy as np

from sparsekit import Budget, DepTree, FactorGraph


# %%
# The graph
# ---------
#
# One tree factor over all arcs and, on request, a Budget factor for every head.
def make_graph(n, budget=None):
    """A projective tree over n words; with a budget, that many modifiers a word at most."""
    graph = FactorGraph()
    arcs = graph.variable((n, n))
    graph.add(DepTree(arcs, projective=True))
    if budget is not None:
        for head in range(n):
            graph.add(Budget(arcs[np.arange(n) != head, head], budget))  # the root's arc does not count
    return graph


# %%
# The picture
# -----------
def draw(marginals, path):
    """A panel for each limit; the diagonal is the arc from the root."""
    import matplotlib.pyplot as plt

    from sparsekit.inspection import AttentionDisplay

    figure, axes = plt.subplots(1, len(marginals), figsize=(4 * len(marginals), 3.4), layout="constrained")
    for axis, (title, mu) in zip(axes, marginals.items()):
        words = [f"word {i + 1}" for i in range(len(mu))]
        AttentionDisplay.from_weights(mu, words, words, ax=axis, colorbar=False, title=title)
        axis.set(xlabel="head", ylabel="modifier")
    figure.savefig(path, dpi=100)


# %%
# Marginals and their gradient
# ----------------------------
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=5)
    parser.add_argument(
        "--budget", type=int, default=2, help="most modifiers of a word (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--plot", metavar="FILE", help="where to draw the marginals")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch. Nothing was run.")
        return
    from sparsekit.torch import FactorGraphLayer

    torch.set_printoptions(precision=4, sci_mode=False)
    marginals = {}
    for budget in (None, options.budget):
        torch.manual_seed(options.seed)
        scores = torch.randn(options.words, options.words, requires_grad=True)
        layer = FactorGraphLayer(make_graph(options.words, budget))
        mu = layer(scores)
        limit = "any number of" if budget is None else f"at most {budget}"
        print(f"{limit} modifiers a word: arc marginals\n{mu.detach()}")
        print("modifiers of each word:", (mu.sum(0) - mu.diagonal()).detach())
        mu[1, -1].backward()
        print(f"gradient of the second word's arc from the last\n{scores.grad}\n")
        marginals[f"{limit} modifiers a word"] = mu.detach()
    if options.plot:
        draw(marginals, options.plot)


if __name__ == "__main__":
    main()
