"""Special functions, elementwise; ``logsumexp`` and ``softmax`` along an axis."""

import cupy as _cupy
import scipy.special as _special
from cupy import _convert, _ufunc

_NAMES = """
beta betainc betaln binom boxcox boxcox1p cosm1 digamma entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2
expi expit expm1 expn exprel gamma gammainc gammaincc gammaln huber inv_boxcox inv_boxcox1p kl_div
log1p log_expit log_ndtr loggamma logit ndtr ndtri poch pseudo_huber psi rel_entr rgamma xlog1py xlogy zetac
"""

for _name in _NAMES.split():
    globals()[_name] = _ufunc.ufunc(getattr(_special, _name), _name)


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """Waits for the device where the largest value is one number, as CuPy does."""
    _convert.host(a)
    if axis is None or a.ndim == 1:
        bool(_cupy.isfinite(a.max()))
    weights = None if b is None else _convert.host(b, "b")
    made = _special.logsumexp(a._array, axis, weights, keepdims, return_sign)
    return tuple(map(_convert.new, made)) if return_sign else _convert.new(made)


def softmax(x, axis=None):
    return _convert.new(_special.softmax(_convert.host(x, "x"), axis))


def log_softmax(x, axis=None):
    return _convert.new(_special.log_softmax(_convert.host(x, "x"), axis))
