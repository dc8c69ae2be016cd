"""Names in sentences
==================

A tagger of named entities with `SequenceTagger`: labels say where a name begins (B) and goes on (I).

::

    python examples/sequence_tagger.py [--plot marginals.png]

Some hundred sentences are made from templates. The names of the test sentences are new, so the tagger must
use the context and the form of words. It prints spans that it found, their F1, and the features that speak
most for each label.
"""

import argparse
import random

import numpy as np

from sparsekit import SequenceTagger
from sparsekit.metrics import span_f1_score

TEMPLATES = [
    "PER lives in LOC .",
    "PER works for ORG in LOC .",
    "ORG opened an office in LOC .",
    "the mayor of LOC met PER .",
    "PER left ORG on Monday .",
    "shares of ORG fell .",
    "Mrs. PER was born in LOC .",
    "in LOC , ORG hired PER .",
]
FIRST = ["Ada", "Alan", "Grace", "Edsger", "Barbara", "John", "Emmy", "Carl", "Sofia", "Leonhard"]
LAST = ["Lovelace", "Turing", "Hopper", "Dijkstra", "Liskov", "Backus", "Noether", "Gauss", "Artin", "Euler"]
TOWNS = ["Paris", "Vienna", "Lima", "Oslo", "Kyoto", "Accra", "Quito", "Porto", "Riga", "Perth"]
FIRMS = ["Acme", "Globex", "Initech", "Umbrella", "Hooli", "Vandelay", "Stark", "Wayne", "Tyrell", "Pym"]


def sentences(draw, n, names):
    """Words and labels of n sentences; names: which of the ten names of each kind may be used."""
    texts, labels = [], []
    for _ in range(n):
        words, tags = [], []
        for part in draw.choice(TEMPLATES).split():
            pick = [source[draw.choice(names)] for source in (FIRST, LAST, TOWNS, FIRMS)]
            name = {"PER": pick[:2], "LOC": pick[2:3], "ORG": [pick[3], draw.choice(["Inc", "Ltd"])]}.get(
                part
            )
            words += name or [part]
            tags += [f"{'I' if t else 'B'}-{part}" for t in range(len(name))] if name else ["O"]
        texts.append(words)
        labels.append(tags)
    return texts, labels


def features(words):
    """One dict a word."""
    return [
        {
            "bias": 1.0,
            "word": word,
            "capital": word[0].isupper(),
            "before": words[t - 1] if t else "<begin>",
            "after": words[t + 1] if t + 1 < len(words) else "<end>",
        }
        for t, word in enumerate(words)
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plot", metavar="FILE", help="where to draw the probabilities of one sentence")
    options = parser.parse_args()
    draw = random.Random(0)
    train, y_train = sentences(draw, 150, range(5))
    test, y_test = sentences(draw, 50, range(5, 10))
    X_train, X_test = ([features(words) for words in texts] for texts in (train, test))

    tagger = SequenceTagger(constraints="BIO").fit(X_train, y_train)
    predicted = tagger.predict(X_test)
    for words, tags in list(zip(test, predicted))[:3]:
        print(" ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in zip(words, tags)))
    print(f"\nF1 of the spans, all of whose names are new: {span_f1_score(y_test, predicted):.3f}")
    print(f"share of right labels: {tagger.score(X_test, y_test):.3f}\n")
    for label, weights in zip(tagger.classes_, tagger.coef_):
        best = np.argsort(-weights)[:3]
        print(f"{label:6s}", ", ".join(f"{tagger.feature_names_in_[j]} ({weights[j]:.2f})" for j in best))
    marginals = tagger.predict_proba(X_test[:1])[0]
    print("\nprobability of the likeliest label, first sentence:", marginals.max(axis=1).round(2))
    if options.plot:
        from sparsekit.inspection import AttentionDisplay

        display = AttentionDisplay.from_weights(marginals, test[0], tagger.classes_, title="probabilities")
        display.ax_.set(xlabel="label", ylabel="")
        display.figure_.savefig(options.plot, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
