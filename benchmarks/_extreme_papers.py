"""The tables and figures of the papers behind ExtremeSoftmaxSGD."""

from __future__ import annotations

import numpy as np
from _extreme import METHODS, PAPER_SIZES, Run, load, tune
from scipy.optimize import minimize

RATES = [10.0**k for k in range(-3, 4)]
# Table 3 of the unbiased-softmax paper: log-loss over that of Implicit SGD
PAPER_TABLE3 = {
    "mnist": dict(ove=5.73, nce=6.05, sgd=1.43, umax=1.56, **{"is": 5.74}),
    "bibtex": dict(ove=29.03, nce=28.52, sgd=15.18, umax=9.77, **{"is": 32.71}),
    "delicious": dict(ove=1.90, nce=1.91, sgd=1.25, umax=1.11, **{"is": 1.89}),
}


def table3(args):
    """Final log-losses and curves of six methods; returns Markdown rows and curves."""
    curves, blocks = {}, []
    for sizes, title in (
        (None, "the paper's batches"),
        ((1, 1), "one row and one class"),
        ((1, 5), "one row, five classes"),
    ):
        rows = []
        for name in args.sets:
            X, y, _, _, K = load(args.folder, name)
            n_epochs = args.epochs if name != "ptb" else min(args.epochs, 10)
            finals, rates = {}, {}
            for method in METHODS:
                kwargs = dict(sizes=sizes or PAPER_SIZES[method])
                tried = tune(X, y, K, method, n_epochs, RATES, **kwargs)
                rates[method] = min(tried, key=tried.get)
                run = Run(X, y, K, method, rates[method], **kwargs)
                points = []
                while run.n_epochs < n_epochs and run.step():
                    if run.n_epochs % max(1, n_epochs // 10) == 0:
                        points.append((run.n_epochs, run.loss()))
                finals[method] = run.loss()
                curves[title, name, method] = points
                print(f"{title}: {name} {method}: rate {rates[method]:g}, log-loss {finals[method]:.4f}, "
                      f"{run.seconds:.2f} s", flush=True)  # fmt: skip
            best_biased = min(finals[m] for m in ("ove", "nce", "is"))
            rows.append(
                [
                    name,
                    *(f"{finals[m]:.4g} ({rates[m]:g})" for m in METHODS),
                    f"{best_biased / finals['implicit']:.3g}",
                ]
            )
        blocks.append((title, ["data", *METHODS, "best biased / implicit"], rows))
    return blocks, curves


def plot_curves(curves, path, title="the paper's batches"):
    """Figure 1: log-loss against epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for t, name, _ in curves if t == title))
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.4 * len(names), 3.2), squeeze=False, layout="constrained"
    )
    for axis, name in zip(axes[0], names):
        for i, method in enumerate(METHODS):
            points = np.array([p for p in curves[title, name, method] if np.isfinite(p[1])]).reshape(-1, 2)
            # a method that diverged keeps its colour and its entry in the legend
            axis.plot(points[:, 0], points[:, 1], f"C{i}", marker="o", markersize=3, label=method)
        axis.set(title=name, xlabel="epochs", yscale="log")
    axes[0, 0].set_ylabel("log-loss")
    # next to the panels: a legend inside hides some curve
    figure.legend(*axes[0, -1].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def sensitivity(args, path):
    """Figure 3: log-loss by learning rate; returns Markdown rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y, _, _, K = load(args.folder, "bibtex")
    rates = [10.0**k for k in range(-4, 6)]
    cases = {m: dict(method=m) for m in METHODS}
    table = {}
    for label, case in cases.items():
        for rate in rates:
            kwargs = dict(case)
            run = Run(X, y, K, kwargs.pop("method"), rate, **kwargs)
            while run.n_epochs < args.epochs and run.step():
                pass
            table[label, rate] = run.loss()
        print(label, [f"{table[label, r]:.3g}" for r in rates], flush=True)
    figure, axis = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for label in cases:
        values = np.array([table[label, r] for r in rates])
        axis.plot(rates, np.minimum(values, 1e3), marker="o", markersize=3, label=label)
    axis.set(title="bibtex", xlabel="learning rate", xscale="log", yscale="log", ylim=(None, 1e3))
    axis.set_ylabel(f"log-loss after {args.epochs} epochs, at most 1000")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return ["method", *(f"{r:g}" for r in rates)], [
        [label, *(f"{table[label, r]:.3g}" for r in rates)] for label in cases
    ]


# ------------------------------------------------------------------ One-vs-Each


def _bound(kind, y, lam):
    """Value and gradient of the penalised negative bounds of Table 2, given scores F = Z W^T."""
    n = np.arange(len(y))

    def soft(F):
        high = F.max(axis=1, keepdims=True)
        P = np.exp(F - high)
        total = P.sum(axis=1, keepdims=True)
        value = np.sum(high[:, 0] + np.log(total[:, 0]) - F[n, y])
        P /= total
        P[n, y] -= 1.0
        return value, P

    def ove(F):
        Z = F - F[n, y][:, None]
        value = np.logaddexp(0.0, Z)
        value[n, y] = 0.0
        G = 1.0 / (1.0 + np.exp(-Z))
        G[n, y] = 0.0
        G[n, y] = -G.sum(axis=1)
        return value.sum(), G

    last = []

    def bouchard(F):
        """Eqs. (11), (12): alpha of each row makes sum_m sigma(f_m - alpha) = 1, by Newton's method."""
        high = F.max(axis=1)
        a = last[0] if last else high + np.log(np.exp(F - high[:, None]).sum(axis=1))
        for _ in range(100):
            S = 1.0 / (1.0 + np.exp(-(F - a[:, None])))
            g = 1.0 - S.sum(axis=1)
            if np.abs(g).max() < 1e-10:
                break
            a = a - np.clip(g / np.maximum((S * (1.0 - S)).sum(axis=1), 1e-12), -1.0, 1.0)
        last[:] = [a]
        value = np.sum(a + np.logaddexp(0.0, F - a[:, None]).sum(axis=1) - F[n, y])
        S[n, y] -= 1.0
        return value, S

    return {"soft": soft, "ove": ove, "bouchard": bouchard}[kind]


def ove_table2(args):
    """Norm, error and nlpd of SOFT, BOUCHARD, OVE and OVE-SGD, lambda = 1."""
    rows = []
    for name in ("mnist", "bibtex"):
        X, y, X_test, y_test, K = load(args.folder, name, np.float64, unit=False)
        X, X_test = (sp_ones(part) for part in (X, X_test))
        D = X.shape[1]
        dense = X.toarray() if name == "mnist" else X
        weights = {}
        for kind in ("soft", "bouchard", "ove"):
            bound = _bound(kind, y, 1.0)

            def fun(v, bound=bound, dense=dense, K=K, D=D):
                W = v.reshape(K, D)
                value, G = bound(dense @ W.T)
                return value + 0.5 * v @ v, ((dense.T @ G).T + W).ravel()

            start = np.zeros(K * D)
            result = minimize(
                fun, start, jac=True, method="L-BFGS-B", options=dict(maxiter=args.max_iter, maxfun=10**6)
            )
            weights[kind] = result.x.reshape(K, D)
            print(f"{name} {kind}: {result.nit} iterations, {result.message}", flush=True)
        # OVE-SGD: batches of 200 rows, one class; the ridge in the scale of the mean loss
        run = Run(X, y, K, "ove", args.ove_rate, sizes=(200, 1), alpha=1.0 / len(y), decay=0.97)
        for _ in range(200):
            run.step()
        weights["ove-sgd"] = weights_of(run)
        for kind in ("soft", "bouchard", "ove", "ove-sgd"):
            W = weights[kind]
            F = X_test @ W.T
            high = F.max(axis=1)
            nlpd = np.mean(
                high + np.log(np.exp(F - high[:, None]).sum(axis=1)) - F[np.arange(len(y_test)), y_test]
            )
            norm = np.abs(weights["soft"] - W).sum() / np.abs(weights["soft"]).sum()
            rows.append(
                [
                    name,
                    kind.upper(),
                    f"{norm:.2f}",
                    f"{np.mean(F.argmax(axis=1) != y_test):.3f}",
                    f"{nlpd:.3f}",
                ]
            )
            print(rows[-1], flush=True)
    return ["data", "method", "norm", "error", "nlpd"], rows


def sp_ones(X):
    """X with a column of ones."""
    import scipy.sparse as sp

    return sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr"))


def weights_of(run):
    from sparsekit._extreme.solver.state import settled

    return settled(run.state, run.options)[0]


def ove_toy(path, n_steps=200_000, K=10**4, N=10**6, batch=100, negatives=10):
    """Section 4.1: probabilities of 10^4 classes without features; returns the error every so many steps."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    p = rng.random(K) ** 2
    y = rng.choice(K, N, p=p / p.sum())
    exact = np.bincount(y, minlength=K) / N
    X = sp.csr_array(
        (np.ones(N), np.zeros(N, dtype=np.int32), np.arange(N + 1, dtype=np.int32)), shape=(N, 1)
    )
    # the paper's 0.5 / batch is for the sum over a batch and without the factor (K - 1) / negatives
    run = Run(X, y, K, "ove", 0.5 * negatives / (K - 1), sizes=(batch, negatives))
    points = [(0, float(np.abs(exact - 1.0 / K).sum()))]
    while run.n_epochs * (N // batch) < n_steps:
        run.step()
        f = weights_of(run)[:, 0]
        q = np.exp(f - f.max())
        points.append((run.n_epochs * (N // batch), float(np.abs(exact - q / q.sum()).sum())))
        print(f"{points[-1][0]} steps: error {points[-1][1]:.4f}, {run.seconds:.1f} s", flush=True)
    order = np.argsort(exact)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    axes[0].plot((q / q.sum())[order], ".", markersize=1, label="estimated by OVE-SGD")
    axes[0].plot(exact[order], label="exact")
    axes[0].set(xlabel="class, sorted", ylabel="probability")
    axes[0].legend(fontsize=8)
    axes[1].plot(*np.array(points).T, marker="o", markersize=3)
    axes[1].set(xlabel="steps", ylabel="sum of absolute differences", ylim=(0, None))
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return points, run.seconds
