"""Attention that aligns
=====================

Four attentions learn which words of two sequences are partners: softmax and three with structure.

::

    python examples/alignment_attention.py [--quick] [--plot alignment.png]

Section 5.2 of the LP-SparseMAP paper. The second sequence has the phrases of the first in another order,
among distractors, with synonyms for some words. Every word of the second has a label; the task is to give
each word of the first its partner's label. Only labels are taught, no alignment. A score depends on two words
alone, so structure must decide the rest. Matching and LP-matching use no word twice; the latter has an Xor
factor a row and an AtMostOne factor a column. LP-sequence also aligns neighbours with neighbours. It has a
Sequence factor over the rows, with one learned score for steps of +1 and -1, and an AtMostOne factor a
column. Needs PyTorch (pip install torch matplotlib); without it the example says so and ends.
"""

import argparse
import os
import sys
import time

import numpy as np

from sparsekit import AtMostOne, FactorGraph, Matching, Sequence, Xor

PHRASES, WORDS, DISTRACTORS = 3, 3, 3  # phrases, words of each, words between them
ROWS, COLUMNS = PHRASES * WORDS, PHRASES * WORDS + DISTRACTORS
VOCABULARY, SYNONYMS, REPLACED = 24, 4, 0.5  # words 0 to 3 mean the same, and so on
LABELS = 8
HIDDEN, BATCH = 32, 64
ATTENTIONS = ("softmax", "Matching", "LP-matching", "LP-sequence")


# %%
# The task
# --------
#
# Phrases come back in another order, among distractors, some words as synonyms.
def make_pairs(n, rng):
    """Words (n, ROWS) and (n, COLUMNS), labels (n, COLUMNS) of the latter, and the partners (n, ROWS)."""
    first = rng.randint(VOCABULARY, size=(n, ROWS))
    second = rng.randint(VOCABULARY, size=(n, COLUMNS))
    partner = np.zeros((n, ROWS), dtype=np.int64)
    for i in range(n):
        gaps = np.sort(rng.randint(DISTRACTORS + 1, size=PHRASES))  # distractors left of each phrase
        for position, phrase in enumerate(rng.permutation(PHRASES)):
            start = gaps[position] + WORDS * position
            partner[i, WORDS * phrase : WORDS * (phrase + 1)] = np.arange(start, start + WORDS)
    synonyms = first // SYNONYMS * SYNONYMS + rng.randint(SYNONYMS, size=(n, ROWS))
    copies = np.where(rng.uniform(size=(n, ROWS)) < REPLACED, synonyms, first)
    np.put_along_axis(second, partner, copies, axis=1)
    return first, second, rng.randint(LABELS, size=(n, COLUMNS)), partner


# %%
# The structures
# --------------
#
# A Matching factor has an algorithm for the best matching; the other two are made of small factors.
def make_graph(attention):
    """Who is aligned with whom: rows of the first sequence, columns of the second."""
    graph = FactorGraph()
    u = graph.variable((ROWS, COLUMNS))
    if attention == "Matching":
        graph.add(Matching(u))
        return graph
    if attention == "LP-matching":
        graph.add(Xor(u))
    else:
        graph.add(Sequence(u, np.zeros((COLUMNS, COLUMNS))))
    graph.add(AtMostOne(u.T))
    return graph


# %%
# The network
# -----------
#
# The scores of pairs of words go through softmax or through a :class:`~sparsekit.torch.FactorGraphLayer`.
def make_model(torch, attention):
    from sparsekit.torch import FactorGraphLayer

    nn = torch.nn

    class Aligner(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Embedding(VOCABULARY, HIDDEN)
            self.second = nn.Embedding(VOCABULARY, HIDDEN)
            for words in (self.first, self.second):
                nn.init.normal_(
                    words.weight, std=0.3
                )  # all weights are positive at first, and can be learned
            self.label = nn.Embedding(LABELS, HIDDEN)
            self.output = nn.Linear(HIDDEN, LABELS)
            if attention != "softmax":
                self.layer = FactorGraphLayer(make_graph(attention))
            if attention == "LP-sequence":
                self.neighbours = nn.Parameter(torch.zeros(()))  # eta_N
                position = torch.arange(COLUMNS)
                steps = ((position[:, None] - position).abs() == 1).float()
                self.register_buffer("steps", steps.expand(ROWS - 1, COLUMNS, COLUMNS).reshape(-1))

        def forward(self, first, second, labels):
            """Scores of the labels (batch, ROWS, LABELS) and the alignment (batch, ROWS, COLUMNS)."""
            scores = self.first(first) @ self.second(second).mT / HIDDEN**0.5
            if attention == "softmax":
                aligned = torch.softmax(scores, -1)
            elif attention == "LP-sequence":
                aligned = self.layer(scores, self.neighbours * self.steps)
            else:
                aligned = self.layer(scores)
            return self.output(aligned @ self.label(labels)), aligned

    return Aligner()


def evaluate(torch, model, pairs):
    """Labels that are right, words whose largest weight is on their partner; percent."""
    first, second, labels, partner = [torch.from_numpy(a) for a in pairs]
    with torch.no_grad():
        found, aligned = model(first, second, labels)
    right = (found.argmax(-1) == labels.gather(1, partner)).double().mean().item()
    return 100 * right, 100 * (aligned.argmax(-1) == partner).double().mean().item()


def train(torch, attention, options):
    torch.manual_seed(options.seed)
    rng = np.random.RandomState(options.seed)
    held_out = make_pairs(1000, np.random.RandomState(10**6))
    model = make_model(torch, attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    start = time.perf_counter()
    for step in range(options.steps):
        first, second, labels, partner = [torch.from_numpy(a) for a in make_pairs(BATCH, rng)]
        scores, _ = model(first, second, labels)
        loss = torch.nn.functional.cross_entropy(scores.mT, labels.gather(1, partner))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if sys.stderr.isatty() and step % 20 == 0:
            print(f"\r{attention}: step {step}, loss {loss.item():.3f} ", end="", file=sys.stderr)
    return model, *evaluate(torch, model, held_out), time.perf_counter() - start


# %%
# The picture, and the run
# ------------------------
def draw(torch, models, path, seed):
    """Alignments of one pair, a panel a model; the partners are framed."""
    import matplotlib.pyplot as plt

    from sparsekit.inspection import AttentionDisplay

    pair = make_pairs(1, np.random.RandomState(seed))
    first, second, labels, partner = [torch.from_numpy(a) for a in pair]
    # synonyms share the letter
    names = ["abcdefghijklmnop"[k // SYNONYMS] + "₁₂₃₄"[k % SYNONYMS] for k in range(VOCABULARY)]
    size = (3.5 * len(models), 3.1)
    figure, axes = plt.subplots(1, len(models), figsize=size, squeeze=False, layout="constrained")
    for axis, (name, (model, right, _, _)) in zip(axes[0], models.items()):
        with torch.no_grad():
            aligned = model(first, second, labels)[1][0]
        display = AttentionDisplay.from_weights(
            aligned, [names[k] for k in first[0]], [names[k] for k in second[0]], frames=partner[0], ax=axis,
            colorbar=False, title=f"{name}: {right:.0f} % of labels",
        )  # fmt: skip
        axis.set(xlabel="second sequence", ylabel="first sequence")
        axis.label_outer()
    figure.colorbar(display.image_, ax=axes, label="weight (framed: partners)", pad=0.012)
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="150 steps of training")
    parser.add_argument("--steps", type=int, default=300, help="batches of training (default %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.01, help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count()))
    parser.add_argument("--attentions", nargs="+", default=ATTENTIONS, choices=ATTENTIONS, metavar="KIND")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the alignments of one pair")
    options = parser.parse_args()
    if options.quick:
        options.steps = 150
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch. Nothing was run.")
        return
    torch.set_num_threads(options.threads)
    models = {}
    print(f"{options.steps} batches of {BATCH} pairs; percent of 1000 held-out pairs' words")
    print(f"{'attention':12s} {'label right':>12s} {'largest on partner':>20s} {'seconds':>8s}")
    for name in options.attentions:
        models[name] = train(torch, name, options)
        model, right, aligned, seconds = models[name]
        learned = f"   neighbours score {model.neighbours.item():.2f}" if name == "LP-sequence" else ""
        print(f"{name:12s} {right:12.1f} {aligned:20.1f} {seconds:8.0f}{learned}", flush=True)
    if options.plot:
        draw(torch, models, options.plot, options.seed + 1)


if __name__ == "__main__":
    main()
