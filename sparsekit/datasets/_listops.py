"""Bracketed expressions of the ListOps data set, and the valencies of their operators."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from .._messages import check_whole, plain
from .._typing import RandomState

# 0 stands for padding; the digit d is 1 + d
LISTOPS_TOKENS = ("_", *"0123456789", "[MAX", "[MIN", "[MED", "[SM", "]")
FIRST_OPERATOR = LISTOPS_TOKENS.index("[MAX")
END = LISTOPS_TOKENS.index("]")
APPLY = (max, min, lambda values: int(np.median(values)), lambda values: sum(values) % 10)


def make_listops(
    n_samples: int,
    *,
    max_depth: int = 20,
    max_arguments: int = 5,
    max_length: int = 100,
    random_state: RandomState = None,
) -> Bunch:
    """Bracketed expressions, "[MAX 2 9 [MIN 4 7 ] 0 ]", with the number of arguments of every operator.

    The grammar of ListOps [1]_, with the valencies that [2]_ tags. An expression is an operator, 2 to
    ``max_arguments`` arguments and a closing bracket. The operators MAX, MIN, MED (the median rounded down)
    and SM (the sum modulo 10) are equally likely, and so are the numbers of arguments. An argument is an
    expression with probability 1/4, a digit otherwise. Expressions of more than ``max_length`` tokens are
    drawn again.

    Parameters
    ----------
    n_samples : int
        Number of expressions.
    max_depth : int, default=20
        Largest number of operators nested into each other, at least 1.
    max_arguments : int, default=5
        Largest number of arguments of an operator, at least 2.
    max_length : int, default=100
        Largest number of tokens, at least 4, the length of "[MAX 1 2 ]".
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``texts``, a list of n_samples strings. ``results`` (n_samples,) of int64, their values. ``lengths``
        (n_samples,), their numbers of tokens. And arrays (n_samples, longest) of int64:

        - ``inputs``: tokens as indices in ``tokens``, 0 behind the end;
        - ``valencies``: the number of arguments at an operator, -1 at other tokens and behind the end;
        - ``heads``: the dependency tree of the expression. An operator is the head of its arguments and of
          its closing bracket; the head of a nested expression is its operator. Index of the head; the first
          token, the root, has its own index, as `sparsekit.DepTree` has root arcs on the diagonal. -1 behind
          the end.

        And ``tokens``, the vocabulary.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Notes
    -----
    An operator's valency is the number of its modifiers less one, the bracket: 3 to ``max_arguments`` + 1
    modifiers in the tree of ``heads``. The depth is counted as in the original generator, whose largest is 20
    too. There a sample may also be a single digit, which carries no tag and is not drawn here.

    References
    ----------
    .. [1] N. Nangia, S. R. Bowman, "ListOps: A Diagnostic Dataset for Latent Tree Learning", NAACL 2018
       Student Research Workshop.
    .. [2] C. Corro, I. Titov, "Learning Latent Trees with Stochastic Perturbations and Differentiable Dynamic
       Programming", ACL 2019.

    Examples
    --------
    >>> from sparsekit.datasets import make_listops
    >>> data = make_listops(1, max_length=12, random_state=4)
    >>> data.texts[0], int(data.results[0])
    ('[MED 1 8 7 [SM 4 6 4 7 9 ] ]', 4)
    >>> data.valencies[0]
    array([ 4, -1, -1, -1,  5, -1, -1, -1, -1, -1, -1, -1])
    >>> data.heads[0]
    array([0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 0])
    """
    n_samples = check_whole(n_samples, "n_samples", 0)
    for name, size, least in (
        ("max_depth", max_depth, 1),
        ("max_arguments", max_arguments, 2),
        ("max_length", max_length, 4),
    ):
        check_whole(size, name, least)
    rng = check_random_state(plain(random_state))
    found: list[tuple] = []
    while len(found) < n_samples:
        drawn = _draw(rng, max_depth, max_arguments, max_length)
        if drawn is not None:
            found.append(drawn)
    lengths = np.array([len(tokens) for tokens, _, _ in found], dtype=np.int64)
    shape = n_samples, int(lengths.max(initial=0))
    inputs = np.zeros(shape, dtype=np.int64)
    valencies, heads = np.full(shape, -1, dtype=np.int64), np.full(shape, -1, dtype=np.int64)
    results = np.zeros(n_samples, dtype=np.int64)
    texts = []
    for i, (tokens, head, value) in enumerate(found):
        n, results[i] = len(tokens), value
        inputs[i, :n], heads[i, :n] = tokens, head
        operators = np.flatnonzero((inputs[i, :n] >= FIRST_OPERATOR) & (inputs[i, :n] < END))
        # the root's arc to itself and the arc of the bracket are no arguments
        modifiers = np.bincount(head, minlength=n)[operators]
        valencies[i, operators] = modifiers - 1 - (operators == 0)
        texts.append(" ".join(LISTOPS_TOKENS[k] for k in tokens))
    return Bunch(
        texts=texts, results=results, inputs=inputs, lengths=lengths, valencies=valencies, heads=heads,
        tokens=LISTOPS_TOKENS,
    )  # fmt: skip


def _draw(rng, max_depth, max_arguments, max_length):
    """Tokens, heads and value of an expression; None where it gets too long."""
    tokens: list[int] = []
    heads: list[int] = []
    open_ = []  # per open operator: its index, remaining arguments, values so far
    least = 0  # smallest number of remaining tokens: one for each argument and bracket

    def start(head):
        nonlocal least
        n_arguments = rng.randint(2, max_arguments + 1)
        open_.append([len(tokens), n_arguments, []])
        heads.append(len(tokens) if head is None else head)
        tokens.append(FIRST_OPERATOR + rng.randint(len(APPLY)))
        least += n_arguments + 1

    start(None)
    while len(tokens) + least <= max_length:
        position, to_come, values = open_[-1]
        least -= 1
        if to_come:
            open_[-1][1] -= 1
            if len(open_) < max_depth and rng.uniform() < 0.25:
                start(position)
            else:
                digit = rng.randint(10)
                tokens.append(1 + digit)
                heads.append(position)
                values.append(digit)
        else:
            tokens.append(END)
            heads.append(position)
            value = APPLY[tokens[position] - FIRST_OPERATOR](values)
            open_.pop()
            if not open_:
                return tokens, heads, value
            open_[-1][2].append(value)
    return None
