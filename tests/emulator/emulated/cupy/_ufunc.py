"""Ufuncs: NumPy's own on device arrays and scalars, with the arguments that CuPy's take."""

import numpy as np

from ._convert import host, is_array, new, operand, unwritten

# element types that CuPy has atomics for
_SCATTERED = {
    "add": "iIlLqQefd",
    "subtract": "iI",
    "maximum": "iIlLqQfd",
    "minimum": "iIlLqQfd",
    "bitwise_and": "iIlLqQ",
    "bitwise_or": "iIlLqQ",
    "bitwise_xor": "iIlLqQ",
}

_SUPPORTED = frozenset("?bBhHiIlLqQefdFD->")


class ufunc:
    """One elementwise function of the emulated device."""

    def __init__(self, numpy_ufunc, name):
        self._ufunc = numpy_ufunc
        self.__name__ = name
        self.name = f"cupy_{name}"
        self.nin, self.nout = numpy_ufunc.nin, numpy_ufunc.nout
        self.nargs = self.nin + self.nout
        self.types = [loop for loop in numpy_ufunc.types if _SUPPORTED.issuperset(loop)]
        self.__doc__ = f"As numpy.{name}."

    def __repr__(self):
        return f"<ufunc '{self.name}'>"

    def __call__(self, *args, **kwargs):
        out = kwargs.pop("out", None)
        where = kwargs.pop("where", True)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", "same_kind")
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for '{self.name}'. It must be either {self.nin} or {self.nargs} "
                f"(with outputs), but given {len(args)}."
            )
        inputs = [operand(x) for x in args[: self.nin]]
        if len(args) == self.nargs:
            if out is not None:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            out = args[self.nin :]
        if out is not None and not isinstance(out, tuple):
            out = (out,)
        with np.errstate(all="ignore"):
            return self._compute(inputs, out, where, dtype, casting)

    def _compute(self, inputs, out, where, dtype, casting):
        if out is None and where is not True:
            # what the mask leaves out of a new array stays unwritten
            plain = self._ufunc(*inputs, dtype=dtype, casting=casting)
            made = unwritten(np.broadcast_shapes(np.shape(plain), host(where).shape), plain.dtype)
            out = (made,)
        if out is None:
            results = self._ufunc(*inputs, dtype=dtype, casting=casting)
            return tuple(map(new, results)) if self.nout > 1 else new(results)
        targets = []
        for given in out:
            if not is_array(given):
                raise TypeError(f"Output arguments type must be cupy.ndarray. Actual: {type(given)}")
            targets.append(given._array)
        shape = np.broadcast_shapes(*(np.shape(x) for x in inputs))
        if any(np.broadcast_shapes(shape, t.shape) != t.shape for t in targets):
            raise ValueError(f"Output shape mismatch: {targets[0].shape} for a result of {shape}")
        mask = True if where is True else host(where, "where")
        self._ufunc(*inputs, out=tuple(targets), where=mask, dtype=dtype, casting=casting)
        return out if self.nout > 1 else out[0]

    def at(self, a, indices, b=None):
        if self.__name__ not in _SCATTERED:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if a.dtype.char not in _SCATTERED[self.__name__]:
            raise TypeError(f"cupy.{self.__name__}.at supports no data of dtype {a.dtype}")
        a._scatter(self._ufunc, indices, b)


# those of NumPy that CuPy has under the same name
_NAMES = """
abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1
fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert
isfinite isinf isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2
logical_and logical_not logical_or logical_xor maximum minimum mod modf multiply negative nextafter not_equal
positive pow power rad2deg radians reciprocal remainder right_shift rint sign signbit sin sinh sqrt square
subtract tan tanh true_divide trunc
"""

UFUNCS = {name: ufunc(getattr(np, name), name) for name in _NAMES.split()}
