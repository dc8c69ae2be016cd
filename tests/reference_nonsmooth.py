"""The 25 nonsmooth test functions with loops over their formulas, indices from 1 as in the papers.

x is padded so that x[i] is x_i, with x_0 = x_{n+1} = 0. Nothing here comes from sparsekit.
"""

import math


def padded(function):
    def value(x):
        return function([0.0, *map(float, x), 0.0], len(x))

    value.__doc__ = function.__doc__
    return value


def pairs(term):
    """The sum of term(x_i, x_{i+1}) over i < n."""
    return padded(lambda x, n: math.fsum(term(x[i], x[i + 1]) for i in range(1, n)))


def largest_sum(*terms):
    """The largest of the sums of the terms over i < n."""
    return padded(lambda x, n: max(math.fsum(t(x[i], x[i + 1]) for i in range(1, n)) for t in terms))


def largest(entry):
    """The largest |entry(x, i, n)|."""
    return padded(lambda x, n: max(abs(entry(x, i, n)) for i in range(1, n + 1)))


def cb3(a, b):
    return a**4 + b**2, (2 - a) ** 2 + (2 - b) ** 2, 2 * math.exp(b - a)


def crescent(a, b):
    return a**2 + (b - 1) ** 2 + b - 1, -(a**2) - (b - 1) ** 2 + b + 1


def mifflin(a, b):
    y = a * a + b * b - 1
    return -a + 2 * y + 1.75 * abs(y)


def myopic(a, b):
    return abs(a - b) + (a + 0.1 * b) ** 2


def hilbert(x, i, n):
    return math.fsum(x[j] / (i + j - 1) for j in range(1, n + 1))


def boundary_value(x, i, n):
    h = 1 / (n + 1)
    return 2 * x[i] + h * h / 2 * (x[i] + i * h + 1) ** 3 - x[i - 1] - x[i + 1]


def troesch(x, i, n):
    h = 1 / (n + 1)
    right = 1.0 if i == n else x[i + 1]
    return 2 * x[i] + 10 * h * h * math.sinh(10 * x[i]) - x[i - 1] - right


def chain_sum(term):
    return lambda x, n: math.fsum(term(x[i], x[i + 1]) for i in range(1, n))


VALUES = {
    "Active_Faces": padded(lambda x, n: max([math.log(abs(sum(x)) + 1)] + [math.log(abs(t) + 1) for t in x])),
    "Chained_CB3_1": pairs(lambda a, b: max(cb3(a, b))),
    "Chained_CB3_2": largest_sum(*(lambda a, b, k=k: cb3(a, b)[k] for k in range(3))),
    "Chained_Crescent_1": largest_sum(*(lambda a, b, k=k: crescent(a, b)[k] for k in range(2))),
    "Chained_Crescent_2": pairs(lambda a, b: max(crescent(a, b))),
    "Chained_LQ": pairs(lambda a, b: max(-a - b, -a - b + (a * a + b * b - 1))),
    "Chained_Mifflin_2": pairs(mifflin),
    "L1": padded(lambda x, n: math.fsum(abs(t) for t in x)),
    "L1HILB": padded(lambda x, n: math.fsum(abs(hilbert(x, i, n)) for i in range(1, n + 1))),
    "L2": padded(lambda x, n: math.sqrt(math.fsum(t * t for t in x))),
    "MAXHILB": largest(hilbert),
    "MAXQ": padded(lambda x, n: max(t * t for t in x)),
    "Modified_Rosenbrock_1": padded(
        lambda x, n: (x[1] - 1) ** 2 + chain_sum(lambda a, b: abs(b - a * a))(x, n)
    ),
    "Modified_Rosenbrock_2": padded(
        lambda x, n: (x[1] - 1) ** 2 + chain_sum(lambda a, b: (b - a * a) ** 2)(x, n)
    ),
    "Myopic_Coupled": pairs(myopic),
    "Myopic_Decoupled": padded(
        lambda x, n: math.fsum(myopic(x[i], x[i + 1]) for i in range(1, n, 2) if i + 1 <= n)
    ),
    "Nesterov_1": padded(
        lambda x, n: (x[1] - 1) ** 2 / 4 + chain_sum(lambda a, b: abs(b - 2 * a * a + 1))(x, n)
    ),
    "Nesterov_2": padded(
        lambda x, n: abs(x[1] - 1) / 4 + chain_sum(lambda a, b: abs(b - 2 * abs(a) + 1))(x, n)
    ),
    "Nesterov_3": padded(lambda x, n: max([abs(x[1])] + [abs(x[i - 1] - x[i]) for i in range(2, n + 1)])),
    "Nonsmooth_Brown": pairs(lambda a, b: abs(a) ** (b * b + 1) + abs(b) ** (a * a + 1)),
    "TEST29_2": padded(lambda x, n: max(abs(t) for t in x)),
    "TEST29_6": largest(lambda x, i, n: (3 - 2 * x[i]) * x[i] + 1 - x[i - 1] - x[i + 1]),
    "TEST29_22": largest(boundary_value),
    "TEST29_24": largest(troesch),
}
