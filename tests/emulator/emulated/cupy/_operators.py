"""Operators of the emulated array, all through NumPy's ufuncs as in CuPy."""

import numpy as np

from . import _products


def _left_to(self, other):
    """Whether the other side answers, as sparse matrices do."""
    if hasattr(other, "__array_ufunc__"):
        return other.__array_ufunc__ is None
    return getattr(other, "__array_priority__", 0) > self.__array_priority__


def _binary(ufunc):
    def operator(self, other):
        return NotImplemented if _left_to(self, other) else ufunc(self, other)

    def reflected(self, other):
        return ufunc(other, self)

    def in_place(self, other):
        return ufunc(self, other, out=self)

    return operator, reflected, in_place


def _unary(ufunc):
    return lambda self: ufunc(self)


class Operators:
    __slots__ = ()

    __add__, __radd__, __iadd__ = _binary(np.add)
    __sub__, __rsub__, __isub__ = _binary(np.subtract)
    __mul__, __rmul__, __imul__ = _binary(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(np.floor_divide)
    __mod__, __rmod__, __imod__ = _binary(np.remainder)
    __pow__, __rpow__, __ipow__ = _binary(np.power)
    __and__, __rand__, __iand__ = _binary(np.bitwise_and)
    __or__, __ror__, __ior__ = _binary(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary(np.right_shift)
    __divmod__, __rdivmod__ = _binary(np.divmod)[:2]
    __eq__ = _binary(np.equal)[0]
    __ne__ = _binary(np.not_equal)[0]
    __lt__ = _binary(np.less)[0]
    __le__ = _binary(np.less_equal)[0]
    __gt__ = _binary(np.greater)[0]
    __ge__ = _binary(np.greater_equal)[0]
    __neg__ = _unary(np.negative)
    __pos__ = _unary(np.positive)
    __abs__ = _unary(np.absolute)
    __invert__ = _unary(np.invert)

    def __matmul__(self, other):
        return NotImplemented if _left_to(self, other) else _products.matmul(self, other)

    def __rmatmul__(self, other):
        return np.matmul(other, self)
