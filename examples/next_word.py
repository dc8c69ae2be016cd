"""Thousands of classes: which word comes next?
============================================

A softmax over five thousand words learns from one pass over a stream.

::

    python examples/next_word.py [PICTURE.png]

The text is one that every installation has, the docstrings in the source code of scikit-learn and SciPy. The
classes are its words; a row is the three words before, one-hot by position. ExtremeSoftmaxSGD reads it as a
stream, in one pass. Its perplexity on new files is compared with that of the words' frequencies. Then the
model goes to disk in half precision and predicts from there.
"""

import ast
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
import scipy
import scipy.sparse as sp
import sklearn

from sparsekit import ExtremeSoftmaxSGD

BEFORE, LEAST, RARE = 3, 10, "<rare>"


# %%
# The text
# --------
def docstrings(library):
    """The docstrings of a library, a list of words for each of its files."""
    for path in sorted(Path(library.__file__).parent.rglob("*.py")):
        if "test" in str(path.relative_to(Path(library.__file__).parent)):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):  # files for other versions of Python
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        text = "\n".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds))
        yield re.findall(r"[a-z]+|[.,:()]", text.lower())


def rows(files, number, n_words):
    """Design matrix and next words of some files."""
    ids = np.array([number.get(w, 0) for words in files for w in words])
    n = len(ids) - BEFORE
    columns = np.stack(
        [ids[BEFORE - 1 - j : BEFORE - 1 - j + n] + j * n_words for j in range(BEFORE)], axis=1
    )
    data = np.full(n * BEFORE, 1 / np.sqrt(BEFORE), dtype=np.float32)
    indptr = np.arange(0, n * BEFORE + 1, BEFORE)
    return sp.csr_array((data, columns.ravel(), indptr), shape=(n, BEFORE * n_words)), ids[BEFORE:]


# %%
# A vocabulary, and a row for every word
# --------------------------------------
files = [words for library in (sklearn, scipy) for words in docstrings(library) if words]
order = np.random.default_rng(0).permutation(len(files))
held_out = [files[i] for i in order[::10]]
training = [files[i] for i in np.setdiff1d(order, order[::10])]
counts = Counter(word for words in training for word in words)
vocabulary = [RARE] + sorted(word for word, count in counts.items() if count >= LEAST)
number = {word: i for i, word in enumerate(vocabulary)}
K = len(vocabulary)
X, y = rows(training, number, K)
X_test, y_test = rows(held_out, number, K)
print(f"{K} words, {X.shape[0]} rows in training, {X_test.shape[0]} held out")

# %%
# One pass over a stream
# ----------------------
model = ExtremeSoftmaxSGD("is", n_negatives=20, learning_rate=0.5, random_state=0)
start = time.perf_counter()
for part in np.array_split(np.random.default_rng(0).permutation(len(y)), 10):  # as if they came one by one
    model.partial_fit(X[part], y[part], classes=np.arange(K))
seconds = time.perf_counter() - start
shares = (np.bincount(y, minlength=K) + 1) / (len(y) + K)
print(f"perplexity {np.exp(-np.log(shares[y_test]).mean()):.0f} by frequency alone, "
      f"{np.exp(model.log_loss(X_test, y_test)):.0f} by the model, after {seconds:.1f} s")  # fmt: skip

# %%
# From disk, in half precision
# ----------------------------
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.joblib"
    joblib.dump(model.quantize(np.float16), path)
    served = joblib.load(path, mmap_mode="r")  # weights stay on disk until they are needed
    print(f"{path.stat().st_size / 1e6:.0f} MB on disk")
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.5), sharex=True, layout="constrained")
    for axis, text in zip(axes, ("the number of", "shape ( n", "if true ,")):
        ids = [number[w] for w in text.split()]
        row = sp.csr_array(
            (np.full(BEFORE, 1 / np.sqrt(BEFORE), dtype=np.float32),
             ([0] * BEFORE, [ids[BEFORE - 1 - j] + j * K for j in range(BEFORE)])), shape=(1, BEFORE * K),
        )  # fmt: skip
        labels, p = served.predict_topk(row, 4, proba=True)
        print(f"{text:15s} ... " + ", ".join(f"{vocabulary[k]} {q:.2f}" for k, q in zip(labels[0], p[0])))
        axis.barh([vocabulary[k] for k in labels[0][::-1]], p[0][::-1])
        axis.set(title=f"{text} ...", xlabel="probability")
    del served
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1], dpi=100)
else:
    plt.show()
