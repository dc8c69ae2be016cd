"""Display of attention: what is drawn is the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from drawings import overlap

import sparsekit as sk
from sparsekit.inspection import AttentionDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_attention_draws_the_weights(tmp_path):
    weights = sk.sparsemax(2 * np.random.default_rng(0).normal(size=(3, 5)))
    keys = ["the", "cat", "on", "the", "mat"]  # words may repeat
    display = AttentionDisplay.from_weights(weights, "abc", keys, frames=[4, -1, 0], title="sparsemax")
    shown = display.image_.get_array()
    assert (weights == 0).any()
    np.testing.assert_array_equal(shown.mask, weights == 0)
    np.testing.assert_array_equal(shown.filled(0.0), weights)
    assert display.image_.get_clim() == (0.0, 1.0)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == keys
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == list("abc")
    assert [tuple(np.round(f.get_xy() + np.array([0.45, 0.45]), 9)) for f in display.frames_] == [
        (4, 0),
        (0, 2),
    ]
    assert display.ax_.get_title() == "sparsemax" and "blank" in display.colorbar_.ax.get_ylabel()
    # a zero is white, the least weight is not
    colors = display.image_.cmap
    assert colors.get_bad().tolist() == [1, 1, 1, 1] and min(colors(0.0)[:3]) < 0.9
    display.figure_.savefig(tmp_path / "attention.png", dpi=50)


def test_attention_side_by_side_and_without_labels():
    _, axes = matplotlib.pyplot.subplots(1, 2)
    weights = np.full((4, 30), 2.0)
    for ax in axes:
        display = AttentionDisplay.from_weights(weights, ax=ax, colorbar=False)
        assert display.ax_ is ax and display.colorbar_ is None
    assert display.image_.get_clim() == (0.0, 2.0)
    assert AttentionDisplay.from_weights(weights, vmax=5.0).image_.get_clim() == (0.0, 5.0)
    words = AttentionDisplay.from_weights(sp.csr_array(weights), keys=["elephant"] * 30)
    assert [t.get_text() for t in words.ax_.get_yticklabels()] == ["0", "1", "2", "3"]
    assert not overlap(words.ax_.get_xticklabels(), words.figure_)
    many = AttentionDisplay.from_weights(np.eye(40))
    assert not overlap(many.ax_.get_yticklabels(), many.figure_)


@pytest.mark.parametrize(
    "weights, options, message",
    [
        ([0.5, 0.5], {}, "Expected 2D array, got 1D array"),
        ([[0.5, np.inf]], {}, "Input weights contains infinity"),
        ([[0.5, -0.1]], {}, "Negative values in data"),
        ([["a"]], {}, "could not convert string to float"),
        ([[0.5, 0.5]], {"queries": "ab"}, "queries must be 1 labels; got 2"),
        ([[0.5, 0.5]], {"keys": "a"}, "keys must be 2 labels; got 1"),
        ([[0.5, 0.5]], {"frames": [2]}, "frames must be a number of a key, below 2"),
        ([[0.5, 0.5]], {"frames": [0, 1]}, "for each of the 1 queries"),
        ([[0.5, 0.5]], {"frames": [0.5]}, "frames must be"),
    ],
)
def test_attention_errors(weights, options, message):
    with pytest.raises(ValueError, match=message):
        AttentionDisplay.from_weights(weights, **options)
