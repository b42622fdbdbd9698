"""The study of sums: a small run of real processes, and verdicts that records of wrong exchanges lose."""

from dataclasses import replace

import pytest
import torch

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.all_reduce import CODECS, FORGETFUL, PRESET, TRAINED, expected_error, vectors, wire_bits
from operators import QSGD, TCDQ

pytestmark = pytest.mark.timeout(120)
SMALL = replace(PRESET, sizes=(2,), crowds=(4,), repeats=(2,), d=512, rounds=2, steps=3, seeds=(0,), workers=2)


def row_of(records, operator, quantity):
    (row,) = (row for row in PRESET.judge(records) if row.operator == operator and quantity in row.quantity)
    return row


def network(**changes):
    """Exchanges of TCDQ in two shots between two ranks, as a record."""
    method = {
        "codec": "tcdq",
        "exchange": "two_shot",
        "seconds": [0.01] * 24,
        "nmse": [0.21] * 24,
        "over_law": [0.99, 1.01] * 12,
        "payload_bytes": 1000,
        "predicted_bytes": 1000,
        "exchanges": 26,
    }
    return [{"unit": "network:2", "m": 2, "methods": [method | changes]}]


def trained(losses, sent_bits=5.0, method="sign"):
    runs = [("exact", seed, 1.0) for seed in range(len(losses))]
    runs += [(method, seed, loss) for seed, loss in enumerate(losses)]
    bits = {"sent_bits": sent_bits, "dense_bits": 56.0, "accuracy": 0.9}
    return [{"unit": f"train:{name}:{seed}", "loss": loss, **bits} for name, seed, loss in runs]


def test_the_units_cover_every_codec_size_and_training():
    units = list(PRESET.units())
    assert [unit for unit in units if unit.startswith("network")] == ["network:2", "network:4", "network:8"]
    assert sum(unit.startswith("simulated") for unit in units) == 3 * len(CODECS)
    assert sum(unit.startswith("train") for unit in units) == 3 * len(TRAINED)


def test_a_small_run_of_real_processes_sends_what_is_predicted():
    record = {"unit": "network:2", **SMALL.measure("network:2")}

    assert len(record["methods"]) == 1 + 2 * len(CODECS)
    rows = [row for row in SMALL.judge([record]) if row.unit == "byte"]
    assert len(rows) == len(record["methods"])
    assert {row.verdict for row in rows} == {Verdict.HOLDS}
    dense = record["methods"][0]
    assert max(dense["nmse"]) < 1e-12
    assert wire_bits(dense, 2, SMALL.d) == pytest.approx(32, rel=0.05)
    assert SMALL.figures([record])[0].draw() is not None


def test_simulated_workers_follow_the_law():
    record = SMALL.measure("simulated:tcdq:4")
    for method in record["methods"]:
        assert method["over_law"] == pytest.approx([1.0, 1.0], abs=0.3)


def test_training_is_measured_in_real_processes():
    exact, compressed = (SMALL.measure(f"train:{method}:0") for method in ("exact", "sign"))
    assert compressed["sent_bits"] < compressed["dense_bits"] / 8
    assert compressed["loss"] != exact["loss"]


def test_the_law_is_that_of_the_shards():
    """QSGD's claim grows with the length it is made for, up to its bucket."""
    x = vectors(0, 0, 4, 400)
    rows = torch.stack(x).double()
    square, of_mean = float(rows.square().sum()) / 4, float(rows.mean(dim=0).square().sum())
    omega = QSGD(levels=4).claim(100).omega
    assert expected_error(QSGD(levels=4), "two_shot", x) == pytest.approx(
        omega * square / 4 + omega * (of_mean + omega * square / 4)
    )
    assert expected_error(TCDQ(omega=0.1), "gather", x) == pytest.approx(0.1 * square / 4)
    assert expected_error(CODECS["sign"], "gather", x) is None


@pytest.mark.parametrize("factor", [1, 0.9, 1.1])
def test_an_error_that_is_not_the_laws_is_violated(factor):
    row = row_of(network(over_law=[0.99 * factor, 1.01 * factor] * 12), "tcdq, two_shot", "over its law")
    assert row.verdict is (Verdict.HOLDS if factor == 1 else Verdict.VIOLATED)
    assert row.decides


def test_too_few_rounds_decide_nothing():
    assert row_of(network(over_law=[0.95, 1.05]), "tcdq, two_shot", "law").verdict is Verdict.INCONCLUSIVE


def test_a_byte_too_many_is_violated():
    row = row_of(network(payload_bytes=1001), "tcdq, two_shot", "payload")
    assert row.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("losses", "sent_bits", "verdicts"),
    [
        ([1.004, 0.997], 5.0, (Verdict.HOLDS, Verdict.HOLDS)),
        ([1.004, 1.006], 5.0, (Verdict.VIOLATED, Verdict.HOLDS)),
        ([1.004, 0.994], 7.1, (Verdict.VIOLATED, Verdict.VIOLATED)),
    ],
)
def test_losses_and_bytes_are_held_against_those_of_exact_gradients(losses, sent_bits, verdicts):
    records = trained(losses, sent_bits)
    assert tuple(row_of(records, "sign", word).verdict for word in ("final loss", "bytes")) == verdicts


@pytest.mark.parametrize(("loss", "verdict"), [(1.3, Verdict.HOLDS), (1.01, Verdict.VIOLATED)])
def test_an_owner_that_forgets_must_be_seen_to(loss, verdict):
    assert row_of(trained([1.4, loss], method=FORGETFUL), FORGETFUL, "measurably away").verdict is verdict
