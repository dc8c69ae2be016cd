"""Strategies for labels, sets of labels, numbers and weights of rows, as users have them, whole and wrong."""

import numpy as np
from fuzz_matrices import LAYOUTS, SEEDS, VALUES, as_layout, unaligned, values
from hypothesis import strategies as st

LABELS = {
    "int": lambda codes: codes,
    "str": lambda codes: np.array(["b", "a", "d", "c", "ee", "f"])[codes],
    "bool": lambda codes: codes > 0,
    "float": lambda codes: codes - 1.0,
    "object": lambda codes: np.array(["x", "yy", "z", "u", "v", "w"], dtype=object)[codes],
    "column": lambda codes: codes[:, None],
    "list": lambda codes: codes.tolist(),
    "int8": lambda codes: (codes - 2).astype(np.int8),
    "uint64": lambda codes: codes.astype(np.uint64) + np.uint64(2**63),
}


@st.composite
def labels(draw, n):
    """Labels of 1 to 5 classes, of which not all need occur."""
    rng, n_classes = np.random.default_rng(draw(SEEDS)), draw(st.sampled_from([2, 3, 5, 1]))
    return LABELS[draw(st.sampled_from(list(LABELS)))](rng.integers(0, n_classes, n))


@st.composite
def label_sets(draw, n):
    """Indicators, distributions and neither of them, dense and sparse, some rows without a label."""
    rng, K = np.random.default_rng(draw(SEEDS)), draw(st.sampled_from([3, 2, 5, 1]))
    kind = draw(st.sampled_from(["indicator", "one", "distribution", "wrong"]))
    Y = (rng.random((n, K)) < draw(st.sampled_from([0.4, 0.9, 0.05]))).astype(float)
    if kind == "one":
        Y = np.eye(K)[rng.integers(0, K, n)]
    elif kind == "distribution":
        Y = rng.dirichlet(np.full(K, 0.3), n)
    elif kind == "wrong":
        Y = Y * draw(st.sampled_from([-1.0, 0.5, 1e300, np.nan]))
    layout = draw(st.sampled_from(list(LAYOUTS)))
    return as_layout(Y, layout, draw(st.sampled_from([np.float64, np.int64, np.bool_, np.float32])))


TARGETS = {
    "float64": lambda y: y,
    "list": lambda y: y.tolist(),
    "column": lambda y: y[:, None],
    "float32": lambda y: np.clip(y, -3e38, 3e38).astype(np.float32),
    "strided": lambda y: np.repeat(y, 2)[::2],
    "unaligned": unaligned,
    "int": lambda y: np.sign(y).astype(int),
}


@st.composite
def numbers(draw, n, kinds=tuple(VALUES)):
    """Targets of a regression."""
    y = values(draw, (n, 1), kinds)[:, 0]
    return TARGETS[draw(st.sampled_from(list(TARGETS)))](y)


@st.composite
def weights(draw, n):
    """Weights of rows, among them such as are refused."""
    kind = draw(
        st.sampled_from(["none", "uniform", "some", "ratio", "number", "huge", "tiny", "zero", "wrong"])
    )
    rng = np.random.default_rng(draw(SEEDS))
    s = rng.uniform(0.1, 2.0, n)
    if kind == "some":
        s[rng.random(n) < 0.5] = 0.0
    elif kind == "ratio":
        s = 10.0 ** rng.integers(-300, 300, n)
    elif kind == "wrong" and n:
        s[-1] = draw(st.sampled_from([-1.0, np.nan, np.inf]))
    scale = {"huge": 1e300, "tiny": 1e-300, "zero": 0.0}.get(kind, 1.0)
    if kind == "uniform" and draw(st.booleans()):
        return unaligned(s)
    return None if kind == "none" else 2.5 if kind == "number" else s * scale
