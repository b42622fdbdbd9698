"""The page's record of measured operators: what operators claim and send today, and above the limit."""

import json
import math

import pytest

from tests import scripts
from tests.pooled import pooled

pytest.importorskip("fastapi")

from bounds.claims import Unbiased
from operators import all_operators, specification
from ratedist.interfaces.http.app import PAGE

RECORD = json.loads((PAGE / "measured.json").read_text())
SMALL = [point for point in RECORD["points"] if point["d"] == 128]
EXAMPLES = {specification(cls.examples()[0]): cls.examples()[0] for cls in all_operators().values()}


@pytest.fixture(scope="module")
def benchmark():
    return scripts.load("benchmarks", "measured_operators")


@pooled("point", RECORD["points"], ids=lambda point: f"{point['operator']}, d = {point['d']}")
def test_the_recorded_claim_is_the_operators(point):
    claim = EXAMPLES[point["operator"]].claim(point["d"])
    constant = claim.omega if isinstance(claim, Unbiased) else claim.alpha
    assert (point["kind"] == "unbiased") == isinstance(claim, Unbiased)
    assert point["constant"] == pytest.approx(constant, rel=1e-5)
    assert point["nmse"] <= constant + 5 * point["nmse_half_width"] + 1e-6


def test_no_measured_operator_lies_below_the_limit_for_gaussian_vectors():
    for point in RECORD["points"]:
        if point["nmse"] == 0:
            continue
        least = 1 + 1 / point["nmse"] if point["kind"] == "unbiased" else 1 / point["nmse"]
        assert point["bits"] / point["d"] >= math.log2(least) / 2 - 0.01, point


@pytest.mark.every(9)
@pytest.mark.parametrize("point", SMALL, ids=lambda point: point["operator"])
def test_the_record_is_what_its_script_measures(benchmark, point):
    again = benchmark.measure(EXAMPLES[point["operator"]], point["d"], point["n"])
    assert again.keys() == point.keys()
    for name in ("stated_bits", "bits", "nmse"):
        assert again[name] == pytest.approx(point[name], rel=1e-5), name
