"""LP-SparseMAP by enumeration and an exact quadratic program, written as plainly as its definition (10).

A graph is a vector of scores eta and a list of `Factor`. A factor has variables (indices into eta), M and N
with one column per structure, and the additional scores. Everything here is dense and uses no formula of the
paper.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq, qr, solve_triangular
from scipy.optimize import linprog, nnls

LOGICAL = ("xor", "at_most_one", "or", "or_out", "and_out", "xor_out", "imply")
BINARY = LOGICAL + ("budget", "knapsack", "pair")
KINDS = BINARY + ("dense", "sequence", "dep_tree", "matching")
TOLERANCE = 1e-12  # of the KKT residuals, relative to the scores where they carry the scores' unit


def _allowed(kind, m, budget=None, exactly=False):
    """The logical definition, for one 0/1 vector."""
    m = [bool(value) for value in m]
    inputs, last = m[:-1], m[-1]
    return {
        "xor": lambda: sum(m) == 1,
        "at_most_one": lambda: sum(m) <= 1,
        "or": lambda: any(m),
        "or_out": lambda: last == any(inputs),
        "and_out": lambda: last == all(inputs),
        "xor_out": lambda: sum(inputs) == int(last),
        "imply": lambda: last or not all(inputs),
        "budget": lambda: sum(m) == budget if exactly else sum(m) <= budget,
        "pair": lambda: True,
    }[kind]()


def _binary(kind, d, **params):
    vectors = [m for m in itertools.product((0, 1), repeat=d) if _allowed(kind, m, **params)]
    return np.array(vectors, dtype=float).reshape(-1, d).T


def _knapsack(costs, budget):
    """Vertices of {x in [0, 1]^d, costs.x <= budget}: d tight constraints leave one coordinate fractional."""
    costs = np.asarray(costs, dtype=float)
    found = [x for x in itertools.product((0.0, 1.0), repeat=len(costs)) if costs @ x <= budget + 1e-12]
    for k in np.flatnonzero(costs > 0):
        for rest in itertools.product((0.0, 1.0), repeat=len(costs) - 1):
            x = np.insert(np.array(rest), k, 0.0)
            x[k] = (budget - costs @ x) / costs[k]
            if 1e-12 < x[k] < 1 - 1e-12:
                found.append(tuple(x))
    return np.array(found).reshape(-1, len(costs)).T


def _choices(choices, sizes):
    """One column per tuple of choices: a block of indicators for every choice."""
    columns = [np.concatenate([np.eye(n)[i] for n, i in zip(sizes, pick)]) for pick in choices]
    return np.array(columns).reshape(-1, sum(sizes)).T


def _dense(sizes):
    joint = list(itertools.product(*(range(n) for n in sizes)))
    return _choices(joint, sizes), np.eye(len(joint))


def _sequence(T, K):
    paths = list(itertools.product(range(K), repeat=T))
    N = np.zeros((T - 1, K, K, len(paths)))
    for y, path in enumerate(paths):
        for t in range(T - 1):
            N[t, path[t], path[t + 1], y] = 1
    return _choices(paths, [K] * T), N.reshape(-1, len(paths))


def is_tree(heads):
    """heads[i] is the head of word i, or i itself where the head is the root: does every word reach it?"""
    for word in range(len(heads)):
        for _ in heads:
            word = heads[word]
        if heads[word] != word:
            return False
    return True


def _crosses(heads):
    """Do two arcs cross, drawn above the sentence, the root at position 0 and word i at position i + 1?"""
    arcs = [sorted((0 if head == i else head + 1, i + 1)) for i, head in enumerate(heads)]
    return any(a < c < b < e for (a, b), (c, e) in itertools.permutations(arcs, 2))


def _dep_tree(n, projective=False, single_root=False):
    trees = [heads for heads in itertools.product(range(n), repeat=n) if is_tree(heads)]
    if projective:
        trees = [heads for heads in trees if not _crosses(heads)]
    if single_root:
        trees = [heads for heads in trees if sum(i == head for i, head in enumerate(heads)) == 1]
    return _choices(trees, [n] * n)


def _matching(m, n):
    if m <= n:
        return _choices(list(itertools.permutations(range(n), m)), [n] * m)
    return _matching(n, m).reshape(n, m, -1).transpose(1, 0, 2).reshape(m * n, -1)


def structures(kind, negated=None, **params):
    """(M, N) of one factor: d x Y and n_add x Y. Logical kinds take d; budget d, budget, exactly; knapsack
    costs, budget; dense sizes; sequence T, K; dep_tree n, projective, single_root; matching m, n."""
    N = None
    if kind in LOGICAL or kind == "budget":
        M = _binary(kind, **params)
    elif kind == "knapsack":
        M = _knapsack(**params)
    elif kind == "pair":
        M = _binary("pair", 2)
        N = M[:1] * M[1:]
    elif kind in ("dense", "sequence"):
        M, N = {"dense": _dense, "sequence": _sequence}[kind](**params)
    else:
        M = {"dep_tree": _dep_tree, "matching": _matching}[kind](**params)
    if negated is not None and np.any(negated):
        if kind not in BINARY:
            raise ValueError(f"{kind} takes no negated variables")
        M = np.where(np.asarray(negated, dtype=bool)[:, None], 1.0 - M, M)
    return M, np.zeros((0, M.shape[1])) if N is None else N


@dataclass
class Factor:
    """variables: indices into eta in the factor's flat order; scores: one per row of N."""

    kind: str
    params: dict
    negated: np.ndarray
    variables: np.ndarray
    M: np.ndarray
    N: np.ndarray
    scores: np.ndarray


def make_factor(kind, variables, scores=(), negated=None, **params):
    """A described factor; d is taken from the variables. Scores are flat, C order (sequence: (T-1, K, K))."""
    variables = np.asarray(variables, dtype=int).ravel()
    negated = np.zeros(len(variables), dtype=bool) if negated is None else np.asarray(negated, dtype=bool)
    size = {"d": len(variables)} if kind in LOGICAL or kind == "budget" else {}
    M, N = structures(kind, negated=negated, **size, **params)
    scores = np.asarray(scores, dtype=float).ravel()
    if M.shape[0] != len(variables) or N.shape[0] != len(scores) or len(set(variables)) < len(variables):
        raise ValueError(f"{kind}: {len(variables)} variables, {len(scores)} scores do not fit")
    return Factor(kind, params, negated, variables, M, N, scores)


class _Constraints:
    """B mu + P p = b, p >= 0: agreement C_f mu = M_f p_f and sum p_f = 1, for the variables in some factor.

    `feasible` says whether there is a solution. `keep` marks the structures that can have p_y > 0 at all. The
    others are dropped, so that there is a solution with p > 0 and an interior-point method works.
    """

    def __init__(self, n, factors):
        self.n, self.factors = n, factors
        self.covered = np.unique(np.concatenate([f.variables for f in factors] + [np.zeros(0, dtype=int)]))
        rows, sizes = sum(len(f.variables) + 1 for f in factors), [f.M.shape[1] for f in factors]
        self.starts = np.cumsum([0, *sizes])
        B, self.P, self.b = np.zeros((rows, n)), np.zeros((rows, self.starts[-1])), np.zeros(rows)
        row = 0
        for f, start, end in zip(factors, self.starts, self.starts[1:]):
            d = len(f.variables)
            B[row + np.arange(d), f.variables] = -1
            self.P[row : row + d, start:end] = f.M
            self.P[row + d, start:end] = 1
            self.b[row + d] = 1
            row += d + 1
        self.B = B[:, self.covered]
        self.feasible, self.keep = True, np.ones(self.starts[-1], dtype=bool)
        if factors:
            self._reduce()

    def _reduce(self):
        """Is there a solution, and which p_y can be positive? Times tau >= 1, p = q + t, most t, t <= 1."""
        Y, d = self.P.shape[1], self.B.shape[1]
        found = linprog(
            np.concatenate([np.zeros(d + Y), -np.ones(Y), [0.0]]),
            A_eq=np.hstack([self.B, self.P, self.P, -self.b[:, None]]),
            b_eq=np.zeros(len(self.b)),
            bounds=[(None, None)] * d + [(0, None)] * Y + [(0, 1)] * Y + [(1, None)],
            method="highs",
        )
        self.feasible = found.status == 0
        if self.feasible:
            self.keep = found.x[d + Y : d + 2 * Y] > 0.5
        elif found.status != 2:
            raise RuntimeError(f"feasibility: {found.message}")

    def split(self, p):
        return [p[start:end] for start, end in zip(self.starts, self.starts[1:])]

    def additional(self):
        """<c_f, n_y> of every structure of every factor."""
        return np.concatenate([f.N.T @ f.scores for f in self.factors] + [np.zeros(0)])


def _residual(h, g, B, P, b, c, mu, p, y, scale):
    """The KKT residual of the problem of `_interior_point`."""
    slack = P.T @ y - c
    dual = max(np.max(np.abs(h * mu - g + B.T @ y), initial=0), np.max(-slack, initial=0))
    complementarity = np.max(np.abs(np.minimum(p, slack / scale)), initial=0)
    return max(dual / scale, _primal(B, P, b, mu, p), complementarity)


def _primal(B, P, b, mu, p):
    return max(np.max(np.abs(B @ mu + P @ p - b), initial=0), np.max(-p, initial=0))


def _kkt_matrix(h, B, P):
    """Of the equations h mu + B^T y = g, P^T y = c, B mu + P p = b in (mu, p, y)."""
    d, e = len(h), len(h) + P.shape[1]
    K = np.zeros((e + len(B), e + len(B)))
    K[:d, :d], K[:d, e:], K[d:e, e:], K[e:, :d], K[e:, d:e] = np.diag(h), B.T, P.T, B, P
    return K


def _polish(h, g, B, P, b, c, mu, p, y, S):
    """The nearest solution of the equations left when p is zero off S and the slacks are zero on S."""
    d, k, K = len(mu), int(S.sum()), _kkt_matrix(h, B, P[:, S])
    p = np.where(S, p, 0.0)
    for _ in range(2):
        rest = np.concatenate([g - h * mu - B.T @ y, c[S] - P[:, S].T @ y, b - B @ mu - P @ p])
        step = lstsq(K, rest, cond=1e-11, lapack_driver="gelsy", check_finite=False)[0]
        mu, y = mu + step[:d], y + step[d + k :]
        p[S] += step[d : d + k]
    return mu, p, y


def _repair(h, g, B, P, b, c, mu, p, y, S):
    """Where p or y is not unique the polished one may have a wrong sign: search others that go with mu."""
    p = np.zeros_like(p)
    p[S] = nnls(P[:, S], b - B @ mu)[0]
    found = linprog(
        np.zeros(len(b)),
        A_ub=-P[:, ~S].T if not S.all() else None,
        b_ub=-c[~S] if not S.all() else None,
        A_eq=np.vstack([B.T, P[:, S].T]),
        b_eq=np.concatenate([g - h * mu, c[S]]),
        bounds=(None, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return mu, p, y if found.x is None else found.x


def _interior_point(h, g, B, P, b, c):
    """min sum h/2 mu^2 - <g, mu> - <c, p>, B mu + P p = b, p >= 0. Returns mu, p and the support.

    Mehrotra's predictor-corrector method; from a gap of 1e-5 on, the support p > s is tried out by solving
    the equations that it leaves. Only a point whose KKT residual is below TOLERANCE is returned.
    """
    _, R, order = qr(np.hstack([B, P]).T, mode="economic", pivoting=True)
    rows = np.sort(order[: int(np.sum(np.abs(np.diag(R)) > 1e-10))])  # the others follow from these
    whole, B, P, b = (B, P, b), B[rows], P[rows], b[rows]
    scale = max(1.0, np.max(np.abs(g), initial=0), np.max(np.abs(c), initial=0), np.max(h, initial=0))
    mu, p, y, s = np.full(len(g), 0.5), np.full(len(c), 0.5), np.zeros(len(b)), np.full(len(c), scale)
    best, tried = np.inf, None
    for iteration in range(100):
        r_mu, r_p, r_b = g - h * mu - B.T @ y, c - P.T @ y + s, b - B @ mu - P @ p
        gap, S = p @ s / len(c), p * scale > s
        if gap < 1e-5 * scale and (iteration % 4 == 0 or not np.array_equal(S, tried)):
            tried, point = S, (mu, p, y)
            for finish in (_polish, _repair):
                point = finish(h, g, B, P, b, c, *point, S)
                residual = max(_residual(h, g, B, P, b, c, *point, scale), _primal(*whole, *point[:2]))
                if residual <= TOLERANCE:
                    return point[0], np.maximum(point[1], 0.0), S
                best = min(best, residual)
        if gap < 1e-20 * scale:
            break
        Q, R = qr(np.hstack([B / np.sqrt(h), P * np.sqrt(p / s)]).T, mode="economic", check_finite=False)
        target = np.zeros(len(c))
        for corrector in (False, True):
            r_c = target - p * s
            u = np.concatenate([r_mu / np.sqrt(h), (r_c + p * r_p) / np.sqrt(p * s)])
            dy = solve_triangular(R, Q.T @ u - solve_triangular(R, r_b, trans="T"))
            dmu, ds = (r_mu - B.T @ dy) / h, P.T @ dy - r_p
            dp = (r_c - p * ds) / s
            a = min(_step(p, dp), _step(s, ds))  # one length: mu stands in primal and dual equations
            if not corrector:
                sigma = ((p + a * dp) @ (s + a * ds) / len(c) / gap) ** 3
                target = sigma * gap - dp * ds
        mu, p, y, s = mu + a * dmu, p + a * dp, y + a * dy, s + a * ds
    raise RuntimeError(f"the reference did not reach its accuracy: residual {best:.1e}")


def _step(x, dx):
    return min(1.0, 0.995 * np.min(-x[dx < 0] / dx[dx < 0], initial=np.inf))


def _solve(constraints, eta, quad=1.0):
    """mu, p, and the support S among all structures."""
    keep, covered = constraints.keep, constraints.covered
    mu, p, S = np.clip(eta / quad, 0.0, 1.0), np.zeros(len(keep)), np.zeros(len(keep), dtype=bool)
    if constraints.factors:
        B, P, b, c = constraints.B, constraints.P[:, keep], constraints.b, constraints.additional()[keep]
        h = np.full(len(covered), float(quad))
        mu[covered], p[keep], S[keep] = _interior_point(h, eta[covered], B, P, b, c)
    return mu, p, S


def is_feasible(n_variables, factors):
    """Whether the local polytope has a point."""
    return _Constraints(n_variables, factors).feasible


def solve_exact(eta, factors, quad=1.0):
    """The solution of max <eta, mu> + sum_f <c_f, N_f p_f> - quad/2 ||mu||^2 over the local polytope.

    Returns mu and the list of p_f, or (None, None): infeasible. quad = 0: the value of LP-MAP, or None.
    """
    eta = np.asarray(eta, dtype=float)
    constraints = _Constraints(len(eta), factors)
    if quad == 0:
        return _lp_value(constraints, eta) if constraints.feasible else None
    if not constraints.feasible:
        return None, None
    mu, p, _ = _solve(constraints, eta, quad)
    return mu, constraints.split(p)


def _lp_value(constraints, eta):
    """LP-MAP: max <eta, mu> + sum_f <c_f, N_f p_f> over the local polytope."""
    B, P = np.zeros((len(constraints.b), len(eta))), constraints.P
    B[:, constraints.covered] = constraints.B
    found = linprog(
        -np.concatenate([eta, constraints.additional()]),
        A_eq=np.hstack([B, P]) if constraints.factors else None,
        b_eq=constraints.b if constraints.factors else None,
        bounds=[(0, 1)] * len(eta) + [(0, None)] * P.shape[1],
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(found.message)
    return -found.fun


def objective(eta, factors, mu, ps, quad=1.0):
    """What problem (10) maximises."""
    return eta @ mu + sum(f.scores @ (f.N @ p) for f, p in zip(factors, ps)) - quad / 2 * mu @ mu


def local_exact(v, w, c, M, N):
    """x and p of min sum w/2 (x - v)^2 - <c, N p>, x = M p, p in the simplex: one factor's local problem."""
    v, w, d = np.asarray(v, dtype=float), np.asarray(w, dtype=float), len(v)
    B, P = np.vstack([-np.eye(d), np.zeros((1, d))]), np.vstack([M, np.ones((1, M.shape[1]))])
    b = np.concatenate([np.zeros(d), [1.0]])
    x, p, _ = _interior_point(w, w * v, B, P, b, N.T @ np.asarray(c, dtype=float))
    return x, p


def vjp_exact(eta, factors, d):
    """The gradient of <d, mu> with respect to eta and each factor's scores, at a solution with support S.

    While S stays, (mu, p_S, y) solves linear equations in (eta, c). Their matrix is symmetric, so one least
    squares solve with d on the right hand side gives the gradient. Meant for points where S is not about to
    change; elsewhere it is the gradient of one of the pieces.
    """
    eta, d = np.asarray(eta, dtype=float), np.asarray(d, dtype=float)
    constraints = _Constraints(len(eta), factors)
    _, _, S = _solve(constraints, eta)
    gradient = d * ((eta > 0) & (eta < 1))
    B, P, covered = constraints.B, constraints.P[:, S], constraints.covered
    n, k = B.shape[1], P.shape[1]
    K = _kkt_matrix(np.ones(n), B, P)
    found = lstsq(K, np.concatenate([d[covered], np.zeros(len(K) - n)]), cond=1e-11)[0]
    gradient[covered] = found[:n]
    q = np.zeros(len(S))
    q[S] = found[n : n + k]
    return gradient, [f.N @ part for f, part in zip(factors, constraints.split(q))]
