"""``ElementwiseKernel`` and ``ReductionKernel``: their expressions in a C++ loop over contiguous copies."""

import numpy as np

from ._convert import host, is_array, is_scalar, unwritten
from ._launch import RawModule

_C_NAMES = {"f": "float", "d": "double", "i": "int", "l": "long long", "?": "bool", "B": "unsigned char"}


def _parameters(text):
    """[(type, name), ...]; a type of one letter is that of the arrays given for it."""
    found = [part.split() for part in text.split(",")]
    if any(len(part) != 2 for part in found):
        raise NotImplementedError(f"the emulation's parameters are a type and a name, not {text!r}")
    return found


class _Loop:
    def __init__(self, in_params, out_params, preamble, name):
        self.inputs, self.outputs = _parameters(in_params), _parameters(out_params)
        self.preamble, self.name = preamble, name
        self.nin, self.nout = len(self.inputs), len(self.outputs)

    def _split(self, args, out=None):
        """Inputs and given outputs; TypeError where CuPy has one."""
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(f"Wrong number of arguments for '{self.name}'")
        for x in args:
            if not is_array(x) and not is_scalar(x):
                raise TypeError(f"Unsupported type {type(x)}")
        outs = args[self.nin :] if out is None else (out,)
        return args[: self.nin], [host(x, "out") for x in outs]

    def _types(self, inputs, outs):
        """The dtype of each parameter."""
        letters = {}
        for (kind, name), x in zip(self.inputs + self.outputs, [*inputs, *outs]):
            if is_scalar(x):
                continue
            wanted = letters.setdefault(kind, x.dtype) if len(kind) == 1 else np.dtype(kind)
            if x.dtype != wanted:
                raise TypeError(f"Type is mismatched. {name} {x.dtype} {wanted}")
        return [letters[k] if len(k) == 1 else np.dtype(k) for k, _ in self.inputs + self.outputs], letters

    def _run(self, types, letters, inputs, shape, outs, body, sizes):
        """Fill new arrays of ``shape``, or copies of ``outs``, by the loop ``body``."""
        args, text = [], []
        for dtype, x in zip(types, [*inputs, *outs, *[None] * (self.nout - len(outs))]):
            made = unwritten(shape if len(args) >= self.nin else x.shape, dtype)
            if x is not None:
                made._array[...] = x
            args.append(made)
            const = "const " if len(args) <= self.nin else ""
            text.append(f"{const}{_C_NAMES[dtype.char]}* _{len(args) - 1}")
        names = "".join(f"typedef {_C_NAMES[dtype.char]} {letter};\n" for letter, dtype in letters.items())
        code = f"{names}{self.preamble}\n" + f'extern "C" __global__ void {self.name}('
        code += ", ".join([*text, *(f"long long {size}" for size in sizes)]) + ") {" + body + "}"
        made = args[self.nin :]
        if made[0].size:
            kernel = RawModule(code=code).get_function(self.name)
            kernel((1,), (1,), (*args, *sizes.values()))
        for given, result in zip(outs, made):
            given[...] = result._array
        return made

    def _declared(self, types, first, last, entry, const):
        return "".join(
            f"{const}{_C_NAMES[types[i].char]}& {(self.inputs + self.outputs)[i][1]} = _{i}[{entry}]; "
            for i in range(first, last)
        )


def _answer(args, nin, made):
    results = args[nin:] or tuple(made)
    return results[0] if len(results) == 1 else tuple(results)


class ElementwiseKernel(_Loop):
    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble=""):
        super().__init__(in_params, out_params, preamble, name)
        self.operation = operation

    def __call__(self, *args):
        inputs, outs = self._split(args)
        types, letters = self._types(inputs, outs)
        plain = [x._array if is_array(x) else np.asarray(x, t) for x, t in zip(inputs, types)]
        shape = np.broadcast_shapes(*(x.shape for x in plain))
        if any(x.shape != shape for x in outs):
            raise ValueError("Out shape is mismatched")
        plain = [np.broadcast_to(x, shape) for x in plain]
        body = "for (long long i = 0; i < _n; i++) { "
        body += self._declared(types, 0, self.nin, "i", "const ")
        body += self._declared(types, self.nin, self.nin + self.nout, "i", "")
        body += self.operation + "; }"
        size = int(np.prod(shape))
        made = self._run(types, letters, plain, shape, outs, body, {"_n": size})
        return _answer(args, self.nin, made)


class ReductionKernel(_Loop):
    def __init__(
        self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="reduce_kernel",
        reduce_type=None,
    ):  # fmt: skip
        super().__init__(in_params, out_params, "", name)
        self.expressions, self.reduce_type = (map_expr, reduce_expr, post_map_expr, identity), reduce_type

    def __call__(self, *args, out=None, axis=None):
        inputs, outs = self._split(args, out)
        types, letters = self._types(inputs, outs)
        plain = [x._array if is_array(x) else np.asarray(x, t) for x, t in zip(inputs, types)]
        whole = np.broadcast_shapes(*(x.shape for x in plain))
        axis = range(len(whole))[axis]
        shape = whole[:axis] + whole[axis + 1 :]
        if any(x.shape != shape for x in outs):
            raise ValueError("Out shape is mismatched")
        plain = [np.moveaxis(np.broadcast_to(x, whole), axis, -1) for x in plain]
        mapped, reduced, end, identity = self.expressions
        kind = self.reduce_type or _C_NAMES[types[self.nin].char]
        body = f"for (long long _j = 0; _j < _outer; _j++) {{ {kind} a = {identity}; "
        body += "for (long long _k = 0; _k < _inner; _k++) { "
        body += self._declared(types, 0, self.nin, "_j * _inner + _k", "const ")
        body += f"const {kind} b = {mapped}; a = {reduced}; }} "
        body += self._declared(types, self.nin, self.nin + self.nout, "_j", "") + end + "; }"
        sizes = {"_outer": int(np.prod(shape)), "_inner": whole[axis]}
        made = self._run(types, letters, plain, shape, outs, body, sizes)
        return _answer((*args, *(() if out is None else (out,))), self.nin, made)
