import html
from dataclasses import replace

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.exit_status import MEASUREMENTS, REPORT
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.wire import PRESET, measured_operators
from operators import QSGD, Identity, all_operators
from ratedist.interfaces.exit_status import OK

pytestmark = pytest.mark.timeout(120)

SMALL = replace(
    PRESET,
    sizes=(2,),
    operators=(Identity(), QSGD(levels=16)),
    d=2000,
    lengths_bytes=(2, 500, 1400, 2000, 4000, 8000),
    exchanges=1,
)


def line(length, *, operator=None, counted=None):
    """An exchange over two ranks as a record: 1.05 bytes for every byte of payload and 60 for each exchange."""
    return {
        "kind": "line" if operator is None else "operator",
        "operator": operator,
        "topology": "ring",
        "m": 2,
        "longest_bytes": length,
        "one_frame": length <= 1448,
        "payload_bytes": 2 * length,
        "predicted_payload_bytes": 2 * length,
        "interface_bytes": 60 + 2.1 * length if counted is None else counted,
        "stream_bytes": 2 * length + 4 * 144,
        "method": "by hand",
        "own_network": True,
    }


def judged(record):
    bare = [line(length) for length in (10, 500, 1400, 2000, 20_000, 200_000)]
    rows = PRESET.judge([{"unit": "2:ring", "records": [*bare, record]}])
    return {row.quantity: row for row in rows}


def test_the_preset_covers_operators_of_the_catalogue_and_every_topology_and_size():
    """A new operator joins when the study is measured again."""
    assert {operator.name for operator in measured_operators()} <= set(all_operators())
    assert list(PRESET.units()) == [f"{m}:{name}" for m in (2, 4, 8) for name in ("direct", "ring", "hub")]


def test_perfect_record_holds_everywhere():
    rows = judged(line(300_000, operator="qsgd"))
    assert {row.verdict for row in rows.values()} == {Verdict.HOLDS}


def test_payload_that_is_not_the_predicted_one_is_violated():
    rows = judged(line(30_000, operator="qsgd") | {"predicted_payload_bytes": 59_999})
    assert rows["payload bytes of an exchange"].verdict is Verdict.VIOLATED
    assert rows["payload bytes of an exchange"].decides


@pytest.mark.parametrize("times", [0.9, 1.2, 4])
def test_an_interface_that_counts_less_or_more_than_the_formats_permit_is_violated(times):
    rows = judged(line(30_000, operator="qsgd", counted=times * 2.1 * 30_000))
    assert rows["payload within the bytes of the interfaces"].verdict is Verdict.VIOLATED
    assert rows["payload within the bytes of the interfaces"].decides


def test_shared_counters_are_out_of_scope_and_say_why():
    row = judged(line(30_000, operator="qsgd") | {"own_network": False})["payload within the bytes of the interfaces"]
    assert row.verdict is Verdict.OUT_OF_SCOPE
    assert "by hand" in row.reason


def test_every_record_says_how_the_network_was_made():
    record = {"unit": "2:direct", **SMALL.measure("2:direct")}

    assert {inner["method"] for inner in record["records"]} == {record["method"]}
    assert {inner["topology"] for inner in record["records"]} == {"direct"}
    payload = [row for row in SMALL.judge([record]) if row.quantity == "payload bytes of an exchange"]
    assert len(payload) == 2
    assert all(row.verdict == "HOLDS" and row.decides for row in payload)


@pytest.mark.slow
def test_a_small_run_leaves_a_report_with_its_figure(tmp_path):
    outcome = carry_out(SMALL, tmp_path)

    assert outcome.exit_code == OK, outcome.message
    assert len(outcome.records) == len(SMALL.units())
    page = (tmp_path / "wire" / REPORT).read_text()
    assert html.escape(outcome.records[0]["method"]) in page
    assert page.count("<figure>") == 1
    assert (tmp_path / "wire" / MEASUREMENTS).exists()
