"""Draw the front page's figure, error against bits on one Gaussian vector.

python docs/measure.py studies/front_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import ratedist as rd

FAMILIES = ("tcdq", "eden", "qsgd", "topk")
BITS = (1, 1.5, 2, 3, 4)
D, SEED = 100_000, 0
FIGURE = Path(__file__).parent.parent / "_static" / "compare.svg"
TITLE = "TCDQ comes within 0.1 bits per coordinate of the limit (one Gaussian vector, d = 100,000)"


def compared() -> rd.Comparison:
    """Return the four families at equal bits on the vector."""
    x = torch.randn(D, generator=torch.Generator().manual_seed(SEED))
    return rd.compare(FAMILIES, x, bits=BITS)


def main() -> Iterator[dict[str, Any]]:
    """Write the figure; yields the gaps."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ratedist"
    comparison = compared()
    axes = comparison.plot()
    axes.set_title(TITLE, loc="left", fontsize=9)
    axes.figure.set_size_inches(7, 4)
    axes.figure.savefig(FIGURE, metadata={"Date": None})
    yield from ({"operator": r.family, "bits": r.asked, "gap": r.measured.gap} for r in comparison.rows if r.measured)
