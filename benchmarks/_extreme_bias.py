"""Table 3 of the unbiased-softmax paper by the package's rates, and why biased methods win."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from _extreme import PAPER_SIZES, Run, load
from extreme_defaults import gaussians
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD, SoftmaxClassifier
from sparsekit._extreme.estimators.scores import LinearScores, log_losses

BIASED, UNBIASED = ("ove", "nce", "is"), ("sgd", "umax", "implicit")
# the papers' six, and two of them with the noise of the others
CASES = {m: dict(method=m) for m in BIASED + UNBIASED} | {
    "implicit, frequency": dict(method="implicit", noise="frequency"),
    "is, uniform": dict(method="is", noise="uniform"),
}
SIZES = {"the paper's batches": None, "one row, five classes": (1, 5)}
MNIST_ROWS = 5000
# factor of the epochs of a long run; its decay is slower by the same factor
LONG = 4
EPOCHS = 50
# factor of the learning rate from epoch to epoch
DECAY = 0.9
RANGE = -4, 7  # powers of ten that are tried as rates
MAX_TIME = {"delicious": 40.0}  # seconds of the exact softmax, where 10 leave it far above
LATE_RIDGE = 1e-4  # of the model whose gradients are evaluated


@lru_cache
def data(folder, name):
    """X, codes, number of classes; overlap26 is made, and cannot be separated."""
    if name == "overlap26":
        X, y = gaussians(15000, 16, 26, 0.9, 12)
        return normalize(sp.csr_array(X.astype(np.float32))), y, 26
    X, y, _, _, K = load(folder, name)
    return (X[:MNIST_ROWS], y[:MNIST_ROWS], K) if name == "mnist" else (X, y, K)


@lru_cache
def exact(folder, name, alpha=1e-8):
    """SoftmaxClassifier's weights (K, p), without intercepts, and their mean log-loss."""
    X, y, _ = data(folder, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SoftmaxClassifier(alpha=alpha, fit_intercept=False, max_time=MAX_TIME.get(name, 10.0))
        model.fit(X.astype(np.float64), y)
    W = np.asarray(model.coef_)
    return W, float(log_losses(LinearScores(W, np.zeros(len(W))), X.astype(np.float64), y).mean())


def searched(X, y, case, sizes, seed=0):
    """The rate that ``learning_rate="auto"`` takes: of a tenth of the rows, judged by others."""
    batch, negatives = sizes or PAPER_SIZES[case["method"]]
    model = ExtremeSoftmaxSGD(
        **case, batch_size=batch, n_negatives=negatives, fit_intercept=False, max_iter=EPOCHS,
        max_time=1e-9, tol=None, random_state=seed,
    )  # fmt: skip
    try:
        return model.fit(X, y).learning_rate_
    except FloatingPointError:  # at each rate, or at the one that it took
        return getattr(model, "learning_rate_", np.nan)


def run(X, y, K, case, rate, sizes, *, factor=1, points=0):
    """Log-loss at the end, curve, and the run itself, of ``factor`` times the epochs."""
    kwargs = dict(case)
    method = kwargs.pop("method")
    made = Run(X, y, K, method, rate, sizes=sizes, decay=DECAY ** (1 / factor), **kwargs)
    curve, total = [], factor * EPOCHS
    while made.n_epochs < total and made.step():
        if points and made.n_epochs % max(1, total // points) == 0:
            curve.append((made.n_epochs, made.loss()))
    return made.loss(), curve, made


def best_rate(X, y, K, case, sizes, start, factor=1):
    """{power of ten: log-loss of all rows} down the slope from ``start``, within `RANGE`."""
    losses, low, high = {}, *RANGE

    def evaluate(exponent):
        if exponent not in losses:
            within = low <= exponent <= high
            losses[exponent] = (
                run(X, y, K, case, 10.0**exponent, sizes, factor=factor)[0] if within else np.inf
            )
        return losses[exponent]

    at = int(np.clip(round(np.log10(start)) if np.isfinite(start) else low, low, high))
    while at > low and not np.isfinite(evaluate(at)):
        at -= 1
    while True:
        step = min((at - 1, at + 1), key=evaluate)
        # where it is flat (nothing learned at all) there is no better
        if evaluate(step) >= evaluate(at) - 1e-3 * np.log(K):
            return {10.0**e: v for e, v in losses.items() if v < np.inf or e == at}
        at = step


def adaptive(X, y, n_epochs=EPOCHS):
    """Curve of the default's adaptive steps alone: passes, without Newton's method."""
    model, points = ExtremeSoftmaxSGD(alpha=0.0, fit_intercept=False, random_state=0, tol=None), []
    for epoch in range(1, n_epochs + 1):
        model.partial_fit(X, y, classes=np.arange(y.max() + 1) if epoch == 1 else None)
        if epoch % 5 == 0:
            points.append((epoch, model.log_loss(X, y)))
    return points


def mark(values):
    """Cells of {case: (loss, rate)}, the lowest of the paper's six bold."""
    lowest = min(v[0] for k, v in values.items() if k in BIASED + UNBIASED)
    cells = {}
    for case, (loss, rate) in values.items():
        text = (
            f"{loss:.4g}"
            if rate is None
            else f"{loss:.4g} ({rate:.0e})".replace("e+0", "e").replace("e-0", "e-")
        )
        cells[case] = f"**{text}**" if loss == lowest and case in BIASED + UNBIASED else text
    return cells


def tables(args):
    """Blocks of tables; draws curves {(rates, sizes, set, case): points}."""
    blocks, curves, limits, losses = [], {}, {}, {}
    for name in args.sets:
        X, y, K = data(args.folder, name)
        limits[name] = exact(args.folder, name)[1]
        for title, sizes in SIZES.items():
            by_search, by_best = {}, {}
            for case, kwargs in CASES.items():
                # two cases of equal negatives say what noise does
                if sizes is None and case not in BIASED + UNBIASED:
                    continue
                size = sizes or PAPER_SIZES[kwargs["method"]]
                rate = searched(X, y, kwargs, size)
                value, curve = (
                    run(X, y, K, kwargs, rate, size, points=10)[:2] if np.isfinite(rate) else (np.inf, [])
                )
                by_search[case], curves["search", title, name, case] = (value, rate), curve
                tried = best_rate(X, y, K, kwargs, size, rate) | {rate: value}
                best = min(tried, key=tried.get)
                by_best[case] = tried[best], best
                curves["best", title, name, case] = run(X, y, K, kwargs, best, size, points=10)[1]
                print(
                    f"{name}, {title}, {case}: searched {rate:g}: {value:.4f}; "
                    f"best {best:g}: {tried[best]:.4f}",
                    flush=True,
                )
            losses["search", title, name], losses["best", title, name] = by_search, by_best
        points = adaptive(X, y)
        curves["adaptive", name] = points
        for title in SIZES:
            for how in ("search", "best"):
                losses[how, title, name] |= {
                    "adaptive steps": (points[-1][1], None),
                    "exact": (limits[name], None),
                }
        # after each set, since all of them take minutes
        plot(curves, limits, list(limits), args.plot)
    for how, word in (
        ("search", "rates by the package's search"),
        ("best", "the best power of ten for all rows"),
    ):
        for title in SIZES:
            cells = {name: mark(losses[how, title, name]) for name in args.sets}
            rows = [[case, *(cells[name][case] for name in args.sets)] for case in cells[args.sets[0]]]
            blocks.append((f"{title}, {word}", ["method", *args.sets], rows))
    return blocks


def long_runs(args, sets):
    """Log-loss in `LONG` times the epochs, each method at its best rate for that; and the exact one."""
    rows, columns = {}, ["method"]
    for name in sets:
        X, y, K = data(args.folder, name)
        columns += [f"{name}, {EPOCHS} epochs", f"{name}, {LONG * EPOCHS}"]
        for case, kwargs in CASES.items():
            if case in ("sgd", "is, uniform"):  # sgd: as umax, or infinite
                continue
            start = searched(X, y, kwargs, (1, 5))
            for factor in (1, LONG):
                tried = best_rate(X, y, K, kwargs, (1, 5), start, factor)
                start = min(tried, key=tried.get)
                rows.setdefault(case, []).append(f"{tried[start]:.4f} ({start:g})")
            print(f"{name} {case}: {rows[case][-2:]}", flush=True)
        rows.setdefault("exact", []).extend(["", f"{exact(args.folder, name)[1]:.4f}"])
    return columns, [[case, *values] for case, values in rows.items()]


def gradients(args, sets, m=5, n_rows=1000, draws=200):
    """How well a step estimates a row's gradient: direction of its mean, noise against that mean's norm.

    The gradient of a row is one of its scores, p - e_y, times the row; averages over rows, at zeros and at an
    exact model. Lengths do not count, a rate makes up for them. The double sums' u is at its optimum, which
    flatters them.
    """
    rng, rows = np.random.default_rng(0), []
    for name in sets:
        X, y, K = data(args.folder, name)
        chosen = rng.choice(len(y), min(n_rows, len(y)), replace=False)
        W = exact(args.folder, name, LATE_RIDGE)[0]
        share = np.bincount(y, minlength=K) / len(y)
        for at, F in (("zeros", np.zeros((len(chosen), K))), ("late", X[chosen] @ W.T)):
            found = [_noise(f, k, share, m, draws, rng) for f, k in zip(F, y[chosen])]
            for case in found[0]:
                inner, mean, true, variance = np.sum([v[case] for v in found], axis=0)
                cosine, noise = inner / np.sqrt(mean * true), np.sqrt(variance / mean)
                rows.append([name, at, case, f"{cosine:.3f}", f"{noise:.2f}"])
    return ["data", "model", "method", "cosine of the mean", "noise / mean"], rows


def _noise(f, k, share, m, draws, rng):
    """{case: (mean @ gradient, |mean|^2, |gradient|^2, variance)} of a row's estimate, in scores."""
    K = len(f)
    others = np.delete(np.arange(K), k)
    p = np.exp(f - f.max())
    p /= p.sum()
    true = p.copy()
    true[k] -= 1.0
    found, square = {}, float(true @ true)
    uniform = np.full(K - 1, 1.0 / (K - 1))
    frequency = np.maximum(share[others], 1e-12) / np.maximum(share[others], 1e-12).sum()
    sigma = 1.0 / (1.0 + np.exp(-(f[others] - f[k])))
    # sums of drawn terms w_j / q_j (e_j - e_y): two entries each, which are alike
    for case, w, q, negatives in (
        ("implicit, umax, sgd; one class", p[others], uniform, 1),
        (f"the same, {m}", p[others], uniform, m),
        (f"the same, {m}, frequency", p[others], frequency, m),
        (f"ove, {m}", sigma, uniform, m),
    ):
        mean = np.zeros(K)
        mean[others], mean[k] = w, -w.sum()
        variance = (2.0 * (w * w / q).sum() - mean @ mean) / negatives
        found[case] = float(mean @ true), float(mean @ mean), square, float(variance)
    for case, q in ((f"is, {m}", frequency), (f"is, {m}, uniform", uniform)):
        picks = rng.choice(K - 1, size=(draws, m), p=q)
        z = f[others][picks] - f[k] - np.log(m * q[picks])
        high = np.maximum(z.max(axis=1, keepdims=True), 0.0)
        e = np.exp(z - high)
        e /= e.sum(axis=1, keepdims=True) + np.exp(-high)
        G = np.zeros((draws, K))
        np.add.at(G, (np.arange(draws)[:, None], others[picks]), e)
        G[:, k] = -e.sum(axis=1)
        mean = G.mean(axis=0)
        variance = float(((G - mean) ** 2).sum() / (draws - 1))
        # the square of a mean of draws has their noise in it
        found[case] = float(mean @ true), float(mean @ mean) - variance / draws, square, variance
    return found


def lag(args, sets):
    """How far u of a row is from its optimum, the row's log-loss, at the end of implicit runs."""
    rows = []
    for name in sets:
        X, y, K = data(args.folder, name)
        for sizes in ((1, 1), (1, 5)):
            case = CASES["implicit"]
            tried = best_rate(X, y, K, case, sizes, searched(X, y, case, sizes))
            rate = min(tried, key=tried.get)
            made = run(X, y, K, case, rate, sizes)[2]
            gap = np.asarray(made.work.u, dtype=np.float64)[: len(y)] - made.losses(X, y)
            quantiles = (f"{v:.2f}" for v in np.quantile(gap, (0.1, 0.5, 0.9)))
            rows.append([name, sizes[1], f"{rate:g}", *quantiles])
    return ["data", "negatives", "rate", "10 %", "median", "90 %"], rows


def plot(curves, limits, names, path):
    """Above the searched rates and the paper's batches, below the best rates and equal negatives."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(names), figsize=(3.3 * len(names), 6.0), squeeze=False, layout="constrained"
    )
    both = (("search", "the paper's batches"), ("best", "one row, five classes"))
    for row, (how, title) in zip(axes, both):
        for axis, name in zip(row, names):
            for i, case in enumerate(CASES):
                points = [p for p in curves.get((how, title, name, case), []) if np.isfinite(p[1])]
                if case in BIASED + UNBIASED or how == "best":
                    points = np.array(points).reshape(-1, 2)
                    style = "--" if case in BIASED or case == "is, uniform" else "-"
                    axis.plot(
                        points[:, 0], points[:, 1], f"C{i}", marker="o", markersize=3, label=case,
                        linestyle=style,
                    )  # fmt: skip
            axis.plot(*np.array(curves["adaptive", name]).T, "k", linewidth=1, label="adaptive steps")
            # classes can be separated where it is nearly 0; and it may have been stopped too early
            if 0.1 < limits[name] < curves["adaptive", name][-1][1]:
                axis.axhline(limits[name], color="k", linestyle=":", linewidth=1, label="exact")
            axis.set(title=name, xlabel="epochs", yscale="log")
        row[0].set_ylabel(f"log-loss; {title},\n{'searched' if how == 'search' else 'best'} rates")
    shown = {}
    for axis in axes[1]:
        shown |= dict(zip(*axis.get_legend_handles_labels()[::-1]))
    figure.legend(shown.values(), shown.keys(), fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def biased(args):
    """All of it; returns blocks of tables."""
    start = time.perf_counter()
    blocks = tables(args)
    print(f"tables: {time.perf_counter() - start:.0f} s", flush=True)
    slow = ("overlap26", "delicious")
    for title, measure, names in (
        (f"{LONG} times the epochs, one row and five classes", long_runs, slow),
        ("a step's estimate of a row's gradient", gradients, ("bibtex", *slow)),
        ("u less its optimum, implicit, at the end", lag, ("bibtex", "delicious")),
    ):
        blocks.append((title, *measure(args, names)))
    print(f"all: {time.perf_counter() - start:.0f} s", flush=True)
    return blocks
