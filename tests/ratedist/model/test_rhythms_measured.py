"""Seconds of steps in every rhythm against those of real ranks, as ``docs/benchmarks/rhythms.py`` has recorded them."""

import json
from pathlib import Path
from statistics import median

import pytest

import ratedist as rd
from bounds.claims import Unbiased
from ratedist.model.planned_run import PlannedRun
from ratedist.model.rhythm import Rhythm
from ratedist.model.travel import Travel

ROOT = Path(__file__).parents[3]
RECORDS = [json.loads(line) for line in (ROOT / "docs/data/rhythms.jsonl").read_text().splitlines()]
ROWS = [row for row in RECORDS if row["record"] == "rhythm"]
OVERLAPPED = [row for row in ROWS if row["in_flight"] or row["buckets"] > 1]


def off(rows, foretold=lambda row: row["predicted_s"]):
    """Median relative error."""
    return median(abs(foretold(row) / row["measured_s"] - 1) for row in rows)


@pytest.mark.parametrize(
    "row",
    ROWS,
    ids=lambda row: f"{row['mbit_per_s']:g}-{row['tau']}-{row['in_flight']}-{row['parts']}-{row['buckets']}",
)
def test_the_foretold_seconds_follow_from_the_link_and_the_step(row):
    alone = next(r for r in RECORDS if r["record"] == "alone" and r["mbit_per_s"] == row["mbit_per_s"])
    link = {name: alone[name] for name in ("bandwidth_bit_per_s", "latency_s", "step_s", "sums_at_once")}
    cluster = rd.Cluster(workers=row["processes"], compute="constant", **link)
    rhythm, bits = Rhythm(row["tau"], row["in_flight"], row["parts"], row["buckets"]), 32 * alone["d"]
    way = Travel("sum", Unbiased(0.0), bits, bits, None, 0, 0, "").cut(rhythm.messages)
    seconds = PlannedRun(way, cluster, rounds=1, rhythm=rhythm, coding_s=0.0).seconds
    assert row["predicted_s"] == pytest.approx(seconds / row["tau"], rel=1e-9)
    assert row["measured_s"] == pytest.approx(median(row["seconds"]), rel=1e-3)


def test_seconds_of_overlap_are_near_those_measured_and_half_the_saving_is_not():
    half = off(OVERLAPPED, lambda row: (row["predicted_s"] + row["waiting_s"]) / 2)
    assert off(OVERLAPPED) < 0.02
    assert max(abs(row["predicted_s"] / row["measured_s"] - 1) for row in OVERLAPPED) < 0.05
    assert half > 0.1
    assert off(OVERLAPPED, lambda row: row["waiting_s"]) > half


def test_the_page_states_the_record():
    page = (ROOT / "docs/concepts/prediction.md").read_text()
    for row in ROWS:
        assert f"{1e3 * row['measured_s']:.3g} ({1e3 * row['predicted_s']:.3g})" in page
