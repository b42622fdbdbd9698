"""The decision table names the record of least gap, and nothing else."""

import json

import choices
import pytest
from pages import DOCS

RECORDS = [json.loads(line) for line in (DOCS / "data/rate_distortion.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kind", ["unbiased", "contractive"])
def test_first_of_every_cell_has_the_least_gap_of_its_class_vector_and_rate(kind):
    lines = choices.compressor_choice(kind).splitlines()
    shown = {
        cells[0]: cells[1:]
        for cells in ([c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| "))
    }
    for source, words in choices.VECTORS.items():
        for rate, cell in zip(choices.RATES, shown[words], strict=True):
            gaps = {
                row["operator"].replace("_", " "): row["gap"]
                for row in RECORDS
                if "gap" in row and (row["class"], row["source"], row["rate"]) == (kind, source, rate)
            }
            best = min(gaps, key=gaps.get, default=None)
            first = cell.split("; ")[0]
            assert first == ("not recorded" if best is None else f"{best} {gaps[best]:.3f}")


def test_a_cell_compares_two_families():
    first, second = choices.closest("unbiased", "gauss", 1.0)[:2]
    assert choices.family(first["operator"]) != choices.family(second["operator"])
    assert first["gap"] <= second["gap"]
