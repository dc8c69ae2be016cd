"""Steps of Newton's method for Fenchel-Young losses: the alphas they are for, and their directions."""

import numpy as np

# steps of conjugate gradients: few as long as models promise too much
_CG_FEW, _CG_MOST = 30, 250
# products that a step by conjugate gradients is taken to need at first, and how many times as many as the
# last one; what did not get there in time needs more
_EXPECTED, _MORE, _MANY = 20, 1.5, 4.0
# part of the promised decrease above which models may be solved better
_KEPT_HIGH = 0.9
# first alpha of the stages in units of the loss's curvature at zero
_FIRST = 0.01
# factor between the alphas of two stages, at least and at first; a stage of at most _SHORT steps squares it,
# one of more than _LONG divides it by the first, and none has more than _LONGEST
_LEAST_FALL, _FALL = 2.0, 3.0
_SHORT, _LONG, _LONGEST = 2, 5, 30
# steps of a stage that do not get near where systems are too large for a factor: others would take as long
_INEXACT = 8
# relative duality gap at the last alpha from which there is no need for others
_HALF = 0.5
# part of the first alpha below which there is no difference to 0
_NEGLIGIBLE = 1e-12


class Stages:
    """The alphas on the way to the last one: after a stage of few steps the next is farther away.

    Parameters
    ----------
    last, first : float
        There is one stage if ``first`` is not larger.
    """

    def __init__(self, last, first):
        self.last, self.alpha, self.fall, self.begin = last, max(last, first), _FALL, 0
        self.least = max(_LEAST_FALL * last, _NEGLIGIBLE * first)
        self._settle()

    @classmethod
    def of(cls, run, point):
        """Stages from where the point is near a solution, or else where steps are good anyway."""
        if run.loss.transform != "sparsemax":
            return cls(run.alpha, run.alpha)
        f = run.objective(point, run.alpha)[0]
        if f - run.bound <= _HALF * f:
            return cls(run.alpha, run.alpha)
        part, slope = run.penalised(point.T), run.penalised(point.gradient)
        size, length = run.dots((slope, slope), (part, part))
        if length > 0.0:
            alpha = (size / length) ** 0.5  # its gap is the smallest there
            if run.is_near(point, alpha, 1.0):
                return cls(run.alpha, alpha / _FALL)
        return cls(run.alpha, _FIRST * run.loss.scale())

    def at(self, run, point, exact):
        """The alpha of the next step from the point; ``exact``: a factor of the last system is possible."""
        while self.alpha > self.last:
            steps, near = run.nit - self.begin, run.is_near(point, self.alpha)
            if not near and not exact and steps > _INEXACT:
                self.alpha = self.last
                break
            if steps <= _LONGEST and not near:
                break
            if steps <= _SHORT:
                self.fall *= self.fall
            elif steps > _LONG:
                self.fall = max(self.fall / _FALL, _LEAST_FALL)
            self.begin, self.alpha = run.nit, max(self.last, self.alpha / self.fall)
            self._settle()
        return self.alpha

    def _settle(self):
        if self.alpha < self.least:
            self.alpha = self.last


class Directions:
    """Newton directions, by a factor where that pays, else by conjugate gradients.

    Attributes
    ----------
    promised : float
        Decrease of the model by the last direction.
    exact : bool
        Whether its system is small enough for a factor, even if products are cheaper.
    """

    def __init__(self, run):
        self.run, self.promised, self.exact = run, 0.0, True
        self.most, self.expected = _CG_FEW, _EXPECTED

    def at(self, Z, G, alpha, forcing):
        """d with (H + alpha) d = -G, or to a relative residual of ``forcing``; H at scores Z."""
        run = self.run
        D = run.loss.newton_step(Z, G, alpha, run.free, self.expected)
        self.exact = run.loss.factor_is_possible()
        if D is None:
            D, products, reached = self.conjugate_gradients(G, run.loss.operator(Z), alpha, forcing)
            self.expected = max(_EXPECTED, (_MORE if reached else _MANY) * products)
            return D
        run.passes += 1
        self.promised = -0.5 * run.dots((G, D))[0]
        return D

    def note(self, decrease):
        """Take what the objective fell by the step."""
        good = decrease > _KEPT_HIGH * self.promised > 0.0
        self.most = min(_CG_MOST, 2 * self.most) if good else _CG_FEW

    def conjugate_gradients(self, G, operator, alpha, forcing):
        """The direction, its number of products, and whether it is as good as asked for.

        The diagonal preconditions. All vectors are float32 multiples of G's size; outer steps mend what that
        loses.
        """
        run = self.run
        K, scale, threads, kernels = G.shape[1], largest(G), run.loss.threads, run.kernels
        shape = operator.shape
        g = np.zeros(shape, dtype=np.float32, like=G)
        g[:, :K] = G / scale
        M = operator.diag
        run.penalised(M)[...] += alpha
        np.maximum(M, 1e-12 * (largest(M) or 1.0), out=M)
        inverse = np.divide(1.0, M, out=M).ravel()
        r, d, p = -g.ravel(), np.zeros_like(g.ravel()), np.zeros_like(g.ravel())
        Hp = np.empty(shape, dtype=np.float32, like=G)
        kernels.cg_turn(0.0, r, inverse, p, *threads)
        size = first = kernels.dot(r, p, *threads)
        enough = forcing**2 * float(first)
        penalised, products, reached = run.penalised(g).size, 0, False
        while products < self.most and not reached:
            operator.product(p.reshape(shape), Hp)
            curve = kernels.cg_curve(p, Hp.ravel(), alpha, penalised, *threads)
            products += 1
            # rounding of flat directions; a GPU's step goes nowhere then, and is not waited for twice
            if not run.device and not curve > 0.0:
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
        left, slope = run.dots((r, d), (g, d))
        self.promised = 0.5 * (left - slope) * scale * scale
        del r, p, Hp, g, M, inverse  # a table of many columns each
        D = d.reshape(shape)[:, :K].astype(np.float64)
        D *= scale
        # a shift of all classes has no curvature but alpha: what rounding makes of it may be large
        # (sums of a few columns are slow, a product is not)
        share = np.zeros(K, like=D) + 1.0 / K
        shift = D @ share
        if alpha > 0.0:
            run.penalised(shift)[...] += run.penalised(G) @ share / alpha
        D -= shift[:, None]
        return D, products, reached


def largest(A):
    """max |A|; one number, wherever A is."""
    return float(np.abs(A).max()) if A.size else 0.0
