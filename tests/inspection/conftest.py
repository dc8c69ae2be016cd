"""Tests of pictures leave none open."""

import pytest


@pytest.fixture(autouse=True)
def _no_figure_stays(close_figures):
    """For every test of this folder."""
