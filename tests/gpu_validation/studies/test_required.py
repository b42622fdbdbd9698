"""No row of a preset vanishes unseen: a required row that is missing is INCONCLUSIVE, "not measured"."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.judging.comparisons import exact_row, out_of_scope
from gpu_validation.judging.compression import LEAST_ERROR, compression_rows, least_error
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import all_presets
from gpu_validation.studies.record_file import StaleResultsError, stored
from gpu_validation.studies.required import LISTED, as_list, listed, not_measured, required_of

DATA = Path(__file__).parents[3] / "docs" / "data" / "studies"
QUICKLY_JUDGED = ("error-feedback", "gtopk", "layerwise", "all-reduce")


def records_of(name):
    return [record for record in read_lines(DATA / f"{name}.jsonl") if "unit" in record]


def test_every_preset_has_a_list():
    assert set(json.loads(LISTED.read_text())) == set(all_presets())


@pytest.mark.parametrize("name", QUICKLY_JUDGED)
def test_committed_records_give_every_required_row_and_no_other(name):
    study, records = all_presets()[name], records_of(name)
    rows = study.judge(records)
    assert len(study.judged(records)) == len(rows)
    assert required_of(rows) == study.required(records) == listed(name)


def test_the_list_is_read_as_it_was_written():
    for name in all_presets():
        assert json.loads(json.dumps(as_list(listed(name)))) == json.loads(LISTED.read_text())[name]


@pytest.mark.parametrize("name", ["outside", "study", "prediction", "of-a-user"])
def test_a_study_of_a_user_requires_no_rows_whatever_its_name(name):
    class Users(type(all_presets()["gtopk"])):
        pass

    Users.name = name
    study = Users()
    assert not study.required([{"unit": unit} for unit in study.units()])


@given(st.data())
def test_a_row_that_vanishes_or_is_no_longer_judged_is_named(data):
    name = data.draw(st.sampled_from(("gtopk", "error-feedback")))
    rows = [r for r in ROWS[name] if r.verdict is not Verdict.OUT_OF_SCOPE]
    row = data.draw(st.sampled_from(rows))
    others = [other for other in ROWS[name] if other is not row]
    kept = data.draw(st.sampled_from(([], [out_of_scope(row, "no claim")])))
    (lost,) = not_measured(listed(name), [*others, *kept])
    assert (lost.operator, lost.workload, lost.tau, lost.quantity) == (
        row.operator,
        row.workload,
        row.tau,
        row.quantity,
    )
    assert lost.verdict is Verdict.INCONCLUSIVE
    assert lost.reason.startswith("not measured: ")
    assert ("no claim" in lost.reason) is bool(kept)


ROWS = {name: all_presets()[name].judge(records_of(name)) for name in ("gtopk", "error-feedback")}


def test_a_row_that_must_occur_twice_is_missed_once():
    row = exact_row(1.0, 1.0, True, operator="a", quantity="q")
    assert len(not_measured(required_of([row, row]), [row])) == 1
    assert not not_measured(required_of([row, row]), [row, row, row])


def test_a_verdict_where_none_is_required_is_no_loss():
    row = exact_row(1.0, 1.0, True, operator="a", quantity="q")
    assert not not_measured(required_of([out_of_scope(row, "why")]), [row])


def test_only_complete_records_of_the_preset_require_rows():
    study, records = all_presets()["gtopk"], records_of("gtopk")
    assert study.required(records)
    assert not study.required(records[1:])
    assert not replace(study, seeds=(*study.seeds, 99)).required(records)
    again = study.seeded(7)
    assert again.required([{"unit": unit} for unit in again.units()]) == listed("gtopk")


def test_a_record_copied_from_another_seed_is_named():
    study, records = all_presets()["speed-up"], records_of("speed-up")
    few = [record for record in records if record["unit"].startswith("tune:")]
    copied = [few[0], {**few[0], "unit": few[1]["unit"], "took_s": 0.0}]
    assert not list(study._copies(few))
    ((record, error),) = study._copies(copied)
    assert record["unit"] == few[1]["unit"]
    assert few[0]["unit"] in str(error)


def test_no_committed_record_copies_another():
    for name, study in all_presets().items():
        if (DATA / f"{name}.jsonl").exists():
            assert not list(study._copies(records_of(name))), name


def test_records_of_two_codes_are_refused_whether_or_not_more_is_measured(tmp_path):
    study, name = all_presets()["gtopk"], "measurements.jsonl"
    lines = (DATA / "gtopk.jsonl").read_text().splitlines(keepends=True)
    head = {**json.loads(lines[0]), "commit": "1234567-dirty"}
    for first, second in (("a", "b"), ("unknown", "b")):
        two = [json.dumps({**head, "code": code}) + "\n" for code in (first, second)]
        (tmp_path / name).write_text("".join([two[0], *lines[1:4], two[1], *lines[4:]]))
        with pytest.raises(StaleResultsError, match="one code"):
            stored(tmp_path, study)
        (tmp_path / name).write_text("".join([two[1], *lines[1:4], two[1], *lines[4:]]))
        assert len(stored(tmp_path, study)) == len(lines) - 1


# -- errors below the limit ------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", [1, 2, 10, 1000, 10**6])
@pytest.mark.parametrize("rate", [0.01, 0.5, 2.0, 8.0])
def test_no_error_of_the_limit_of_long_messages_is_refused(d, rate):
    bound = least_error(d, rate * d, 100)
    assert 0 <= bound <= 4.0**-rate
    assert least_error(d, rate * d + 1, 100) <= bound
    assert least_error(d, rate * d, 1000) <= bound
    if d == 10**6:
        assert bound > 0.9 * 4.0**-rate


@pytest.mark.parametrize(("d", "bits"), [(1, 1), (1, 4), (2, 6), (6, 8)])
def test_the_best_codebooks_stay_above_the_bound(d, bits):
    rng = np.random.default_rng(d + bits)
    book = rng.standard_normal((2**bits, d))
    for _ in range(10):  # Lloyd's iteration
        x = rng.standard_normal((4000, d))
        nearest = np.square(x[:, None] - book).sum(axis=2).argmin(axis=1)
        book = np.array([x[nearest == i].mean(axis=0) if (nearest == i).any() else book[i] for i in range(len(book))])
    error = np.square(rng.standard_normal((2000, d))[:, None] - book).sum(axis=2).min(axis=1) / d
    assert error.min() >= least_error(d, bits, 2000)


def message(error, bits, *, d=1000, source="gaussian"):
    sample = Sample.of(np.full(50, error))
    declared = Declared("Contractive", 0.9, None, None, None)
    return Compression(source, d, declared, Sample.of(np.full(50, float(bits))), sample, sample)


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-3, 0.05])
@pytest.mark.parametrize("bits", [0.0, 1000.0, 1500.0])
def test_an_error_below_the_limit_is_violated(error, bits):
    (row,) = [
        r for r in compression_rows(message(error, bits), false_alarm=1e-4, operator="a") if r.quantity == LEAST_ERROR
    ]
    assert row.verdict is (Verdict.VIOLATED if error < row.bound else Verdict.HOLDS)
    assert row.verdict is Verdict.VIOLATED or bits == 1500.0
    assert math.isclose(row.bound, least_error(1000, bits, 50))


def test_a_lossless_message_and_other_inputs_have_no_least_error():
    for compression in (message(0.0, 32000.0), message(0.0, 100.0, source="flat")):
        rows = compression_rows(compression, false_alarm=1e-4, operator="a")
        assert LEAST_ERROR not in {row.quantity for row in rows}
