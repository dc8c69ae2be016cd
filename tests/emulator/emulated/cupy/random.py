"""Random arrays; the numbers are NumPy's, not those of the device's generators."""

import numpy as _np

import cupy as _cupy

from . import _convert


class Generator:
    """What ``default_rng`` gives."""

    def __init__(self, bit_generator):
        self._host = bit_generator

    def random(self, size=None, dtype=_np.float64, out=None):
        return _into(out, self._host.random(size, dtype))

    def standard_normal(self, size=None, dtype=_np.float64, out=None):
        return _into(out, self._host.standard_normal(size, dtype))

    def standard_exponential(self, size=None, dtype=_np.float64, method="inv", out=None):
        return _into(out, self._host.standard_exponential(size, dtype, method))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=_np.float64):
        return _convert.new(_np.asarray(self._host.uniform(low, high, size)).astype(dtype))

    def integers(self, low, high=None, size=None, dtype=_np.int64, endpoint=False):
        return _convert.new(self._host.integers(low, high, size, dtype, endpoint))

    def exponential(self, scale=1.0, size=None):
        return _convert.new(self._host.exponential(scale, size))


def _into(out, value):
    if out is None:
        return _convert.new(value)
    out._array[...] = value
    return out


def default_rng(seed=None):
    return seed if isinstance(seed, Generator) else Generator(_np.random.default_rng(seed))


class RandomState:
    """The older interface."""

    def __init__(self, seed=None, method=None):
        self.seed(seed)

    def seed(self, seed=None):
        self._host = _np.random.RandomState(seed)

    def random_sample(self, size=None, dtype=float):
        return _convert.new(_np.asarray(self._host.random_sample(size)).astype(dtype))

    def rand(self, *size, **kwarg):
        return self.random_sample(size, **kwarg)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=float):
        return _convert.new(_np.asarray(self._host.uniform(low, high, size)).astype(dtype))

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float):
        return _convert.new(_np.asarray(self._host.normal(loc, scale, size)).astype(dtype))

    def standard_normal(self, size=None, dtype=float):
        return self.normal(size=size, dtype=dtype)

    def randn(self, *size, **kwarg):
        return self.normal(size=size, **kwarg)

    def randint(self, low, high=None, size=None, dtype=int):
        return _convert.new(self._host.randint(low, high, size, dtype))

    def permutation(self, a):
        if isinstance(a, int):
            return _convert.new(self._host.permutation(a))
        return a[_cupy.asarray(self._host.permutation(len(a)))]

    def shuffle(self, a):
        a[:] = self.permutation(a)

    def choice(self, a, size=None, replace=True, p=None):
        chances = None if p is None else _convert.upload(p)._array
        if isinstance(a, int):
            return _convert.new(self._host.choice(a, size, replace, chances))
        return a[_cupy.asarray(self._host.choice(len(a), size, replace, chances))]


_state = RandomState(0)


def get_random_state():
    return _state


def seed(seed=None):
    _state.seed(seed)


def rand(*size, **kwarg):
    return _state.rand(*size, **kwarg)


def randn(*size, **kwarg):
    return _state.randn(*size, **kwarg)


def randint(low, high=None, size=None, dtype="l"):
    return _state.randint(low, high, size, dtype)


def uniform(low=0.0, high=1.0, size=None, dtype=float):
    return _state.uniform(low, high, size, dtype)


def normal(loc=0.0, scale=1.0, size=None, dtype=float):
    return _state.normal(loc, scale, size, dtype)


def standard_normal(size=None, dtype=float):
    return _state.standard_normal(size, dtype)


def permutation(a):
    return _state.permutation(a)


def shuffle(a):
    _state.shuffle(a)


def choice(a, size=None, replace=True, p=None):
    return _state.choice(a, size, replace, p)


def random_sample(size=None, dtype=float):
    return _state.random_sample(size, dtype)


def random(size=None, dtype=float):
    return _state.random_sample(size, dtype)
