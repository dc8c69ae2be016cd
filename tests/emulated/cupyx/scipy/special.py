"""Special functions, elementwise; ``logsumexp`` and ``softmax`` along an axis."""

import cupy
import numpy as np
import scipy.special
from cupy._convert import host, new
from cupy._ufunc import from_function, ufunc

_NAMES = """
beta betainc betaln binom boxcox boxcox1p cosm1 digamma entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2
expi expit expm1 expn exprel gamma gammainc gammaincc gammaln huber inv_boxcox inv_boxcox1p kl_div
log1p log_expit log_ndtr loggamma logit ndtr ndtri poch pseudo_huber psi rel_entr rgamma xlog1py xlogy zeta
zetac
"""

for _name in _NAMES.split():
    _function = getattr(scipy.special, _name)
    globals()[_name] = (
        ufunc(_function, _name) if isinstance(_function, np.ufunc) else from_function(_function, _name, 1)
    )


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """Waits for the device where the largest value is one number, as CuPy does."""
    host(a)
    if axis is None or a.ndim == 1:
        bool(cupy.isfinite(a.max()))
    weights = None if b is None else host(b, "b")
    made = scipy.special.logsumexp(a._array, axis, weights, keepdims, return_sign)
    return tuple(map(new, made)) if return_sign else new(made)


def softmax(x, axis=None):
    return new(scipy.special.softmax(host(x, "x"), axis))


def log_softmax(x, axis=None):
    return new(scipy.special.log_softmax(host(x, "x"), axis))
