"""ListOps: counting through a latent tree
=======================================

A network counts the arguments of operators by a dependency tree without training data for trees.

::

    python examples/listops.py [--quick] [--seeds 0 1 2] [--exact] [--plot scores.png]

Section 5.1 and Table 2 of the LP-SparseMAP paper. A BiLSTM scores the arcs of "[MAX 2 9 [MIN 4 7 ] 0 ]".
LP-SparseMAP turns the scores into a sparse mixture of non-projective dependency trees. A graph convolution
along their arcs tags every operator with its number of arguments. The convolution reads one learned vector,
the same for all words: the tags can only be told from the trees. One model has a tree factor alone; the other
also has a Budget factor a head, at most five modifiers. Both are solved as in the paper: the tree by ten
calls of its oracle, the other by ten iterations with ten calls each. "tree (100 calls)" gives the tree as
many calls, and --exact solves all exactly. Takes minutes on a CPU, --quick less than one. Needs PyTorch (pip
install torch matplotlib); without it the example says so and ends.
"""

import argparse
import sys
import time

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from sparsekit import Budget, DepTree, FactorGraph
from sparsekit.datasets import make_listops

N_TAGS, HIDDEN, BATCH = 4, 50, 64  # an operator has 2 to 5 arguments
MODELS = ("left-to-right", "tree", "tree (100 calls)", "tree+budget", "gold tree")


# %%
# The trees
# ---------
def make_graph(length, budget):
    """The arcs of a sentence, row = modifier and column = head: a tree, at most five modifiers a head."""
    graph = FactorGraph()
    arcs = graph.variable((length, length))
    graph.add(DepTree(arcs))
    if budget:
        heads = np.arange(length)[:, None]
        # without the root's arc
        modifiers = np.array([np.delete(np.arange(length), head) for head in range(length)])
        graph.add(Budget(arcs[modifiers, heads], budget=min(5, length - 1)))
    return graph


# %%
# The network
# -----------
def make_tagger(torch, kind, n_tokens, options):
    from sparsekit.torch import FactorGraphLayer

    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(n_tokens, HIDDEN)
            self.encoder = nn.LSTM(HIDDEN, HIDDEN // 2, batch_first=True, bidirectional=True)
            self.as_head = nn.Linear(HIDDEN, HIDDEN)
            self.as_modifier = nn.Linear(HIDDEN, HIDDEN)
            self.word = nn.Parameter(torch.randn(HIDDEN))  # v: what the convolution knows of any word
            self.from_self = nn.Linear(HIDDEN, HIDDEN)
            self.from_head = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.from_modifiers = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.output = nn.Linear(HIDDEN, N_TAGS)
            self.layers = {}  # a layer a length
            for name, parameter in self.named_parameters():
                if "bias" in name:
                    nn.init.zeros_(parameter)
                elif parameter.ndim == 2 and "tokens" not in name:
                    nn.init.xavier_uniform_(parameter)

        def parse(self, inputs):
            """Arc marginals (batch, modifier, head)."""
            states, _ = self.encoder(self.tokens(inputs))
            scores = torch.relu(self.as_modifier(states)) @ self.as_head(states).mT
            length = inputs.shape[1]
            if length not in self.layers:
                self.layers[length] = FactorGraphLayer(make_graph(length, kind == "tree+budget"), **options)
            return self.layers[length](scores)

        def forward(self, inputs, heads):
            if kind == "left-to-right":
                heads = (torch.arange(inputs.shape[1]) - 1).clamp(min=0).expand_as(inputs)
            if kind in ("left-to-right", "gold tree"):
                arcs = nn.functional.one_hot(heads, inputs.shape[1]).float()
            else:
                arcs = self.parse(inputs)
            arcs = arcs - torch.diag_embed(arcs.diagonal(dim1=1, dim2=2))  # the root is no word
            # all words are alike: what comes along an arc is the same vector, times the arc's weight
            hidden = (
                self.from_self(self.word)
                + arcs.sum(2)[..., None] * self.from_head(self.word)
                + arcs.sum(1)[..., None] * self.from_modifiers(self.word)
            )
            return self.output(torch.relu(hidden))

    return Tagger()


# %%
# Training
# --------
def batches(torch, data, rng=None):
    """Batches of sentences of one length: inputs, heads, tags (-1 where there is none)."""
    chosen = []
    for length in np.unique(data.lengths):
        rows = np.flatnonzero(data.lengths == length)
        rows = rows if rng is None else rng.permutation(rows)
        chosen += [(length, rows[k : k + BATCH]) for k in range(0, len(rows), BATCH)]
    for k in np.arange(len(chosen)) if rng is None else rng.permutation(len(chosen)):
        length, rows = chosen[k]
        tags = np.where(data.valencies > 0, data.valencies - 2, -1)
        yield [torch.from_numpy(a[rows, :length]) for a in (data.inputs, data.heads, tags)]


def evaluate(torch, model, data):
    """Accuracy and macro F1 of the tags, in percent."""
    found, true = [], []
    with torch.no_grad():
        for inputs, heads, tags in batches(torch, data):
            kept = tags >= 0
            found.append(model(inputs, heads).argmax(-1)[kept])
            true.append(tags[kept])
    found, true = torch.cat(found), torch.cat(true)
    return 100 * accuracy_score(true, found), 100 * f1_score(true, found, average="macro")


def train(torch, kind, data, seed, options, args):
    torch.manual_seed(seed)
    rng = np.random.RandomState(seed)
    model = make_tagger(torch, kind, len(data["train"].tokens), options)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    decay = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.9, patience=0)
    best, kept, start = -1.0, None, time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for inputs, heads, tags in batches(torch, data["train"], rng):
            loss = torch.nn.functional.cross_entropy(model(inputs, heads).mT, tags, ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(tags) / len(data["train"].lengths)
        accuracy, f1 = evaluate(torch, model, data["validation"])
        decay.step(f1)
        if args.verbose:
            seconds = time.perf_counter() - start
            print(
                f"  {kind}, seed {seed}, epoch {epoch}: loss {total:.4f}, validation acc. {accuracy:.2f}, "
                f"F1 {f1:.2f}, {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        if f1 > best:
            best, kept = f1, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    scores = [*evaluate(torch, model, data["validation"]), *evaluate(torch, model, data["test"])]
    return scores, time.perf_counter() - start


# %%
# The picture
# -----------
def draw(tests, path):
    """Accuracy and F1 on the test sentences, two bars a model."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    position = np.arange(len(tests))
    for k, name in enumerate(("accuracy", "macro F1")):
        axis.barh(position + 0.4 * k - 0.2, [scores[k] for scores in tests.values()], 0.38, label=name)
    axis.set(yticks=position, yticklabels=list(tests), xlabel="percent, test sentences", xlim=(0, 100))
    axis.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=100)


# %%
# The comparison
# --------------
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="800 sentences of at most 20 tokens, 4 epochs")
    parser.add_argument("--sentences", type=int, default=10000, help="for training (default %(default)s)")
    parser.add_argument("--max-length", type=int, default=30, help="most tokens (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=14, help="(default %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="(default %(default)s)")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="MODEL")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--exact", action="store_true", help="solve every graph exactly")
    parser.add_argument("--threads", type=int, default=1, help="(default %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="a line an epoch")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the scores on the test sentences")
    args = parser.parse_args()
    if args.quick:
        args.sentences, args.max_length, args.epochs = 800, 20, 4
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch. Nothing was run.")
        return
    torch.set_num_threads(args.threads)
    truncated = dict(exact=False, max_iter=10, inner_iter=10, step_size=0.5)
    sizes = {"train": args.sentences, "validation": args.sentences // 8, "test": args.sentences // 8}
    data = {
        part: make_listops(n, max_length=args.max_length, random_state=10**6 + k)
        for k, (part, n) in enumerate(sizes.items())
    }
    print(f"{args.sentences} sentences of at most {args.max_length} tokens, {args.epochs} epochs")
    if args.quick:
        print("--quick shows that it runs: models are compared after a full training only")
    print(f"{'':16s}     validation           test")
    print(f"{'':16s}    acc.     F1     acc.     F1  seconds")
    tests = {}
    for kind in args.models:
        runs = []
        solver = {} if args.exact else truncated | ({"max_iter": 1} if kind == "tree" else {})
        for seed in args.seeds:
            scores, seconds = train(torch, kind, data, seed, solver, args)
            runs.append(scores)
            print(
                f"{kind:16s} {' '.join(f'{s:7.2f}' for s in scores)} {seconds:8.0f}  seed {seed}", flush=True
            )
        if len(runs) > 1:
            print(
                f"{kind:16s} {' '.join(f'{s:7.2f}' for s in np.mean(runs, axis=0))} {'':8s}  mean", flush=True
            )
        tests[kind] = np.mean(runs, axis=0)[2:]
    if args.plot:
        draw(tests, args.plot)


if __name__ == "__main__":
    main()
