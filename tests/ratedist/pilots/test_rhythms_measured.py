"""Seconds of steps in every rhythm against those of real ranks, as ``docs/benchmarks/rhythms.py`` has recorded them."""

import json
from pathlib import Path
from statistics import median

import pytest

import ratedist as rd
from bounds.claims import Unbiased
from ratedist.cluster.travel import Travel
from ratedist.plans.run import PlannedRun, Rhythm

ROOT = Path(__file__).parents[3]
RECORDS = [json.loads(line) for line in (ROOT / "docs/data/rhythms.jsonl").read_text().splitlines()]
ROWS = [row for row in RECORDS if row["record"] == "rhythm"]
OVERLAPPED = [row for row in ROWS if row["in_flight"] or row["buckets"] > 1]


def off(rows, predicted=lambda row: row["predicted_s"]):
    """Median relative error."""
    return median(abs(predicted(row) / row["measured_s"] - 1) for row in rows)


def predicted_s(row, **other):
    """Seconds of a step from the link and the step alone."""
    network = row["processes"], row["mbit_per_s"]
    alone = next(r for r in RECORDS if r["record"] == "alone" and (r["processes"], r["mbit_per_s"]) == network)
    link = {name: alone[name] for name in ("bandwidth_bit_per_s", "latency_s", "step_s", "sums_at_once")}
    cluster = rd.Cluster(workers=row["processes"], compute="constant", **link | other)
    rhythm, bits = Rhythm(row["tau"], row["in_flight"], row["parts"], row["buckets"]), 32 * alone["d"]
    way = Travel("sum", Unbiased(0.0), bits, bits, None, 0, 0, "").cut(rhythm.messages)
    return PlannedRun(way, cluster, rounds=1, rhythm=rhythm, coding_s=0.0).seconds / row["tau"]


@pytest.mark.parametrize(
    "row",
    ROWS,
    ids=lambda row: (
        f"{row['processes']}-{row['mbit_per_s']:g}-{row['tau']}-{row['in_flight']}-{row['parts']}-{row['buckets']}"
    ),
)
def test_the_predicted_seconds_follow_from_the_link_and_the_step(row):
    assert row["predicted_s"] == pytest.approx(predicted_s(row), rel=1e-9)
    assert row["measured_s"] == pytest.approx(median(row["seconds"]), rel=1e-3)


def test_seconds_of_overlap_are_near_those_measured_and_half_the_saving_is_not():
    half = off(OVERLAPPED, lambda row: (row["predicted_s"] + row["waiting_s"]) / 2)
    assert off(OVERLAPPED) < 0.015
    assert half > 0.08
    assert off(OVERLAPPED, lambda row: row["waiting_s"]) > half


def test_most_cells_are_within_a_twentieth_and_all_on_the_networks_that_the_model_was_made_on():
    errors = {(row["processes"], row["mbit_per_s"]): [] for row in ROWS}
    for row in ROWS:
        errors[row["processes"], row["mbit_per_s"]].append(abs(row["predicted_s"] / row["measured_s"] - 1))
    assert max(max(errors[2, mbit]) for mbit in (100, 200, 800)) < 0.05
    afterwards = [error for network in ((2, 50), (2, 400), (4, 300)) for error in errors[network]]
    assert sum(error < 0.05 for error in afterwards) == 28, "of 30, as the page says"
    assert max(afterwards) < 0.17


def test_sums_one_after_the_other_would_be_predicted_too_long():
    eight = [row for row in ROWS if row["buckets"] == 8]
    assert off(eight, lambda row: predicted_s(row, sums_at_once=1)) > 0.1
    assert off(eight) < 0.03


def test_the_page_states_the_record():
    page = (ROOT / "docs/concepts/prediction.md").read_text()
    for row in ROWS:
        assert f"{1e3 * row['measured_s']:.3g} ({1e3 * row['predicted_s']:.3g})" in page
