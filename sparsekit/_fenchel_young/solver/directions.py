"""Newton's method for Fenchel-Young losses: continuation in alpha, and directions."""

import numpy as np

from ..._linalg.cost import PRODUCTS
from ..._solver.tolerances import ROUNDING

# Largest number of conjugate gradient steps of a direction. With 250, 56 fits to 11 made sets take 1.03 times
# the time, hard ones up to 1.5 times, news20 at C = 0.01 1.4 times. With 30, fits of softmax take up to 1.8
# times the time.
MAX_PRODUCTS = 60
# First alpha, in units of the loss's curvature at zero.
FIRST_ALPHA = 0.01
# Factor between the alphas of two continuation steps.
ALPHA_RATIO = 3.0


class Continuation:
    """Decreasing alphas that end at the last one.

    Parameters
    ----------
    last, first : float
        There is one alpha if ``first`` is not larger.
    """

    def __init__(self, last, first):
        self.last, self.alpha, self.least = last, max(last, first), ROUNDING * first

    @classmethod
    def of(cls, run, point):
        """Start below an alpha of which the point is near a solution, else where Newton steps are good."""
        if run.loss.transform != "sparsemax":
            return cls(run.alpha, run.alpha)
        part, slope = run.penalised(point.T), run.penalised(point.gradient)
        size, length = run.dots((slope, slope), (part, part))
        if length > 0.0:
            alpha = (size / length) ** 0.5  # its gap is the smallest there
            if run.is_near(point, alpha):
                return cls(run.alpha, alpha / ALPHA_RATIO)
        return cls(run.alpha, FIRST_ALPHA * run.loss.scale())

    def at(self, run, point):
        """The alpha of the next step from the point."""
        while self.alpha > self.last and run.is_near(point, self.alpha):
            self.alpha = max(self.last, self.alpha / ALPHA_RATIO)
            if self.alpha < self.least:
                self.alpha = self.last
        return self.alpha


class Directions:
    """Newton directions, by a factor where that pays, else by conjugate gradients."""

    def __init__(self, run):
        self.run, self.expected = run, PRODUCTS

    def at(self, Z, G, alpha, forcing):
        """d with (H + alpha) d = -G, or to a relative residual of ``forcing``; H at scores Z."""
        run = self.run
        D = run.loss.newton_step(Z, G, alpha, run.free, self.expected)
        if D is None:
            D, products = self.conjugate_gradients(G, run.loss.operator(Z), alpha, forcing)
            self.expected = max(PRODUCTS, products)
            return D
        run.passes += 1
        return D

    def conjugate_gradients(self, G, operator, alpha, forcing):
        """The direction, and its number of products.

        The diagonal preconditions. All vectors are float32 multiples of G's size; outer steps correct the
        rounding.
        """
        run = self.run
        K, scale, threads, kernels = G.shape[1], largest(G), run.loss.threads, run.kernels
        shape = operator.shape
        g = np.zeros(shape, dtype=np.float32, like=G)
        g[:, :K] = G / scale
        M = np.zeros_like(g)
        M[:, :K] = operator.diag.reshape(G.shape)
        run.penalised(M)[...] += alpha
        np.maximum(M, 1e-12 * (largest(M) or 1.0), out=M)
        inverse = np.divide(1.0, M, out=M).ravel()
        r, d, p = -g.ravel(), np.zeros_like(g.ravel()), np.zeros_like(g.ravel())
        Hp = np.empty(shape, dtype=np.float32, like=G)
        kernels.cg_turn(0.0, r, inverse, p, *threads)
        size = first = kernels.dot(r, p, *threads)
        enough = forcing**2 * float(first)
        penalised, products, reached = run.penalised(g).size, 0, False
        while products < MAX_PRODUCTS and not reached:
            operator.multiply(p.reshape(shape), Hp)
            curve = kernels.cg_curve(p, Hp.ravel(), alpha, penalised, *threads)
            products += 1
            # rounding of flat directions; on a GPU the step is then zero, without a second synchronisation
            if not run.is_on_device and not curve > 0.0:
                break
            new = kernels.cg_step(size / curve, p, Hp.ravel(), inverse, d, r, *threads)
            reached = not new > enough
            if not reached:
                kernels.cg_turn(new / size, r, inverse, p, *threads)
                size = new
        if not d.any():
            d = p  # the steepest descent
        run.n_cg += products
        run.passes += products
        del r, p, Hp, g, M, inverse  # a table of many columns each
        D = d.reshape(shape)[:, :K].astype(np.float64)
        D *= scale
        # A shift of all classes has only the curvature alpha, so rounding errors along it may be large.
        # Written as a product: sums of few columns are slow.
        share = np.zeros(K, like=D) + 1.0 / K
        shift = D @ share
        if alpha > 0.0:
            run.penalised(shift)[...] += run.penalised(G) @ share / alpha
        D -= shift[:, None]
        return D, products


def largest(A):
    """max |A|; one number, wherever A is."""
    return float(np.abs(A).max()) if A.size else 0.0
