"""Operators of `sparsekit.torch.FactorGraphLayer`, and their derivatives (see `operators`).

An operator takes tensors, numbers and strings. A key identifies a layer, in the process that made it. A
*ticket* identifies a solve's data for derivatives: answers, active sets, Jacobians. It is a tensor with a
number; the solution lives as long as autograd saves the ticket. If a copy of the ticket outlives it, or the
scores differ, the graphs are solved again. Only the speed of derivatives depends on tickets.
"""

import itertools
import uuid
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from .._factor_graph.graphs.solution import BatchSolution
from .eager import differentiable, is_plain, operator
from .factor_graph import arrays, device_of, tensor_like
from .operators import empty_like, stacked

_LAYERS: WeakValueDictionary[str, Any] = WeakValueDictionary()
_TICKETS: WeakValueDictionary[int, Any] = WeakValueDictionary()
_numbers = itertools.count()


def register(layer):
    """A key by which operators find a layer."""
    # of no other process either: an exported program must not find another graph
    key = uuid.uuid4().hex
    _LAYERS[key] = layer
    return key


def _layer(key):
    found = _LAYERS.get(key)
    if found is None:
        raise RuntimeError(
            "the FactorGraphLayer is not in this process any more. Keep it alive as long as it is used, and "
            "run programs that torch.export made of it in the process that exported them"
        )
    return found


class _Ticket(np.ndarray):
    """An array that holds its number, and keeps a solution, and the layer that its derivatives ask for."""

    layer: Any = None
    kept: tuple[BatchSolution, Tensor, Tensor] | None = None


def _solved(scores, additional, layer):
    device = device_of(scores, layer.graph)
    return layer._solve(scores.to(device), additional.to(device))


def _solution(scores, additional, ticket, key):
    kept = getattr(_TICKETS.get(int(ticket)), "kept", None)
    if kept is not None:
        solution, *given = kept
        if all(
            ours is theirs or (ours.shape == theirs.shape and torch.equal(ours, theirs))
            for ours, theirs in zip(given, (scores, additional))
        ):
            return solution
    return _solved(scores, additional, _layer(key))


def _own_scores(n: int, key: str, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The graph's own additional scores, (n,)."""
    return torch.as_tensor(_layer(key).graph.additional_scores, dtype=dtype, device=device).clone()


def _empty_scores(n: int, key: str, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.empty(n, dtype=dtype, device=device)


own_scores = operator("factor_graph_scores", _own_scores, _empty_scores)


def _solve(scores: Tensor, additional: Tensor, key: str) -> tuple[Tensor, Tensor]:
    """Marginals (B, n_variables) of scores (B, n_variables) and (B, n_additional); and the ticket."""
    layer = _layer(key)
    solution = _solved(scores, additional, layer)
    number = next(_numbers)
    ticket = np.array([number]).view(_Ticket)
    ticket.layer = layer  # a loss may be all that is left of a function that made one
    ticket.kept = (solution, scores.detach(), additional.detach())
    _TICKETS[number] = ticket
    where = scores.to(device_of(scores, layer.graph))
    return tensor_like(solution.x.copy(), where).to(scores.device), torch.from_numpy(ticket)


def _empty_solution(scores: Tensor, additional: Tensor, key: str) -> tuple[Tensor, Tensor]:
    return empty_like(scores), torch.empty(1, dtype=torch.int64, device="cpu")


solve = operator("factor_graph_solve", _solve, _empty_solution)


def _stacked(parts):
    return torch.stack(parts) if len(parts) > 1 else parts[0].unsqueeze(0)


def _vjp(
    direction: Tensor, scores: Tensor, additional: Tensor, ticket: Tensor, key: str
) -> tuple[Tensor, Tensor]:
    """Gradients of both scores, for R directions (R, B, n_variables)."""
    solution = _solution(scores, additional, ticket, key)
    moved = direction.to(device_of(scores, _layer(key).graph))
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    for one in moved:
        with arrays(one) as (d,):
            got = solution.vjp(d, n_jobs=torch.get_num_threads())
            found[0].append(tensor_like(got.scores, one))
            found[1].append(tensor_like(got.additional_scores, one))
    if not len(direction):
        return torch.empty_like(direction), direction.new_empty(0, *additional.shape)
    to_scores, to_additional = map(_stacked, found)
    return to_scores.to(direction.device), to_additional.to(direction.device)


def _empty_gradients(
    direction: Tensor, scores: Tensor, additional: Tensor, ticket: Tensor, key: str
) -> tuple[Tensor, Tensor]:
    return empty_like(direction), direction.new_empty((direction.shape[0], *additional.shape))


vjp = operator("factor_graph_vjp", _vjp, _empty_gradients)


def _jvp(
    d_scores: Tensor, d_additional: Tensor, scores: Tensor, additional: Tensor, ticket: Tensor, key: str
) -> Tensor:
    """How the marginals move, (R, B, n_variables), for R directions of both scores."""
    solution = _solution(scores, additional, ticket, key)
    device = device_of(scores, _layer(key).graph)
    found = []
    for one, other in zip(d_scores.to(device), d_additional.to(device)):
        with arrays(one, other) as directions:
            found.append(tensor_like(solution.jvp(*directions, n_jobs=torch.get_num_threads()), one))
    return _stacked(found).to(d_scores.device) if found else torch.empty_like(d_scores)


jvp = operator("factor_graph_jvp", _jvp, empty_like)


# vmap: more graphs in the batch; where they are the same graphs for all, more directions


def _batch_solve(info, dims, scores, additional, key):
    scores, additional = stacked(info, dims, scores, additional)
    marginals, ticket = solve(scores.flatten(0, 1), additional.flatten(0, 1), key)
    return (marginals.reshape(scores.shape), ticket), (0, None)


def _directions(info, dims, directions, problem, key, operator):
    """An operator of directions (R, B, ...) of a problem (scores, additional scores, ticket)."""
    directions = stacked(info, dims, *directions)  # (V, R, B, ...)
    scores, additional, ticket = problem
    same = dims[len(directions) : len(directions) + 2] == (None, None)
    if same:
        shape, merged = directions[0].shape[:2], [d.flatten(0, 1) for d in directions]
    else:
        scores, additional = stacked(info, dims[len(directions) :], scores, additional)
        directions = [d.movedim(0, 1) for d in directions]
        shape, merged = directions[0].shape[:3], [d.flatten(1, 2) for d in directions]
        scores, additional = scores.flatten(0, 1), additional.flatten(0, 1)
    found = operator(*merged, scores, additional, ticket, key)
    parts = found if isinstance(found, tuple) else (found,)
    parts = tuple(
        part.reshape(*shape, *part.shape[1:]) if same else part.reshape(*shape, *part.shape[2:])
        for part in parts
    )
    at = tuple((0 if same else 1) for _ in parts)
    return (parts, at) if isinstance(found, tuple) else (parts[0], at[0])


def _batch_vjp(info, dims, direction, scores, additional, ticket, key):
    return _directions(info, dims, (direction,), (scores, additional, ticket), key, vjp)


def _batch_jvp(info, dims, d_scores, d_additional, scores, additional, ticket, key):
    return _directions(info, dims, (d_scores, d_additional), (scores, additional, ticket), key, jvp)


class _Linear(Function):
    """What is linear in its directions, at scores that it is piecewise constant in."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        *_, scores, additional, ticket, ctx.key = inputs
        ctx.save_for_backward(scores, additional, ticket)
        ctx.save_for_forward(scores, additional, ticket)


class Vjp(_Linear):
    """Algorithm 2; its own derivative is the product with the Jacobian."""

    @staticmethod
    def forward(direction, scores, additional, ticket, key):
        return vjp(direction, scores, additional, ticket, key)

    @staticmethod
    def backward(ctx, to_scores, to_additional):
        return _apply_jvp(to_scores, to_additional, *ctx.saved_tensors, ctx.key), None, None, None, None

    @staticmethod
    def jvp(ctx, direction, *_):
        scores, additional, ticket = ctx.saved_tensors
        if direction is None:
            direction = scores.new_zeros(1, *scores.shape)
        return _apply_vjp(direction, scores, additional, ticket, ctx.key)


class Jvp(_Linear):
    """The product with the Jacobian; its own derivative is Algorithm 2."""

    @staticmethod
    def forward(d_scores, d_additional, scores, additional, ticket, key):
        return jvp(d_scores, d_additional, scores, additional, ticket, key)

    @staticmethod
    def backward(ctx, direction):
        return *_apply_vjp(direction, *ctx.saved_tensors, ctx.key), None, None, None, None

    @staticmethod
    def jvp(ctx, d_scores, d_additional, *_):
        return _apply_jvp(*_both(d_scores, d_additional, *ctx.saved_tensors[:2]), *ctx.saved_tensors, ctx.key)


def _both(d_scores, d_additional, scores, additional):
    """Directions of both scores, where one may be missing."""
    like = d_additional if d_scores is None else d_scores
    R = like.shape[0]
    if d_scores is None:
        d_scores = scores.new_zeros(R, *scores.shape)
    if d_additional is None:
        d_additional = additional.new_zeros(R, *additional.shape)
    return d_scores, d_additional


class Solve(Function):
    """Marginals and the ticket."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores, additional, key):
        return solve(scores, additional, key)

    @staticmethod
    def setup_context(ctx, inputs, output):
        scores, additional, ctx.key = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(scores, additional, output[1])
        ctx.save_for_forward(scores, additional, output[1])

    @staticmethod
    def backward(ctx, direction, _):
        to_scores, to_additional = _apply_vjp(direction.unsqueeze(0), *ctx.saved_tensors, ctx.key)
        return to_scores.squeeze(0), to_additional.squeeze(0), None

    @staticmethod
    def jvp(ctx, d_scores, d_additional, _):
        given = [None if d is None else d.unsqueeze(0) for d in (d_scores, d_additional)]
        directions = _both(*given, *ctx.saved_tensors[:2])
        return _apply_jvp(*directions, *ctx.saved_tensors, ctx.key).squeeze(0), None


_apply_solve = differentiable(solve, Solve, _solve, _batch_solve)
_apply_vjp = differentiable(vjp, Vjp, _vjp, _batch_vjp)
_apply_jvp = differentiable(jvp, Jvp, _jvp, _batch_jvp)


# torch.compile does not trace it, since it would stop at the rules for `jvp`
@torch.compiler.allow_in_graph
def apply_solve(scores: Tensor, additional: Tensor, key: str) -> Tensor:
    """Marginals, with their derivatives."""
    return _apply_solve(scores, additional, key)[0]


@torch.compiler.allow_in_graph
def apply_own_scores(like: Tensor, n: int, key: str) -> Tensor:
    """The graph's own additional scores, (n,), in the type and on the device of ``like``."""
    if not n:
        return like.new_empty(0)
    make = _own_scores if is_plain(like) else own_scores
    return make(n, key, like.dtype, like.device)
