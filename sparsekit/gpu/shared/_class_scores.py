"""How rows of scores, one a class, are shared among threads."""

from __future__ import annotations

from ._compile import THREADS, grid1d

# scores of a row from which a block works on it; fewer are shared by some lanes of a warp
_BLOCK_ROW = 2048


def score_lanes(K: int) -> dict[str, int]:
    """The macro that says how many lanes share a row of ``K`` scores; 0 is a block."""
    return {"SCORE_LANES": 0 if K >= _BLOCK_ROW else min(32, 1 << max(K - 1, 0).bit_length())}


def row_blocks(n: int, lanes: int) -> int:
    """Blocks for ``n`` rows of scores."""
    return grid1d(n * (lanes or THREADS))
