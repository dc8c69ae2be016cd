"""Demand at three quantiles, within bounds
========================================

Quantile regression whose effects keep the sign and the size that are known in the trade.

::

    python examples/bounded_demand.py [PICTURE.png]

A shop has half a year of daily sales of ice cream, in boxes. It wants the median and the 10 % and 90 %
quantiles of tomorrow's sales. Features are correlated: own and competitor's price, promotions and price cuts,
ads and heat. Free least-absolute fits therefore give some effects the wrong sign. Here each feature has a
lower and an upper bound on its effect. The data are made in the script.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from sparsekit import BoundedRegressor

QUANTILES = {0.1: "tab:blue", 0.5: "black", 0.9: "tab:red"}
FREE = (-np.inf, np.inf)

# %%
# What is known of each effect
# ----------------------------

# Boxes sold a day for one unit more of the feature: what is believable, and why.
BOUNDS = {
    "own price, EUR": (-12.0, 0.0),  # dearer sells less, and never loses more than 12 boxes a euro
    "competitor's price, EUR": (0.0, 6.0),  # theirs sends customers to us, at most half of them
    "promotion": (0.0, 15.0),
    "leaflet": (0.0, 5.0),
    "radio ad": (0.0, 5.0),
    "temperature, 10 C": (0.0, 10.0),
    "rain": (-10.0, 0.0),
    "Saturday": (0.0, 8.0),
    "Sunday": FREE,  # open on some Sundays only: no belief
    "school holiday": (-2.0, 4.0),
}
TRUTH = [-6.0, 3.0, 6.0, 1.0, 0.3, 5.0, -3.0, 4.0, -2.0, 0.5]


# %%
# Two years of days
# -----------------
#
# Half a year is for the fit, the rest to judge it.
def make_days(n_days, rng):
    """Features by name, in the order of BOUNDS, and the boxes sold."""
    day = np.arange(n_days)
    temperature = 1.8 + 0.8 * np.sin(2 * np.pi * (day % 365) / 365) + 0.35 * rng.standard_normal(n_days)
    market = 4.0 + 0.4 * np.sin(2 * np.pi * day / 90) + 0.1 * rng.standard_normal(n_days)
    promotion = (rng.random(n_days) < 0.2).astype(float)
    leaflet = np.where(rng.random(n_days) < 0.8, promotion, 1 - promotion)  # leaflets announce promotions
    radio = (temperature + 0.3 * rng.standard_normal(n_days) > 2.2).astype(float)
    columns = [
        market - 0.7 * promotion + 0.15 * rng.standard_normal(n_days),
        market + 0.12 * rng.standard_normal(n_days),
        promotion,
        leaflet,
        radio,
        temperature,
        (rng.random(n_days) < 0.25).astype(float),
        (day % 7 == 5).astype(float),
        ((day % 7 == 6) & (rng.random(n_days) < 0.5)).astype(float),
        ((day % 120) < 14).astype(float),
    ]
    X = np.column_stack(columns)
    mean = 30.0 + X @ TRUTH
    # the spread grows with demand, and some days are lost to delivery
    sold = mean + 0.12 * mean * rng.standard_normal(n_days)
    sold[rng.random(n_days) < 0.04] *= 0.4
    return X, np.maximum(np.round(sold), 0.0)


# %%
# Three fits, with bounds and without
# -----------------------------------
def as_frame(X):
    """A pandas DataFrame where pandas is installed; the estimators take either."""
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=list(BOUNDS))


def fit_all(X, y, bounds):
    """A model for each quantile."""
    return {q: BoundedRegressor("quantile", quantile=q, bounds=bounds).fit(X, y) for q in QUANTILES}


def mark(w, lower, upper):
    """The coefficient, with a sign if it is at a bound."""
    return f"{w:7.2f}{' [' if w == lower else ' ]' if w == upper else '  '}"


def print_table(bounded, free):
    heads = "".join(f"{f'{q:g}':>7}  " for q in QUANTILES)
    print(f"{'boxes a day for':24s}{'bounds':>15}   {heads}  {'no bounds: ' + heads.lstrip()}")
    for j, (name, (lower, upper)) in enumerate(BOUNDS.items()):
        box = f"{lower:g} .. {upper:g}"
        inside = "".join(mark(model.coef_[j], lower, upper) for model in bounded.values())
        outside = "".join(
            f"{w:7.2f}{'  ' if lower <= w <= upper else ' !'}"
            for w in (model.coef_[j] for model in free.values())
        )
        print(f"{name:24s}{box:>15}   {inside}           {outside}")
    print("[ ] at the lower, upper bound;  ! outside of the bounds\n")


def print_quality(models, X, y, X_new, y_new, title):
    """Share of the days below each quantile, on days that the fit has not seen, and the mean loss there."""
    for q, model in models.items():
        r = y_new - model.predict(X_new)
        loss = np.mean(np.maximum(q * r, (q - 1) * r))
        print(
            f"{title}, quantile {q:g}: objective {model.objective_:.4f} (at most {model.dual_gap_:.0e} "
            f"too high), {100 * np.mean(r <= 0):.0f} % of the new days below, loss there {loss:.3f}"
        )
    low, high = (models[q].predict(X_new) for q in (min(models), max(models)))
    inside = np.mean((low <= y_new) & (y_new <= high))
    print(f"{title}: {100 * inside:.0f} % of the new days inside the 80 % band\n")


# %%
# The picture
# -----------
def draw(bounded, free, path):
    """The boxes of the bounds, and the coefficients of both fits against them."""
    names = list(BOUNDS)
    reach = 1.12 * max(np.abs(model.coef_).max() for model in [*bounded.values(), *free.values()])
    reach = max(reach, 1.05 * max(abs(v) for pair in BOUNDS.values() for v in pair if np.isfinite(v)))
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), sharex=True, sharey=True, layout="constrained")
    for axis, models, title in zip(axes, (bounded, free), ("within the bounds", "without bounds")):
        axis.axvline(0.0, color="0.5", lw=0.8, zorder=1)
        for j, pair in enumerate(BOUNDS.values()):
            lower, upper = np.clip(pair, -reach, reach)
            axis.barh(j, upper - lower, left=lower, height=0.72, color="0.92", edgecolor="0.75", zorder=0)
        for shift, (q, color) in zip((-0.2, 0.0, 0.2), QUANTILES.items()):
            w = models[q].coef_
            inside = [lower <= v <= upper for v, (lower, upper) in zip(w, BOUNDS.values())]
            at_bound = [v in pair for v, pair in zip(w, BOUNDS.values())]
            position = np.arange(len(w)) + shift
            axis.hlines(position, 0.0, w, color=color, lw=1.4, alpha=0.6, zorder=2)
            for kind, marker, size in (("in", "o", 34), ("at", "D", 38), ("out", "X", 60)):
                chosen = {
                    "in": [a and not b for a, b in zip(inside, at_bound)], "at": at_bound,
                    "out": [not a for a in inside],
                }[kind]  # fmt: skip
                axis.scatter(w[chosen], position[chosen], s=size, marker=marker, color=color, zorder=3)
        axis.set(title=title, xlabel="boxes a day for one unit more", xlim=(-reach, reach))
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    dots = [
        plt.Line2D([], [], marker="o", ls="", color=c, label=f"quantile {q:g}") for q, c in QUANTILES.items()
    ]
    shapes = [
        plt.Line2D([], [], marker=m, ls="", color="0.4", label=label)
        for m, label in (("D", "at a bound"), ("X", "outside of the bounds"))
    ]
    box = plt.Rectangle((0, 0), 1, 1, facecolor="0.92", edgecolor="0.75", label="allowed")
    figure.legend(handles=[*dots, *shapes, box], ncols=6, loc="outside lower center", frameon=False)
    figure.savefig(path, dpi=150)


# %%
# The run
# -------
#
# Free fits put effects on the wrong side of zero; the bounded ones can't, and are no worse on new days.
def main(picture="bounded_demand.png"):
    rng = np.random.default_rng(3)
    X, y = make_days(182 + 365, rng)
    X, X_new, y, y_new = as_frame(X[:182]), as_frame(X[182:]), y[:182], y[182:]
    # by name, or by number where there are no names
    bounds = BOUNDS if hasattr(X, "columns") else dict(enumerate(BOUNDS.values()))
    bounded, free = fit_all(X, y, bounds), fit_all(X, y, FREE)
    print_table(bounded, free)
    print_quality(bounded, X, y, X_new, y_new, "bounded")
    print_quality(free, X, y, X_new, y_new, "free   ")
    draw(bounded, free, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
