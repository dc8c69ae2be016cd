"""Functions of each entry, which CuPy has as kernels."""

import scipy.special
from cupy._convert import host, new


def _elementwise(name):
    function = getattr(scipy.special, name)

    def call(x):
        host(x)
        return new(function(x._array))

    return call


entr, expit, logit = map(_elementwise, ("entr", "expit", "logit"))
log_ndtr, ndtr, ndtri = map(_elementwise, ("log_ndtr", "ndtr", "ndtri"))
