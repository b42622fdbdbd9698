"""A record of a grid has what the plan fixes, and what it has agrees with itself; else it is named, not measured."""

import math
from dataclasses import replace

import pytest

from gpu_validation.records.compression import Sample
from gpu_validation.records.storage import read_lines
from gpu_validation.studies.grid.study import not_as_planned
from gpu_validation.studies.smoke import PRESET as SMOKE
from tests.gpu_validation.mutations.bench import Bench

BENCH = Bench(steps=8, seeds=3)


@pytest.fixture(scope="module")
def pairs():
    return list(zip(BENCH.records, BENCH.planned, strict=True))


def sentences(record, planned):
    return [row.reason for row in not_as_planned(record, planned, operator="any")]


def with_sample(record, name, **change):
    c = record.compression
    return replace(record, compression=replace(c, **{name: replace(getattr(c, name), **change)}))


def test_honest_records_are_as_planned(pairs):
    assert not [text for pair in pairs for text in sentences(*pair)]


@pytest.mark.parametrize("name", ["tau", "processes", "steps", "virtual"])
def test_a_count_that_is_off_by_one_is_named(pairs, name):
    record, planned = pairs[-1]
    value = getattr(record, name)
    (text,) = sentences(replace(record, **{name: value + 1}), planned)
    assert f"{name} must be {value} as planned; got {value + 1}" in text


@pytest.mark.parametrize("parameter", ["sigma2", "gap", "L", "eta"])
@pytest.mark.parametrize("factor", [0.99, 1.01, 0.0, math.nan])
def test_a_constant_that_is_not_the_workloads_is_named(pairs, parameter, factor):
    record, planned = pairs[-1]
    changed = record.parameters | {parameter: factor * record.parameters[parameter]}
    assert "parameters must be" in sentences(replace(record, parameters=changed), planned)[0]


@pytest.mark.parametrize("name", ["gradient_norm2", "final_loss", "local_gradient_norm2"])
def test_a_seed_without_its_number_is_named(pairs, name):
    record, planned = next(pair for pair in pairs if getattr(pair[0], "local_gradient_norm2", ()))
    (text,) = sentences(replace(record, **{name: getattr(record, name)[1:]}), planned)
    assert f"{name} must have 3 numbers, one per seed; got 2" in text


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("curve", {"loss": lambda losses: [*losses[:-1], losses[-1] / 2]}, "the curve must end at the final loss"),
        ("curve", {"codec_bits": lambda bits: [bits[0] // 2, *bits[1:]]}, "codec_bits of a round must be from"),
        (
            "curve",
            {"seconds": lambda times: times[1:]},
            "must have 8 numbers, one per round; got 7",
        ),
        ("traffic", {"codec_bits": lambda bits: bits + 1}, "codec_bits of the curve must be those of the cell"),
        ("traffic", {"interface_bytes": lambda count: count // 2}, "interface_bytes must be at least the stream_bytes"),
        ("timing", {"wanted_step_s": lambda wanted: 1.5 * wanted}, "wanted_step_s must be 0.002 as planned; got 0.003"),
        (
            "timing",
            {"step_s": lambda steps: [steps[0] / 2, *steps[1:]]},
            "step_s must be at least the padding",
        ),
        (
            "timing",
            {"round_s": lambda rounds: [1.01 * s for s in rounds]},
            "seconds of the curve must be sums",
        ),
    ],
)
def test_numbers_of_a_cell_that_contradict_one_another_are_named(pairs, part, change, words):
    record, planned = next(pair for pair in pairs if getattr(pair[0], "accuracy", (None,)) != (None,))
    changed = {name: new(getattr(getattr(record, part), name)) for name, new in change.items()}
    assert any(
        words in text
        for text in sentences(replace(record, **{part: replace(getattr(record, part), **changed)}), planned)
    )


def test_an_accuracy_is_a_share_of_the_held_out_samples(pairs):
    record, planned = next(pair for pair in pairs if getattr(pair[0], "accuracy", (None,)) != (None,))
    n = record.data["held_out"]
    assert not sentences(replace(record, accuracy=(1 - 1 / n,)), planned)
    (text,) = sentences(replace(record, accuracy=(1 - 0.5 / n,)), planned)
    assert f"accuracy must be a multiple of 1/{n}" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 100}, "200 draws as planned; got 100"),
        ({"atoms": ((0.0, 1.0, 199),)}, "groups of 200 draws; got 199"),
        ({"high": 9.0}, "the extremes of its groups"),
        ({"sd": 0.0}, "a standard deviation that is 0 only for equal draws"),
        ({"mean": 1e-9}, "a mean from"),
        ({"atoms": ()}, "groups of 200 draws; got 0"),
    ],
)
def test_a_sample_that_contradicts_itself_is_named(pairs, change, words):
    record, planned = next(pair for pair in pairs if pair[0].operator.startswith("randomised_sparse"))
    assert any(f"ratio of the messages must have {words}" in text for text in sentences(
        with_sample(record, "ratio", **change), planned
    ))  # fmt: skip


@pytest.mark.parametrize("source", ["gaussian", "flat"])
def test_the_two_errors_of_a_vector_belong_together(pairs, source):
    record, planned = next(
        pair for pair in pairs if pair[0].compression.source == source and pair[0].compression.ratio.mean > 0
    )
    other = Sample.of([2 * record.compression.ratio.mean] * planned.n)
    changed = replace(record, compression=replace(record.compression, error_per_coordinate=other))
    (text,) = sentences(changed, planned)
    assert "error_per_coordinate must have a mean from" in text


@pytest.mark.thorough
def test_records_of_a_real_run_are_as_planned_and_changed_lines_are_named(smoke_run):
    lines = [line for line in read_lines(smoke_run.folder / "measurements.jsonl") if "unit" in line]
    whole = "all of a record"
    assert not [row for row in SMOKE.judge(lines) if row.quantity == whole]
    for line in lines:
        d = {**line, "compression": {**line["compression"], "d": 1 + line["compression"]["d"]}}
        (row,) = [row for row in SMOKE.judge([d]) if row.quantity == whole]
        assert row.unmeasured
        assert row.workload == line["unit"]
