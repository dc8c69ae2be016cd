"""
Claims with exposure
====================

An offset says how long each policy ran, and an L1 penalty which levels of its factors matter.

Policies run for a part of a year, and the number of claims grows with it. Its logarithm is the offset of a
Poisson model. Most levels of the factors say nothing: the penalty leaves them out.

::

    python examples/claims_with_exposure.py [PICTURE.png]

The data are made here.
"""

# %%
# A generated portfolio: eight factors of twelve levels each, as 96 one-hot columns.

import sys

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from sparsekit import GLMOBA, GLMOBACV

rng = np.random.default_rng(0)
n, n_factors, n_levels = 20_000, 8, 12
columns = np.arange(n_factors) * n_levels + rng.integers(0, n_levels, (n, n_factors))
X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(n + 1) * n_factors))
effects = np.zeros(X.shape[1])
effects[rng.choice(X.shape[1], 12, replace=False)] = rng.choice([-0.8, 0.8], 12)
exposure = rng.uniform(0.1, 1.0, n)
claims = rng.poisson(exposure * np.exp(X @ effects - 2.0))

# %%
# The penalty is chosen by the deviance of left-out policies, within one standard error of the best.

years = np.log(exposure)
search = GLMOBACV("poisson", alphas=30, selection="1se").fit(X, claims, offset=years)
print(f"alpha {search.alpha_:.2g}, {np.count_nonzero(search.coef_)} of {X.shape[1]} levels in use")
missed = set(np.flatnonzero(effects)) - set(np.flatnonzero(search.coef_))
print(f"{len(missed)} of 12 levels with an effect are missed")

# %%
# The certificate bounds how far the objective is above the lowest, and D^2 is the share of the deviance.

print(f"gap / objective {search.dual_gap_ / search.objective_:.0e}")
print(f"D^2 {search.score(X, claims, offset=years):.3f}")

# %%
# A prediction needs the exposure, too: ``offset=0`` asks for claims in one whole year.

print("claims a year:", search.predict(X[:3], offset=0).round(3))

# %%
# The same coefficients come from rates, weighted by the exposure.

rates = GLMOBA("poisson", alpha=search.alpha_ * n / exposure.sum(), tol=1e-8)
rates.fit(X, claims / exposure, sample_weight=exposure)
print("largest difference:", f"{abs(rates.coef_ - search.coef_).max():.0e}")

# %%
# The picture shows by which factor each level multiplies the claims. A weak ridge gives every level one. With
# the L1 penalty most levels without an effect have exactly 1, and the others are drawn towards 1.

free = GLMOBA("poisson", alpha=1e-4, l1_ratio=0.0).fit(X, claims, offset=years)
order = np.argsort(effects, kind="stable")
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.plot(np.exp(effects[order]), color="0.6", drawstyle="steps-mid", label="true factor")
label = f"weak ridge, {np.count_nonzero(free.coef_)} levels"
axis.plot(np.exp(free.coef_[order]), ".", color="C1", label=label)
label = f"L1, one standard error, {np.count_nonzero(search.coef_)} levels"
axis.plot(np.exp(search.coef_[order]), "o", color="C0", markerfacecolor="none", label=label)
axis.set(yscale="log", xlabel="levels, in the order of their effects", ylabel="claims, times the mean")
axis.set_yticks([0.5, 1.0, 2.0], ["0.5", "1", "2"])
axis.minorticks_off()
axis.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=150)
plt.show()
