"""Factor graphs by the kernels of the CPU and by those of the GPU."""

from dataclasses import asdict

import numpy as np

from sparsekit._cython.factor_graph import _factor_graph as on_cpu
from sparsekit._factor_graph.solver.layout import GraphOptions
from sparsekit.gpu.factor_graph import _factor_graph as on_gpu


class Both:
    """The same graphs on both sides."""

    def __init__(self, cupy, graph, n):
        self.cupy, self.layout, self.n = cupy, graph._plan(), n
        self.cpu = on_cpu.States(self.layout.plan, n)
        self.gpu = on_gpu.States(on_gpu.Plan(*self.layout.plan_arguments), n)

    def set_scores(self, eta, add, off=None, off_add=None):
        flags = [np.zeros(a.shape, dtype=bool) if b is None else b for a, b in ((eta, off), (add, off_add))]
        given = (eta, add, *(flag.view(np.uint8) for flag in flags))
        self.cpu.set_scores(*given)
        self.gpu.set_scores(*map(self.cupy.asarray, given))

    def draw(self, seed):
        # of different sizes: some graphs are solved long before others
        rng = np.random.default_rng(seed)
        shape = self.n, self.layout.n_variables
        scale = np.array([0.3, 1.0, 4.0])[np.arange(self.n) % 3, None]
        add = rng.normal(size=(self.n, self.layout.n_additional))
        self.set_scores(rng.normal(size=shape) * scale, add * scale)
        return self

    def tie(self, seed, levels):
        """Scores of few values, with ties of every kind."""
        rng = np.random.default_rng(seed)
        shapes = (self.n, self.layout.n_variables), (self.n, self.layout.n_additional)
        self.set_scores(*(rng.integers(0, levels, shape) / 2.0 for shape in shapes))
        return self

    def solve(self, warm=False, **options):
        options = asdict(GraphOptions(**options))
        on_cpu.solve([self.cpu], options, warm, 1)
        on_gpu.solve([self.gpu], options, warm)
        return self

    def compare(self, atol=1e-9, passes=0):
        """Everything that a solve leaves behind.

        Where the end is a residual near rounding, there may be a Newton step more on one side: ``passes``.
        """
        cpu, gpu = self.cpu.report(), self.gpu.report()
        np.testing.assert_array_equal(gpu["status"].get(), cpu["status"])
        for name in ("n_iter", "n_newton"):
            np.testing.assert_allclose(gpu[name].get(), cpu[name], rtol=0, atol=passes, err_msg=name)
        for name in ("primal", "dual", "step_size"):
            np.testing.assert_allclose(gpu[name].get(), cpu[name], rtol=1e-3, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(self.gpu.marginals().get(), self.cpu.marginals(), rtol=0, atol=atol)
        np.testing.assert_allclose(self.gpu.additionals().get(), self.cpu.additionals(), rtol=0, atol=atol)
        for i in range(self.n):
            np.testing.assert_allclose(self.gpu.copies(i).get(), self.cpu.copies(i), rtol=0, atol=atol)
            np.testing.assert_allclose(self.gpu._part("l")[i].get(), self.cpu.duals(i), rtol=1e-7, atol=1e-7)
        return cpu

    def compare_derivatives(self, seed, atol=1e-8):
        rng = np.random.default_rng(seed)
        d = rng.normal(size=(self.n, self.layout.n_variables))
        e = rng.normal(size=(self.n, self.layout.n_additional))
        moved = self.gpu.jvp(self.cupy.asarray(d), self.cupy.asarray(e))
        np.testing.assert_allclose(moved.get(), self.cpu.jvp(d, e, 1), rtol=0, atol=atol)
        to_eta, to_add = self.cupy.asarray(d), self.cupy.zeros(e.shape)
        self.gpu.vjp(to_eta, to_add)
        e[:] = 0.0
        self.cpu.vjp(d, e, 1)
        np.testing.assert_allclose(to_eta.get(), d, rtol=0, atol=atol)
        np.testing.assert_allclose(to_add.get(), e, rtol=0, atol=atol)
