"""The variables that the last stage of OBA looks at, and the problem on their columns."""

import numpy as np

# variables up to which all are looked at
_ALL = 500
# part of its penalty that a zero variable's gradient must reach to enter
_NEAR = 0.8


class WorkingSet:
    """Which variables of a problem may move, as far as is known.

    Parameters
    ----------
    problem : Problem
        That of all variables.
    options : OBAOptions
    pulls : callable
        That of the run's kernels, of gradient and penalty.
    """

    def __init__(self, problem, options, pulls):
        self.problem, self.pulls = problem, pulls
        self.whole = options.working_set is False or not problem.restricts
        if options.working_set is None and problem.size <= _ALL:
            self.whole = True
        self.inside = self.chosen = self.part = None

    def pays(self, x, g, l1):
        """Take in what may move at x, with gradient g; whether a copy of these columns pays."""
        if self.whole:
            return False
        if self.part is None or self.misses(x, g, l1):
            self.inside = self._moving(x, g, l1) | (self.pulls(g, l1) >= _NEAR * l1)
            self.chosen = np.flatnonzero(self.inside)
            self.whole = not self.problem.restriction_pays(self.chosen)
            self.part = None  # it holds a copy of its columns, and goes before the next is made
            if not self.whole:
                self.part = self.problem.restrict(self.chosen)
        return not self.whole

    def misses(self, x, g, l1):
        """Whether a variable may move that is not in the set."""
        return not self.whole and bool((self._moving(x, g, l1) & ~self.inside).any())

    def enter(self, x):
        """The problem on the set at x, a point of all variables, and the set's variables."""
        self.problem.base = x
        return self.part, self.chosen

    def _moving(self, x, g, l1):
        return (x != 0) | (self.pulls(g, l1) > l1)
