"""Random arrays; the numbers are NumPy's, not those of the device's generators."""

import numpy as np

import cupy

from ._convert import new, upload


class Generator:
    """What ``default_rng`` gives."""

    def __init__(self, bit_generator):
        self._host = bit_generator

    def random(self, size=None, dtype=np.float64, out=None):
        return _into(out, self._host.random(size, dtype))

    def standard_normal(self, size=None, dtype=np.float64, out=None):
        return _into(out, self._host.standard_normal(size, dtype))

    def standard_exponential(self, size=None, dtype=np.float64, method="inv", out=None):
        return _into(out, self._host.standard_exponential(size, dtype, method))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64):
        return new(np.asarray(self._host.uniform(low, high, size)).astype(dtype))

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        return new(self._host.integers(low, high, size, dtype, endpoint))

    def exponential(self, scale=1.0, size=None):
        return new(self._host.exponential(scale, size))


def _into(out, value):
    if out is None:
        return new(value)
    out._array[...] = value
    return out


def default_rng(seed=None):
    return seed if isinstance(seed, Generator) else Generator(np.random.default_rng(seed))


class RandomState:
    """The older interface."""

    def __init__(self, seed=None, method=None):
        self.seed(seed)

    def seed(self, seed=None):
        self._host = np.random.RandomState(seed)

    def random_sample(self, size=None, dtype=float):
        return new(np.asarray(self._host.random_sample(size)).astype(dtype))

    def rand(self, *size, **kwarg):
        return self.random_sample(size, **kwarg)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=float):
        return new(np.asarray(self._host.uniform(low, high, size)).astype(dtype))

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float):
        return new(np.asarray(self._host.normal(loc, scale, size)).astype(dtype))

    def standard_normal(self, size=None, dtype=float):
        return self.normal(size=size, dtype=dtype)

    def randn(self, *size, **kwarg):
        return self.normal(size=size, **kwarg)

    def randint(self, low, high=None, size=None, dtype=int):
        return new(self._host.randint(low, high, size, dtype))

    def permutation(self, a):
        if isinstance(a, int):
            return new(self._host.permutation(a))
        return a[cupy.asarray(self._host.permutation(len(a)))]

    def shuffle(self, a):
        a[:] = self.permutation(a)

    def choice(self, a, size=None, replace=True, p=None):
        chances = None if p is None else upload(p)._array
        if isinstance(a, int):
            return new(self._host.choice(a, size, replace, chances))
        return a[cupy.asarray(self._host.choice(len(a), size, replace, chances))]


_state = RandomState(0)


def get_random_state():
    return _state


def seed(seed=None):
    _state.seed(seed)


def _global(name):
    def function(*args, **kwargs):
        return getattr(_state, name)(*args, **kwargs)

    function.__name__ = name
    return function


rand, randn, randint, uniform = map(_global, ("rand", "randn", "randint", "uniform"))
normal, standard_normal, permutation = map(_global, ("normal", "standard_normal", "permutation"))
shuffle, choice, random_sample = map(_global, ("shuffle", "choice", "random_sample"))


def random(size=None, dtype=float):
    return _state.random_sample(size, dtype)
