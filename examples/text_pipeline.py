"""Text: L1LogisticOBA and LIBLINEAR
====================================

A vectoriser, L1LogisticOBA, a grid search over C, and LIBLINEAR for comparison.

::

    python examples/text_pipeline.py [FOLDER] [--plot words.png]

FOLDER holds one sub-folder per class (two or more) with one text file per document. Without it the texts are
real ones that every installation has: the docstrings in the source code of scikit-learn and SciPy. The task
is to predict which of the two libraries a docstring comes from. The libraries' own names are removed.
Docstrings of one file share phrases, so they are all in training or all held out.
"""

import argparse
import ast
import re
import time
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_files
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit
from sklearn.pipeline import make_pipeline

from sparsekit import L1LogisticOBA

NAMES = re.compile(r"\b(scikit-?learn|sklearn|scipy)\w*", re.IGNORECASE)


# %%
# The texts
# ---------
def docstrings(package):
    """Yield (docstring, file) of the modules, classes and functions of an installed package."""
    root = Path(package.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if {"tests", "externals", "_external", "_lib"} & set(path.relative_to(root).parts):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                if len(text) >= 100:
                    yield NAMES.sub(" ", text), str(path)


def load_texts(folder):
    """Texts, labels and groups (texts of one group belong together)."""
    if folder is not None:
        bunch = load_files(folder, encoding="utf-8", decode_error="replace")
        return bunch.data, np.array(bunch.target_names)[bunch.target], np.arange(len(bunch.data))
    texts, labels, groups = [], [], []
    for package in (sklearn, scipy):
        for text, path in docstrings(package):
            texts.append(text)
            labels.append(package.__name__)
            groups.append(path)
    return texts, np.array(labels), np.array(groups)


# %%
# A grid search over C
# --------------------
#
# Only the last step of the pipeline differs.
def choose_and_test(name, estimator, train, test):
    """Grid search over C on the training part; prints time, held-out scores and size of the model."""
    (texts, labels, groups), (test_texts, test_labels, _) = train, test
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), estimator)
    parameter = f"{pipeline.steps[-1][0]}__C"
    search = GridSearchCV(
        pipeline,
        {parameter: np.logspace(-1, 3, 5)},
        scoring="neg_log_loss",
        cv=GroupKFold(3),
        error_score="raise",
    )
    start = time.perf_counter()
    search.fit(texts, labels, groups=groups)
    seconds = time.perf_counter() - start
    best = search.best_estimator_
    loss = log_loss(test_labels, best.predict_proba(test_texts), labels=best.classes_)
    nonzeros = np.count_nonzero(best[-1].coef_)
    print(
        f"{name:<16}{search.best_params_[parameter]:>8g}{seconds:>11.1f}"
        f"{best.score(test_texts, test_labels):>10.4f}{loss:>10.4f}{nonzeros:>10d}"
    )
    return best


# %%
# The last step alone
# -------------------
def time_final_fits(models, texts, labels, C):
    """The fits alone, on one vectorised training set and at one C, by the objective that each reaches."""
    X = models[0][0].transform(texts)
    signs = np.where(labels == models[0].classes_[1], 1.0, -1.0)
    print(f"\nThe last step alone, {X.shape[0]} x {X.shape[1]} tf-idf matrix, C = {C:g}:")
    print(f"{'':<30}{'seconds':>9}{'objective':>16}{'nonzeros':>10}")
    for name, make in (
        ("L1LogisticOBA", lambda: L1LogisticOBA(C=C, fit_intercept=False)),
        ("LIBLINEAR, its default tol", lambda: liblinear(C)),
        ("LIBLINEAR, tol=1e-6", lambda: liblinear(C, tol=1e-6)),
    ):
        start = time.perf_counter()
        model = make().fit(X, labels)
        seconds = time.perf_counter() - start
        w = model.coef_.ravel()
        objective = np.abs(w).sum() + C * np.logaddexp(0, -signs * (X @ w)).sum()
        print(f"{name:<30}{seconds:>9.3f}{objective:>16.6f}{np.count_nonzero(w):>10d}")
        if isinstance(model, L1LogisticOBA):
            # dual_gap_ belongs to the sum of losses plus |w|_1 / C, so C times it is on this scale
            print(f"{'':<30}certified to be within {C * model.dual_gap_:.2g} of the lowest objective")


def liblinear(C, **options):
    # without an intercept, which LIBLINEAR would penalise: so both solve the same problem
    return LogisticRegression(penalty="l1", solver="liblinear", C=C, fit_intercept=False, **options)


# %%
# The run
# -------
def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="folder with one sub-folder of text files per class")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the largest weights")
    options = parser.parse_args()
    texts, labels, groups = load_texts(options.folder)
    rows, held_out = next(GroupShuffleSplit(1, test_size=0.25, random_state=0).split(texts, labels, groups))

    def part(index):
        return [texts[i] for i in index], labels[index], groups[index]

    train, test = part(rows), part(held_out)
    classes, counts = np.unique(labels, return_counts=True)
    shown = ", ".join(f"{count} {name}" for name, count in zip(classes, counts, strict=True))
    print(f"{len(rows)} training and {len(held_out)} held-out texts ({shown})")
    print(f"\n{'':<16}{'best C':>8}{'search, s':>11}{'accuracy':>10}{'log-loss':>10}{'nonzeros':>10}")
    models = [choose_and_test("L1LogisticOBA", L1LogisticOBA(fit_intercept=len(classes) > 2), train, test)]
    if len(classes) > 2:
        print("(LIBLINEAR has no multinomial loss, so it is left out)")
        return
    models.append(choose_and_test("LIBLINEAR", liblinear(1.0), train, test))
    time_final_fits(models, train[0], train[1], models[0][-1].C)

    weights = models[0][-1].coef_.ravel()
    words = models[0][0].get_feature_names_out()
    order = np.argsort(weights)
    print(f"\nLargest weights for {classes[0]}:", ", ".join(words[order[:8]]))
    print(f"Largest weights for {classes[1]}:", ", ".join(words[order[::-1][:8]]))
    if options.plot:
        table = models[0][-1].coefficients(models[0])
        table[:20][::-1].plot.barh(legend=False).figure.savefig(options.plot, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    with warnings.catch_warnings():
        # newer scikit-learn releases spell penalty="l1" differently, older ones know only this
        warnings.filterwarnings("ignore", message=".*penalty", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*penalty", category=UserWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        main()
