"""Tagged sequences for benchmarks: hidden Markov models, digits in a row, files in CoNLL's columns."""

import numpy as np

# (sequences, labels, words, seed): "tune" sets may be used while settings are chosen, "check" sets may not
TUNE = {"tune-9": (800, 9, 3000, 0), "tune-20": (300, 20, 3000, 1)}
SPANS = {
    "tune-spans": (800, 9, 3000, 2),
    "check-spans": (1200, 5, 2000, 20),
    "check-spans-2": (500, 21, 4000, 21),
}
CHECK = {"check-5": (1500, 5, 1500, 10), "check-9": (1000, 9, 6000, 11), "check-30": (300, 30, 2000, 12)}


def context(words, more=()):
    """The usual features of a word and its neighbours."""
    out = []
    for t, word in enumerate(words):
        found = {"bias": 1.0, "w": word, "end3": word[-3:], "end2": word[-2:], "begin": word[:2]}
        for o in (-2, -1, 1, 2):
            if 0 <= t + o < len(words):
                found[f"{o}:w"], found[f"{o}:end2"] = words[t + o], words[t + o][-2:]
        if t:
            found["bigram"] = f"{words[t - 1]}|{word}"
        for name, column in more:
            for o in (-1, 0, 1):
                if 0 <= t + o < len(words):
                    found[f"{o}:{name}"] = column[t + o]
        out.append(found)
    return out


def bio(K):
    """O, and B and I of (K - 1) / 2 kinds of spans; which of them may follow each other (K, K)."""
    names = ["O", *(f"{tag}-{kind}" for kind in range((K - 1) // 2) for tag in "BI")]
    may = [[other[0] != "I" or (one != "O" and one[2:] == other[2:]) for other in names] for one in names]
    return names, np.array(may)


def markov(n, K, n_words, seed, length=25, spans=False):
    """Sequences of a hidden Markov model; words belong to one label mostly, endings say little.

    With ``spans`` the labels are BIO's, and O is what follows half of the time.
    """
    rng = np.random.default_rng(seed)
    follow, names = rng.dirichlet(np.full(K, 0.3), size=K), [f"L{k}" for k in range(K)]
    if spans:
        names, may = bio(K)
        follow[:, 0] += 1.0
        follow = follow * may / (follow * may).sum(axis=1, keepdims=True)
    follow = follow.cumsum(axis=1)
    words = [
        "".join(chr(97 + c) for c in rng.integers(0, 26, size=rng.integers(3, 8))) for _ in range(n_words)
    ]
    own = rng.integers(0, K, size=n_words)
    popular = 1.0 / np.arange(1, n_words + 1)
    emit = np.array([popular * np.where(own == k, 1.0, 0.02) for k in range(K)]).cumsum(axis=1)
    X, y = [], []
    for _ in range(n):
        k, labels, text = 0 if spans else rng.integers(K), [], []
        for _ in range(max(1, rng.poisson(length))):
            k = int(min(np.searchsorted(follow[k], rng.random()), K - 1))
            labels.append(names[k])
            text.append(words[min(np.searchsorted(emit[k], rng.random() * emit[k, -1]), n_words - 1)])
        X.append(context(text))
        y.append(labels)
    return X, y


def digits(seed=0, n=400, length=8):
    """Images of digits, each row a walk in which the next digit is mostly one of three."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    follow = rng.dirichlet(np.full(10, 0.3), size=10)
    order = rng.permutation(len(labels))
    noisy = images / 16.0 + 0.5 * rng.normal(size=images.shape)
    pools = [[i for i in order if labels[i] == k] for k in range(10)]
    X, y = [], []
    for _ in range(n):
        k, row = int(rng.integers(10)), []
        for _ in range(length):
            k = int(rng.choice(10, p=follow[k]))
            row.append(int(rng.choice(pools[k])))
        X.append([{f"p{j}": float(v) for j, v in enumerate(noisy[i])} for i in row])
        y.append([str(labels[i]) for i in row])
    return X, y


def conll(path):
    """Sentences of a file with a word a line, its label last, and empty lines between sentences."""
    X, y, rows = [], [], []
    with open(path, encoding="utf-8") as stream:
        for line in [*stream, "\n"]:
            if line.strip():
                rows.append(line.rstrip("\n").split("\t"))
            elif rows:
                words, labels = [row[0] for row in rows], [row[-1] for row in rows]
                more = [(f"c{j}", [row[j] for row in rows]) for j in range(1, min(4, len(rows[0]) - 1))]
                X.append(context(words, more))
                y.append(labels)
                rows = []
    return X, y


def halves(X, y):
    """Three quarters to fit, the rest to test."""
    cut = len(X) * 3 // 4
    return X[:cut], y[:cut], X[cut:], y[cut:]
