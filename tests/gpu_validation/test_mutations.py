"""What is wrong on purpose is noticed, by the rows that the documentation names; what survives is listed with a reason.

Fast: the mutations that once went unnoticed, in a run with a quarter of the seeds, and bodies sent four times over in
``smoke`` by real processes.  Slow: the whole table, exactly as recorded in docs/data/mutations.jsonl.
"""

import json
from pathlib import Path

import pytest

from gpu_validation.judging.verdict import Verdict
from tests.gpu_validation.mutations import MUTATIONS, Bench, find
from tests.gpu_validation.mutations.bench import LOSSLESS
from tests.gpu_validation.mutations.mutation import least_noticed
from tests.gpu_validation.mutations.scaled import patched
from tests.gpu_validation.mutations.studies import smoke_rows

RECORDED = Path(__file__).parents[2] / "docs" / "data" / "mutations.jsonl"
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
ONCE_UNNOTICED = (
    "payload + 1 byte",
    "every body sent four times, counted once",
    "declared length x .95",
    "omega x .5",
    "pasgd_iterations x 0.5",
    "pasgd_iterations x 0.33",
    "exact law of |grad F|^2 x 0.5",
    "exact law of |grad F|^2 x 1.7",
    "every gradient norm x 2",
    "losses of 1e9",
    "accuracies of 0",
    "runtime model x 2",
    "mean over m - 1",
    "averaging at every eighth step, not fourth",
    "claims dropped",
    "errors recorded as 0",
    "every second seed copied",
    "codec bits at one rank only",
    "pasgd_compressed as if omega = 0",
    "tau + 1 in the record",
    "records of two uncommitted trees",
    "dimension of the messages halved",
    "errors x 2, and the claims with them",
    "every draw counted a hundred times",
    "standard deviation of the errors 0",
    "errors relative to the norm x .1, errors per coordinate kept",
    "constants of the theorems x 4",
    "numbers of every second seed missing",
    "losses of the curve x .5",
    "bits of the curve x .5",
    "seconds of the curve x .5",
    "bytes of the TCP streams x .99",
    "bytes of the interface x .5",
    "padding of the local steps x .5",
    "losses at the end in reverse order",
    "norms at the workers in reverse order",
)


def recorded():
    lines = map(json.loads, RECORDED.read_text().splitlines())
    return {line["name"]: line for line in lines if "caught_by" in line}


@pytest.fixture(scope="module")
def small():
    return honest(Bench(seeds=16))


@pytest.fixture(scope="module")
def whole():
    return honest(Bench())


def honest(bench):
    return bench, bench.judge(bench.records)


def accused(rows):
    return [row for row in rows if row.verdict is Verdict.VIOLATED]


def test_the_table_is_the_recorded_one_and_every_survivor_has_its_reason():
    lines = recorded()
    assert list(lines) == list(BY_NAME)
    assert len(BY_NAME) == len(MUTATIONS) >= 80
    for name, line in lines.items():
        assert bool(line["caught_by"]) != bool(line["reason"]), name
        assert line["reason"] == BY_NAME[name].survives
    caught = [line for line in lines.values() if line["caught_by"]]
    assert len(caught) / len(lines) >= 0.8


@pytest.mark.thorough
def test_a_run_without_a_fault_accuses_nobody(small):
    bench, rows = small
    assert not accused(rows)
    assert not accused(bench.in_place_of_the_middle(bench.trained(bench.cell(LOSSLESS, bench.taus[1]))))


def test_lines_of_an_honest_run_are_as_planned(small):
    bench, rows = small
    assert bench.with_lines(lambda line: line) == rows


@pytest.mark.every(4)
@pytest.mark.parametrize("name", ONCE_UNNOTICED)
def test_what_once_went_unnoticed_is_noticed(small, name):
    found = find(BY_NAME[name], *small)
    assert set(found.caught_by) & set(recorded()[name]["caught_by"])


def test_a_factor_beyond_the_least_that_is_noticed_is_noticed_and_one_before_it_is_not(small):
    from bounds import theorems

    bench, rows = small
    least = least_noticed(BY_NAME["pasgd_iterations x 0.5"], rows)
    assert 0.5 < least < 1
    for factor, caught in ((least * 0.999, True), (least * 1.001, False)):
        with patched(theorems, "pasgd_iterations", factor):
            assert bool(accused(bench.judge(bench.records))) is caught


@pytest.mark.thorough
@pytest.mark.timeout(120)
def test_smoke_notices_bodies_that_travel_four_times(small):
    mutation = BY_NAME["smoke: bodies sent four times"]
    assert not accused(row for row in smoke_rows() if row.decides)
    wrong = [row for row in mutation.rows(small[0]) if row.verdict is Verdict.VIOLATED]

    assert {row.quantity for row in wrong if row.decides} == {"payload within the bytes of TCP streams"}
    assert len(wrong) == 2  # every cell


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_mutation_is_noticed_by_the_recorded_rows_or_survives_as_recorded(whole, name):
    found, line = find(BY_NAME[name], *whole), recorded()[name]

    deciding = set(line["caught_by"])
    assert set(found.caught_by) == deciding
    assert found.decides == line["decides"]
    assert found.least == (None if line["least"] is None else pytest.approx(float(line["least"]), rel=1e-6))
