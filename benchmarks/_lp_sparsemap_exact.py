"""Problems of lp_sparsemap.py and their exact solutions, from quadratic programs without factors.

Products of two variables and arborescences have linear descriptions with more variables: an arborescence
carries a unit of flow from the root to every word. A general sparse interior-point method solves them. The
active set that it finds gives solution and derivatives to rounding, which their KKT residual certifies.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

BUDGET = 2  # words on each head
_CERTIFIED = 1e-11


def make(kind, seed):
    """Scores of a problem, and the direction of its gradient."""
    rng = np.random.default_rng(seed)
    p = {"kind": kind, "budget": BUDGET, "w": np.zeros(0), "i": np.zeros(0, int), "j": np.zeros(0, int)}
    if kind.startswith("pairs"):
        p["eta"] = rng.standard_normal(159)
        p["i"], p["j"] = np.triu_indices(159, 1)
        p["w"] = rng.standard_normal(len(p["i"])) * float(kind[5:])
    else:
        shape = kind[8:].split("x") if kind.startswith("matching") else (20, 20)
        p["eta"] = rng.standard_normal([int(size) for size in shape])
    p["direction"] = np.random.default_rng(1000 + seed).standard_normal(p["eta"].shape)
    return p


def rows(n, *terms):
    """Sparse rows: in row k the entries (columns[k], value) of all terms."""
    size = len(terms[0][0])
    values = np.concatenate([np.full(size, float(value)) for _, value in terms])
    columns = np.concatenate([columns for columns, _ in terms])
    return sp.csr_array((values, (np.tile(np.arange(size), len(terms)), columns)), shape=(size, n))


def program(p):
    """min sum h/2 x^2 - g.x, A x = b, G x <= f, where x starts with mu: h, g, A, b, G, f."""
    eta, N = p["eta"].ravel(), p["eta"].size
    if len(p["w"]):  # z stands for mu_i mu_j: below both of them, or else above 0 and mu_i + mu_j - 1
        z, on, off = N + np.arange(len(p["w"])), p["w"] > 0, p["w"] <= 0
        i, j, n, box = p["i"], p["j"], N + len(p["w"]), np.arange(N)
        G = [rows(n, (z[on], 1), (k[on], -1)) for k in (i, j)]
        G += [rows(n, (z[off], -1)), rows(n, (i[off], 1), (j[off], 1), (z[off], -1))]
        G += [rows(n, (box, 1)), rows(n, (box, -1))]
        f = np.repeat([0.0, 1.0, 0.0], [2 * on.sum() + off.sum(), off.sum() + N, N])
        h, g = np.repeat([1.0, 0.0], [N, len(z)]), np.concatenate([eta, p["w"]])
        return h, g, sp.csr_array((0, n)), np.zeros(0), sp.vstack(G, "csr"), f
    m, n = p["eta"].shape
    row = sp.kron(sp.eye_array(m), np.ones((1, n)))
    if p["kind"].startswith("matching"):
        column = sp.kron(np.ones((1, m)), sp.eye_array(n))
        G, f = sp.vstack([column, -sp.eye_array(N)], "csr"), np.repeat([1.0, 0.0], [n, N])
        return np.ones(N), eta, row.tocsr(), np.ones(m), G, f
    # a unit of flow from the root to each word, on arcs that carry mu; the diagonal is the root's
    arcs = np.flatnonzero(~np.eye(n, dtype=bool).ravel())
    out = sp.csr_array((np.ones(len(arcs)), (arcs % n, arcs)), shape=(n, N))
    A = sp.block_diag([row, sp.kron(sp.eye_array(n), row - out)], "csr")
    b, flow = np.concatenate([np.ones(n), np.eye(n).ravel()]), sp.eye_array(n * N)
    G = [sp.hstack([sp.kron(np.ones((n, 1)), -sp.eye_array(N)), flow])]
    G.append(sp.hstack([sp.csr_array((n * N, N)), -flow]))
    f = [np.zeros(2 * n * N)]
    if "budget" in p["kind"]:
        G.append(sp.hstack([out, sp.csr_array((n, n * N))]))
        f.append(np.full(n, float(BUDGET)))
    h, g = np.repeat([1.0, 0.0], [N, n * N]), np.concatenate([eta, np.zeros(n * N)])
    return h, g, A, b, sp.vstack(G, "csr"), np.concatenate(f)


def saddle(h, B, w, right, start, most):
    """[diag h, B'; B, -diag w] z = right near start, for consistent equations, and the residual reached."""
    K = sp.block_array([[sp.diags_array(h), B.T], [B, -sp.diags_array(w)]], format="csc")
    shift = sp.diags_array(np.repeat([1e-9, -1e-9], [len(h), len(w)]))
    lu = splu((K + shift).tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    z, found, least = start, start, np.inf
    for _ in range(most):  # the proximal point method, in which the shift goes away
        rest = right - K @ z
        if not np.abs(rest).max() < least:
            break
        found, least = z, np.abs(rest).max()
        z = z + lu.solve(rest)
    return found, least


def step(x, dx):
    return min(1.0, 0.99 * np.min(-x[dx < 0] / dx[dx < 0], initial=np.inf))


def solve_exactly(p):
    """Adds mu and its gradients to a problem; returns the KKT residual (signs included)."""
    h, g, A, b, G, f = program(p)
    n, e, m, N = len(h), len(b), len(f), p["eta"].size
    B, c = sp.vstack([A, G], "csr"), np.concatenate([b, f])
    x, s, v = np.zeros(n), np.ones(m), np.repeat([0.0, 1.0], [e, m])
    for _ in range(60):
        y, gap = v[e:], v[e:] @ s / m
        if gap < 1e-7:  # may the active set be told already?
            on = np.concatenate([np.ones(e, dtype=bool), y > s])
            none, right = np.zeros(on.sum()), np.concatenate([g, c[on]])
            z, residual = saddle(h, B[on], none, right, np.concatenate([x, v[on]]), 100)
            residual = max(residual, -z[n + e :].min(initial=0.0), (G @ z[:n] - f).max())
            if residual < _CERTIFIED:
                right = np.concatenate([p["direction"].ravel(), np.zeros(n - N + len(none))])
                slope, rest = saddle(h, B[on], none, right, np.zeros_like(right), 100)
                p["mu"], p["gradient"] = z[:N].reshape(p["eta"].shape), slope[:N].reshape(p["eta"].shape)
                p["gradient_w"] = slope[N : N + len(p["w"])]
                return max(residual, rest)
        rest = np.concatenate([g - h * x - B.T @ v, c - B @ x])
        rest[n + e :] -= s
        target = np.zeros(m)
        for last in (False, True):
            right = rest.copy()
            right[n + e :] += s - target / y
            d, _ = saddle(h, B, np.concatenate([np.zeros(e), s / y]), right, np.zeros_like(right), 4)
            dy = d[n + e :]
            ds = (target - s * dy) / y - s
            a = min(step(s, ds), step(y, dy))
            if not last:
                target = ((y + a * dy) @ (s + a * ds) / m / gap) ** 3 * gap - dy * ds
        x, s, v = x + a * d[:n], s + a * ds, v + a * d[n:]
    raise RuntimeError(f"{p['kind']}: no certified solution")
