"""Large batches find sharp minima
===============================

Why networks trained on large batches do worse on new data.

::

    python examples/sharp_minima.py [--quick] [--plot FILE]
    python examples/sharp_minima.py --mnist mnist.npz --rows 20000      # or a folder of the idx files

Chapter 4 of Keskar's thesis. One network is trained by Adam until its training loss is almost zero. From each
of several random starts it is trained twice: on small batches, and on batches of 10 % of the rows. Both
minima fit the training rows, but how far the loss rises around them differs, and so does the accuracy on new
rows. Three remedies of the thesis follow. The network is F1 of the thesis, narrower. The data are MNIST if
you name its file, otherwise scikit-learn's digits, enlarged and noisy. Takes minutes on a CPU, ``--quick``
less than one. Needs PyTorch (pip install torch matplotlib); without it the example says so and ends.
"""

import argparse
import copy
import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sparsekit.inspection import ParametricPlotDisplay, sharpness

SIDE, DEPTH, LARGE = 28, 5, 0.1  # pixels a side, hidden layers, part of the rows in a large batch
EPSILONS, MANIFOLD = (1e-3, 5e-4), 100  # box sizes and dimension of the random manifold, Tables 4.4 and 4.5
SMALL, BIG = "small batch", "large batch"
REMEDIES = CONSERVATIVE, WARM, AUGMENTED = "conservative", "warm start", "augmented"
COLUMNS = ("train %", "test %", "full 1e-3", "full 5e-4", "p=100 1e-3", "p=100 5e-4", "distance", "epochs")


# %%
# The data
# --------
# The digits of scikit-learn are 8 x 8 pixels. They are enlarged to 20 x 20 within a margin of 4, as MNIST's,
# so the first layer has as many inputs. Half of the 1797 rows are held out. On new digits so clear both
# regimes do equally well (``--noise 0``), whatever the sharpness; noise on all pixels makes them harder.
def enlarged_digits(noise):
    X, y = load_digits(return_X_y=True)
    large = [np.pad(zoom(image.reshape(8, 8) / 16, 20 / 8, order=1), 4).ravel() for image in X]
    large += noise * np.random.default_rng(0).standard_normal((len(X), SIDE**2))
    parts = train_test_split(large, y, test_size=0.5, random_state=0, stratify=y)
    return [parts[k] for k in (0, 2, 1, 3)]


def mnist(path):
    """X_train, y_train, X_test, y_test of an .npz file with such names, or a folder of idx files."""
    path = Path(path)
    if not path.is_dir():
        with np.load(path) as z:
            arrays = {name.lower(): z[name] for name in z.files}
        found = [arrays[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    else:
        found = []
        for part in ("train", "t10k"):
            for kind, header in (("images", 16), ("labels", 8)):
                file = next(path.glob(f"{part}-{kind}*"))
                content = file.read_bytes()
                content = gzip.decompress(content) if file.suffix == ".gz" else content
                values = np.frombuffer(content, np.uint8, offset=header)
                found.append(values.reshape(-1, SIDE**2) if kind == "images" else values)
    return [a if k % 2 else a.reshape(len(a), -1) / 255 for k, a in enumerate(found)]


def load(torch, options):
    X, y, X_test, y_test = mnist(options.mnist) if options.mnist else enlarged_digits(options.noise)
    if options.rows and options.rows < len(X):
        X, _, y, _ = train_test_split(X, y, train_size=options.rows, random_state=0, stratify=y)
    return [torch.tensor(a, dtype=[torch.int64, torch.float32][a.ndim - 1]) for a in (X, y, X_test, y_test)]


# %%
# The network
# -----------
# F1 of the thesis, its Appendix A.1.1: five layers with batch normalisation and ReLU, 512 neurons each there.
# The weights start uniformly distributed, as wide as Glorot has it.
def make_network(torch, width, seed):
    torch.manual_seed(seed)
    nn, layers = torch.nn, []
    for k in range(DEPTH):
        layers += [nn.Linear(width if k else SIDE**2, width), nn.BatchNorm1d(width), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(width, 10))
    for layer in network[::3]:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return network


# %%
# Training
# --------
# Adam, until the training loss has not improved for some epochs; the best epoch's network is returned. Two
# remedies of Section 4.4 change it:
#
# * *conservative training*, eq. (4.5): three iterations of Adam on each batch, on the batch's loss plus
#   :math:`\frac{\lambda}{2} \|x - x_k\|_2^2`. Here :math:`\lambda = 10^{-3}` and :math:`x_k` is the network
#   before the batch;
# * *data augmentation*: rows are turned by up to 10 degrees and moved by up to 0.2 of the image's side, anew
#   each time. The thesis reflects its photographs as well; the mirror image of a digit is no digit.
def train(torch, network, X, y, batch, options, *, inner=1, augmented=False, snapshot=None):
    """Best state, epochs, and the state after epoch ``snapshot``."""
    decay, cross_entropy = 1e-3, torch.nn.functional.cross_entropy
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3, foreach=True)
    best, best_epoch, kept, early = np.inf, 0, None, None
    for epoch in range(1, options.epochs + 1):
        network.train()
        total, order = 0.0, torch.randperm(len(X))
        for rows in order[: len(X) // batch * batch].split(batch):
            inputs = augment(torch, X[rows]) if augmented else X[rows]
            anchor = [p.detach().clone() for p in parameters] if inner > 1 else None
            for step in range(inner):
                loss = cross_entropy(network(inputs), y[rows])
                total += loss.item() if step == 0 else 0.0
                if step:  # the proximal term has no gradient in x_k itself
                    loss = loss + 0.5 * decay * sum(((p - a) ** 2).sum() for p, a in zip(parameters, anchor))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if epoch == snapshot:
            early = copy.deepcopy(network)
        if total < best:
            best, best_epoch, kept = total, epoch, copy.deepcopy(network.state_dict())
        elif epoch - best_epoch >= options.patience:
            break
    network.load_state_dict(kept)
    return network.eval(), epoch, early or copy.deepcopy(network)


def augment(torch, rows):
    n = len(rows)
    angle = torch.deg2rad(20 * torch.rand(n) - 10)
    shift = 0.4 * (2 * torch.rand(n, 2) - 1)  # the image reaches from -1 to 1
    turn = torch.stack([torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)], 1)
    matrix = torch.cat([turn.reshape(n, 2, 2), shift[:, :, None]], 2)
    grid = torch.nn.functional.affine_grid(matrix, (n, 1, SIDE, SIDE), align_corners=False)
    images = rows.reshape(n, 1, SIDE, SIDE)
    return torch.nn.functional.grid_sample(images, grid, align_corners=False).reshape(n, -1)


# %%
# A third is the *warm start* of Section 4.3: the first epochs on small batches, all others on large ones.
def minima(torch, data, seed, options):
    """Regime, minimiser and number of epochs, of one random starting point."""
    X, y, small, large = *data[:2], options.small_batch, int(LARGE * len(data[0]))

    def run(batch, network=None, **how):
        network = network or make_network(torch, options.width, seed)
        return train(torch, network, X, y, batch, options, **how)

    *found, early = run(small, snapshot=options.warm)
    yield SMALL, *found
    yield BIG, *run(large)[:2]
    if CONSERVATIVE in options.remedies:
        yield CONSERVATIVE, *run(large, inner=3)[:2]
    if WARM in options.remedies:
        yield WARM, *run(large, early)[:2]
    if AUGMENTED in options.remedies:
        yield f"small, {AUGMENTED}", *run(small, augmented=True)[:2]
        yield f"large, {AUGMENTED}", *run(large, augmented=True)[:2]


# %%
# What is measured
# ----------------
# Sharpness is Metric 4.2.1: by how many percent one plus the training loss rises in a box around the
# minimiser. One box is in all weights, one in a random manifold of dimension 100. Batch normalisation uses
# the averages it has collected, as it does on new rows.
def measure(torch, network, start, data, seed):
    X, y, X_test, y_test = data
    with torch.no_grad():
        right = [(network(A).argmax(1) == b).double().mean().item() for A, b in ((X, y), (X_test, y_test))]
    weights = flat(torch, network)
    loss = torch.nn.functional.cross_entropy
    full = sharpness(network, X, y, loss=loss, epsilon=EPSILONS)
    part = sharpness(network, X, y, loss=loss, epsilon=EPSILONS, n_directions=MANIFOLD, random_state=seed)
    return [100 * right[0], 100 * right[1], *full, *part, np.linalg.norm(weights - flat(torch, start))]


def flat(torch, network):
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().double().numpy()


def mean_and_deviation(values, digits=2):
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def report(results):
    """The table, and what it says of the two regimes: means and standard deviations over the seeds."""
    print(f"\n|{'':20s}| " + " | ".join(f"{c:>15s}" for c in COLUMNS) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    for name, runs in results.items():
        cells = [f"{mean_and_deviation(column):>15s}" for column in np.transpose(runs)]
        print(f"|{name:20s}| " + " | ".join(cells) + " |")
    small, large = np.array(results[SMALL]), np.array(results[BIG])
    gap = mean_and_deviation(large[:, 1] - small[:, 1])
    print(f"\nLarge batches against small ones, from the same {len(small)} starting points:")
    print(f"  test accuracy   {gap} points")
    for column in range(2, 6):
        ratio = np.log10(large[:, column] / small[:, column])
        print(f"  sharpness       {mean_and_deviation(ratio)} orders of magnitude higher, {COLUMNS[column]}")
    print(f"  small batches end {mean_and_deviation(small[:, 6] / large[:, 6])} times as far from the start")


# %%
# Pictures
# --------
# The loss on the line and on the arc through a small-batch and a large-batch minimiser, as in Figures 4.3 and
# 4.4. Then the sharpness of every minimiser against its accuracy.
def draw(torch, pair, data, results, path):
    import matplotlib.pyplot as plt

    X, y, X_test, y_test = data
    figure = plt.figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplot_mosaic([["line", "arc"], ["minima", "minima"]])
    for curve in ("line", "arc"):
        ParametricPlotDisplay.from_modules(
            pair[0], pair[1], X, y, X_test=X_test, y_test=y_test, loss=torch.nn.functional.cross_entropy,
            curve=curve, names=(SMALL, BIG), ax=axes[curve],
        )  # fmt: skip
    for k, (name, runs) in enumerate(results.items()):
        accuracy, sharp = np.array(runs)[:, 1], np.array(runs)[:, 2]
        axes["minima"].scatter(sharp, accuracy, s=25, alpha=0.5, color=f"C{k}")
        axes["minima"].scatter(
            np.exp(np.log(sharp).mean()), accuracy.mean(), s=150, marker="D", color=f"C{k}", label=name
        )
    axes["minima"].set(
        xscale="log", ylabel="test accuracy, %",
        xlabel=r"sharpness in the full space, $\epsilon = 10^{-3}$, % (diamonds: means)",
    )  # fmt: skip
    axes["minima"].legend(frameon=False, markerscale=0.6, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=100)


# %%
# All together
# ------------
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two starting points, fewer epochs, 32 neurons")
    parser.add_argument("--mnist", metavar="PATH", help="MNIST: an .npz file, or a folder of its idx files")
    parser.add_argument("--noise", type=float, default=0.2, help="of the digits (default %(default)s)")
    parser.add_argument("--rows", type=int, help="train on so many rows (default: all)")
    parser.add_argument("--width", type=int, default=128, help="neurons a layer (default %(default)s)")
    parser.add_argument("--small-batch", type=int, help="rows (default: 16, with MNIST 256)")
    parser.add_argument("--epochs", type=int, default=150, help="at most (default %(default)s)")
    parser.add_argument("--patience", type=int, default=50, help="epochs without improvement that end it")
    parser.add_argument("--warm", type=int, default=30, help="small-batch epochs of the warm start")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="starting points")
    parser.add_argument("--remedies", nargs="*", default=REMEDIES, choices=REMEDIES, metavar="REMEDY")
    parser.add_argument("--threads", type=int, default=1, help="(default %(default)s)")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the curves and the minima")
    parser.add_argument("--save", metavar="FILE", help="where to write all numbers, as JSON")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.width, options.epochs, options.warm = options.seeds[:2], 32, 30, 15
    options.small_batch = options.small_batch or (256 if options.mnist else 16)
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch matplotlib. Nothing was run.")
        return
    torch.set_num_threads(options.threads)
    data = load(torch, options)
    print(
        f"{len(data[0])} training and {len(data[2])} test rows, {DEPTH} layers of {options.width} neurons, "
        f"batches of {options.small_batch} and {int(LARGE * len(data[0]))} rows"
    )
    results, pair = {}, []
    for seed in options.seeds:
        begun = time.perf_counter()
        start = make_network(torch, options.width, seed)
        for name, network, epochs in minima(torch, data, seed, options):
            results.setdefault(name, []).append([*measure(torch, network, start, data, seed), epochs])
            if seed == options.seeds[0] and name in (SMALL, BIG):
                pair.append(network)
            numbers = " ".join(f"{v:9.3f}" for v in results[name][-1])
            print(f"seed {seed} {name:20s} {numbers} {time.perf_counter() - begun:6.0f} s", file=sys.stderr)
            if options.save:
                Path(options.save).write_text(json.dumps({"columns": COLUMNS, "results": results}, indent=1))
    report(results)
    if options.plot:
        draw(torch, pair, data, results, options.plot)


if __name__ == "__main__":
    main()
