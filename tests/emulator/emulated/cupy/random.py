"""Random arrays; the numbers are NumPy's, not those of the device's generators."""

import numpy as _np

from . import _convert


class Generator:
    """What ``default_rng`` gives."""

    def __init__(self, bit_generator):
        self._host = bit_generator

    def standard_normal(self, size=None, dtype=_np.float64, out=None):
        if out is not None:
            raise NotImplementedError("the emulation makes new random arrays only")
        return _convert.new(self._host.standard_normal(size, dtype))


def default_rng(seed=None):
    return Generator(_np.random.default_rng(seed))


_state = _np.random.RandomState(0)


def seed(seed=None):
    _state.seed(seed)


def random(size=None, dtype=float):
    return _convert.new(_np.asarray(_state.random_sample(size)).astype(dtype))
