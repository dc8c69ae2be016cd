"""Linear assignment as a layer
============================

LP-SparseMAP over assignments, with gradients in PyTorch.

::

    python examples/linear_assignment.py [--plot marginals.png]

The first program of Appendix F of the LP-SparseMAP paper. Every row of a 3 x 5 matrix gets exactly one
column, by an Xor factor a row. Every column goes to at most one row, by an AtMostOne factor a column. Needs
PyTorch (pip install torch matplotlib); without it the example says so and ends.
"""

import argparse

from sparsekit import AtMostOne, FactorGraph, Xor


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--plot", metavar="FILE", help="where to draw the marginals")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch. Nothing was run.")
        return
    from sparsekit.torch import FactorGraphLayer

    torch.manual_seed(options.seed)
    torch.set_printoptions(precision=4, sci_mode=False)
    m, n = options.rows, options.columns
    eta = torch.randn(m, n, requires_grad=True)

    graph = FactorGraph()
    u = graph.variable((m, n))
    graph.add(Xor(u))  # a factor a row
    graph.add(AtMostOne(u.T))  # a factor a column; some columns may be 0
    layer = FactorGraphLayer(graph)

    mu = layer(eta)
    print("marginals\n", mu.detach(), sep="")
    mu[0, -1].backward()
    print("gradient of the last one of the first row\n", eta.grad, sep="")

    if options.plot:
        from sparsekit.inspection import AttentionDisplay

        display = AttentionDisplay.from_weights(mu.detach(), title="marginals")
        display.figure_.savefig(options.plot, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
