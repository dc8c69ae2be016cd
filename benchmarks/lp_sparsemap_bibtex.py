"""Table 4 (bibtex) of the LP-SparseMAP paper, and linear classifiers against its network.

    python benchmarks/lp_sparsemap_bibtex.py --markdown table4.md

The network of Appendix E.4: two hidden layers of 300 ReLU, batches of 32, Adam with learning rate 0.001, no
dropout. The structured models have one free score for each pair of labels, the same for all rows, initially
0. "hinge" is the structured hinge loss with LP-MAP inference and a cost of 1 a wrong label. "sparsemap" is
   the loss of eq. (16), "logistic" independent logistic losses. Inference is sparsekit's, to 1e-6, where the
   paper
stops at 100 iterations of ADMM.

A fifth of the training rows, different for each seed, chooses the number of epochs and a shift t by F1. Every
model is then trained again on all training rows. Three rules predict. "plain": a label is on where its LP-MAP
solution or LP-SparseMAP marginal exceeds 1/2, its logistic score 0. "shifted": the same with scores eta - t
instead of eta. "never empty": the shifted rule, and where it is empty the label with the highest score (no
row of bibtex is without). Each rule has its own epochs and t, and linear models have their own alpha or C for
each. Models with pairs use the alpha found without. F1 is the mean over the rows of the test part, as in the
paper, which does not say how it predicts.
"""

from __future__ import annotations

import sys
import time
import warnings

import _common
import _data
import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain

from sparsekit import LPSparseMAPClassifier
from sparsekit._factor_graph.labels.label_loss import Labels
from sparsekit._factor_graph.solver.layout import GraphOptions

RULES = ("plain", "shifted", "never empty")
PAPER = {"logistic": 42.28, "hinge": 37.70, "sparsemap": 43.43}
LINEAR = [*PAPER, "OneVsRestClassifier", "ClassifierChain"]
# a shift is so many of these: scores are to be below 0 or above 1, beyond -1 or 1, far apart
UNITS = {"sparsemap": 0.15, "hinge": 0.5, "logistic": 1.0}
SHIFTS = [-2.0, -1.6, -1.2, -0.8, -0.4, -0.2, 0.0, 0.2]
ALPHAS = (1e-4, 3e-4, 1e-3, 3e-3)
CS = (0.1, 0.3, 1.0, 3.0, 10.0)
HELD_OUT = 0.2
FIRST = 2  # epochs without validation


class Inference:
    """Label sets from scores eta of labels and s of pairs of labels."""

    def __init__(self, kind, n_labels, pairs=None):
        self.kind = kind
        if pairs is None:
            pairs = np.column_stack(np.triu_indices(n_labels, 1))
        self.pairs = np.zeros((0, 2), dtype=int) if kind == "logistic" else pairs
        self.labels = Labels(n_labels, self.pairs)
        self.rough = self.exact = GraphOptions(tol_primal=1e-6, tol_dual=1e-6, quadratic=kind == "sparsemap")
        if kind == "sparsemap":  # enough to find a shift; LP-MAP is quick as it is
            self.rough = GraphOptions(tol_primal=1e-3, tol_dual=1e-3, exact=False)

    def marginals(self, eta, s, options=None):
        options = options or self.exact
        return self.labels.marginals(eta, np.maximum(s, 0.0), np.maximum(-s, 0.0), options)[0]

    def predict(self, eta, s, shift=0.0, options=None):
        if self.kind == "logistic":
            return eta > shift
        return self.marginals(eta - shift, s, options) > 0.5


class StructuredLoss(torch.autograd.Function):
    """Mean over a batch of max_mu <eta + cost, mu> + <s, p> [- |mu|^2 / 2] less the same of the truth y.

    By Danskin the gradients are differences of the maximiser and the truth. p of a pair is the largest that
    its labels' marginals allow for s > 0, the smallest for s < 0. For s = 0 any value between is a
    subgradient; their product is used.
    """

    @staticmethod
    def forward(ctx, eta, s, y, inference):
        scores, pair_scores, truth = (a.detach().numpy().astype(np.float64) for a in (eta, s, y))
        smooth, i, j = inference.kind == "sparsemap", *inference.pairs.T
        cost = 0.0 if smooth else 1.0 - 2.0 * truth
        mu = inference.marginals(scores + cost, pair_scores)
        high, low = inference.labels.pair_sums(mu, np.ones(len(mu)))
        both = np.where(pair_scores > 0, high, np.where(pair_scores < 0, low, (mu.T @ mu)[i, j]))
        off = both - (truth.T @ truth)[i, j]
        value = np.vdot(scores, mu - truth) + pair_scores @ off
        value += 0.5 * (truth.sum() - np.vdot(mu, mu)) if smooth else np.vdot(cost, mu) + truth.sum()
        ctx.save_for_backward(torch.from_numpy(mu - truth).to(eta), torch.from_numpy(off).to(s))
        return eta.new_tensor(value / len(mu))

    @staticmethod
    def backward(ctx, grad):
        to_eta, to_s = ctx.saved_tensors
        return grad * to_eta / len(to_eta), grad * to_s / len(to_eta), None, None


def train(inference, X, Y, epochs, seed):
    """Yields (network as a function of rows, s) after each epoch."""
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(X.shape[1], 300), torch.nn.ReLU(), torch.nn.Linear(300, 300), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(300, Y.shape[1]))
    s = torch.zeros(len(inference.pairs), requires_grad=True)
    optimizer = torch.optim.Adam([*network.parameters(), s], lr=1e-3, fused=True)
    X, Y = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(Y.astype(np.float32))

    def scores(rows):
        with torch.no_grad():
            return network(torch.from_numpy(rows.astype(np.float32))).numpy().astype(np.float64)

    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            eta = network(X[rows])
            if inference.kind == "logistic":
                loss = torch.nn.functional.softplus((1 - 2 * Y[rows]) * eta).sum() / len(rows)
            else:
                loss = StructuredLoss.apply(eta, s, Y[rows], inference)
            loss.backward()
            optimizer.step()
        yield scores, s.detach().numpy().astype(np.float64)


def f1(Y, predicted):
    return 100 * f1_score(Y, predicted, average="samples", zero_division=0)


def at_least_one(sets, eta):
    """The sets, and where one is empty the label with the highest score."""
    sets, empty = sets.copy(), np.flatnonzero(~sets.any(axis=1))
    sets[empty, eta[empty].argmax(axis=1)] = True
    return sets


def predictions(inference, eta, s, shifts):
    """Label sets by each rule, from their shifts."""
    found = {t: inference.predict(eta, s, t) for t in set(shifts)}
    plain, shifted, filled = (found[t] for t in shifts)
    return plain, shifted, at_least_one(filled, eta)


def choose_shifts(inference, eta, s, Y):
    """F1 of each rule at its best shift, and these shifts."""
    shifts, table = [UNITS[inference.kind] * shift for shift in SHIFTS], []
    for shift in shifts:
        sets = inference.predict(eta, s, shift, inference.rough)
        table.append([f1(Y, sets), f1(Y, sets), f1(Y, at_least_one(sets, eta))])
    table = np.array(table)
    best = [SHIFTS.index(0.0), *table[:, 1:].argmax(axis=0)]
    return table[best, range(3)], [shifts[k] for k in best]


def halves(n, seed):
    order = np.random.default_rng(seed).permutation(n)
    held = int(HELD_OUT * n)
    return order[held:], order[:held]


def network(kind, data, epochs, seed):
    """Test F1, the epochs and the shift of each rule, and the seconds of an epoch."""
    X, Y, X_test, Y_test = data
    rows, held = halves(len(X), seed)
    inference = Inference(kind, Y.shape[1])
    curve = []
    for scores, s in train(inference, X[rows], Y[rows], epochs, seed):
        later = len(curve) >= FIRST
        skipped = np.zeros(3), [0.0] * 3
        curve.append(choose_shifts(inference, scores(X[held]), s, Y[held]) if later else skipped)
        print(kind, seed, len(curve), *np.round(curve[-1][0], 2), curve[-1][1], flush=True)
    chosen = [int(np.argmax([values[rule] for values, _ in curve])) for rule in range(3)]
    shifts = [curve[epoch][1][rule] for rule, epoch in enumerate(chosen)]
    begin, found = time.perf_counter(), [None] * 3
    for epoch, (scores, s) in enumerate(train(inference, X, Y, max(chosen) + 1, seed)):
        if epoch in chosen:
            pause = time.perf_counter()
            sets = predictions(inference, scores(X_test), s, shifts)
            found = [f1(Y_test, sets[k]) if chosen[k] == epoch else found[k] for k in range(3)]
            begin += time.perf_counter() - pause
    seconds = (time.perf_counter() - begin) / (max(chosen) + 1)
    chosen = [epoch + 1 for epoch in chosen]
    print(kind, seed, "test", np.round(found, 2), chosen, shifts, f"{seconds:.1f} s an epoch", flush=True)
    return found, chosen, shifts, seconds


def networks(kinds, data, epochs, seeds):
    lines = []
    for kind in kinds:
        runs = [network(kind, data, epochs, seed) for seed in range(seeds)]
        for k, rule in enumerate(RULES):
            chosen = " ".join(str(run[1][k]) for run in runs)
            shifts = " ".join(f"{run[2][k]:g}" for run in runs) if k else ""
            seconds = f"{np.median([run[3] for run in runs]):.1f}"
            mine = spread([run[0][k] for run in runs])
            lines.append([kind, rule, f"{PAPER[kind]:.2f}", mine, chosen, shifts, seconds])
    titles = ["loss", "rule", "paper", "ours", "epochs", "t", "s an epoch"]
    return [f"## The network, {seeds} seeds", "", *_common.markdown_table(titles, lines)]


def spread(values):
    text = f"{np.mean(values):.2f}"
    return text if len(values) == 1 else f"{text} ({min(values):.2f} to {max(values):.2f})"


def scores_of(model, X):
    """Inference, scores of labels and of pairs of a fitted linear model."""
    eta = np.asarray(model.decision_function(X))
    if not isinstance(model, LPSparseMAPClassifier):
        return Inference("logistic", eta.shape[1]), eta, None
    return Inference(model.loss, eta.shape[1], model.pairs_), eta, model.pair_coef_


def linear(data, names, max_time):
    X, Y, X_test, Y_test = data
    rows, held = halves(X.shape[0], 0)

    def fit(make, strength, X, Y):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(strength).fit(X, Y)
        return model, time.perf_counter() - start

    def ours(loss, pairs):
        return lambda alpha: LPSparseMAPClassifier(alpha, loss=loss, pairs=pairs, max_time=max_time)

    def theirs(wrapper):
        return lambda C: wrapper(LogisticRegression(C=C, solver="liblinear"))

    both, kinds = ("sparsemap", "hinge"), (None, 500, "all")
    models = {(loss, pairs): ours(loss, pairs) for loss in both for pairs in kinds}
    models["logistic", None] = ours("logistic", None)
    models |= {
        (wrapper.__name__, None): theirs(wrapper) for wrapper in (OneVsRestClassifier, ClassifierChain)
    }
    lines, chosen = [], {}
    for (name, pairs), make in models.items():
        if name not in names:
            continue
        # with pairs: the strengths found without
        grid = sorted(set(chosen.get(name, ALPHAS if name in PAPER else CS)))
        tried = []
        for strength in grid:
            model, seconds = fit(make, strength, X[rows], Y[rows])
            tried.append(choose_shifts(*scores_of(model, X[held]), Y[held]))
            print(name, pairs, strength, np.round(tried[-1][0], 2), f"{seconds:.1f} s", flush=True)
        best = [int(np.argmax([values[k] for values, _ in tried])) for k in range(3)]
        chosen[name], shifts = [grid[i] for i in best], [tried[i][1][k] for k, i in enumerate(best)]
        cells, times, ends, used = [""] * 3, [], [], []
        for i in sorted(set(best)):
            model, seconds = fit(make, grid[i], X, Y)
            sets = predictions(*scores_of(model, X_test), shifts)
            cells = [f"{f1(Y_test, sets[k]):.2f}" if best[k] == i else cells[k] for k in range(3)]
            times.append(f"{seconds:.1f}")
            if name in PAPER:
                used.append(f"{np.count_nonzero(model.pair_coef_)} of {len(model.pairs_)}")
                ends.append("limit" if seconds > max_time else f"{model.n_iter_[0]} steps")
        strengths = ", ".join(f"{strength:g}" for strength in chosen[name])
        t = ", ".join(f"{shift:g}" for shift in shifts[1:])
        lines.append([name, "; ".join(used), strengths, *cells, t, "; ".join(times), "; ".join(ends)])
        print(*lines[-1], flush=True)
    titles = ["linear model", "pairs scored", "alpha or C", *RULES, "t", "fit, s", "end"]
    return ["## Linear models", "", *_common.markdown_table(titles, lines)]


def main():
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--data", help="folder of the data sets")
    add("--networks", nargs="*", default=list(PAPER), choices=PAPER)
    add("--linear", nargs="*", default=LINEAR, choices=LINEAR)
    add("--seeds", type=int, default=3, help="networks of each loss (default %(default)s)")
    add("--epochs", type=int, default=20, help="most epochs (default %(default)s)")
    add("--max-time", type=float, default=180.0, help="seconds of one linear fit (default %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    d = _data.read(_data.data_folder(args.data), "bibtex")
    X, Y, X_test, Y_test = (d[key] for key in ("X_train", "Y_train", "X_test", "Y_test"))
    Y, Y_test = (np.asarray(part.toarray() if hasattr(part, "toarray") else part) for part in (Y, Y_test))
    text = ["# LP-SparseMAP, Table 4: example F1 on bibtex", "", *_common.environment(())]
    if args.networks:
        text += networks(args.networks, (X.toarray(), Y, X_test.toarray(), Y_test), args.epochs, args.seeds)
    if args.linear:
        text += linear((X, Y.astype(int), X_test, Y_test.astype(int)), args.linear, args.max_time)
    print("\n".join(text))
    _common.write_markdown(args.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
