"""The formulas beside the seconds of records: never more than a link allows, and the ratios that the page states."""

import json
import re
import statistics
from pathlib import Path

import pytest

import ratedist as rd
from gpu_validation.records.settings import difference
from gpu_validation.studies import all_presets

ROOT = Path(__file__).parents[3]
RECORDS = [json.loads(line) for line in (ROOT / "docs/data/studies/all-reduce.jsonl").read_text().splitlines()]
RATE_BIT_PER_S, DELAY_S, COORDINATES = 1e8, 2e-4, 65536  # of the study, in its first record
SUMS = {record["m"]: record["methods"][0] for record in RECORDS if str(record.get("unit")).startswith("network:")}


def formula_s(m):
    cluster = rd.Cluster(workers=m, bandwidth_bit_per_s=RATE_BIT_PER_S, latency_s=DELAY_S)
    return cluster.averaging_s(32 * COORDINATES).midpoint


def test_the_study_is_the_one_that_the_numbers_are_of():
    study = all_presets()["all-reduce"]
    assert difference(RECORDS[0]["study"]["settings"], study) is None
    assert (study.shape.rate_bit_per_s, study.shape.delay_s, study.d) == (RATE_BIT_PER_S, DELAY_S, COORDINATES)


@pytest.mark.parametrize("m", [2, 4, 8])
def test_no_measured_sum_is_faster_than_its_link_allows(m):
    assert SUMS[m]["codec"] == "float32"
    sent = 2 * (m - 1) / m * 4 * COORDINATES
    assert SUMS[m]["payload_bytes"] / SUMS[m]["exchanges"] / m == pytest.approx(sent, rel=1e-3)
    assert min(SUMS[m]["seconds"]) > formula_s(m)


def test_the_page_states_the_ratios_of_the_records():
    page = (ROOT / "docs/concepts/seconds_of_an_exchange.md").read_text()
    ratios = {m: statistics.median(SUMS[m]["seconds"]) / formula_s(m) for m in SUMS}
    stated = re.search(
        r"above it by (\d+) %\. With 4 and 8\s+processes.*?medians were ([\d.]+) and ([\d.]+) times", page, re.DOTALL
    )
    assert [round(100 * (ratios[2] - 1)), round(ratios[4], 1), round(ratios[8], 1)] == [
        float(number) for number in stated.groups()
    ]
