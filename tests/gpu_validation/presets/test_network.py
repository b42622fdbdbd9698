import html
from dataclasses import replace

import pytest

from bounds.runtime import ShiftedExponential
from gpu_validation.outcome import MEASUREMENTS, OK, REPORT
from gpu_validation.presets.network import PRESET, every_operator
from gpu_validation.study import carry_out
from operators import QSGD, Identity, all_operators

pytestmark = pytest.mark.timeout(120)

SMALL = replace(
    PRESET,
    sizes=(2,),
    operators=(Identity(), QSGD(levels=16)),
    d=2000,
    lengths_bytes=(2, 500, 1400, 2000, 4000, 8000),
    exchanges=1,
    taus=(1, 2),
    step_s=1e-3,
    stragglers=ShiftedExponential(1e-3, 1e-3),
    steps=10,
    repeats=2,
)


def test_the_preset_covers_every_operator_topology_tau_and_both_sizes():
    assert {operator.name for operator in every_operator()} == set(all_operators())
    assert PRESET.taus == (1, 4, 16)
    assert PRESET.repeats == 5
    assert list(PRESET.units()) == [
        f"{kind}:{m}{what}"
        for m in (2, 4)
        for kind, what in (("wire", ""), ("pace", ":logistic"), ("pace", ":network"), ("pace", ":stragglers"))
    ]


def test_every_record_says_how_the_network_was_made():
    records = [{"unit": unit, **SMALL.measure(unit)} for unit in ("wire:2", "pace:2:stragglers")]

    methods = {record["method"] for record in records}
    assert len(methods) == 1
    assert {inner["method"] for record in records for inner in record["records"]} == methods
    rows = SMALL.judge(records)
    payload = [row for row in rows if row.quantity.startswith("payload")]
    assert len(payload) == 2 * 3
    assert all(row.verdict == "HOLDS" and row.decides for row in payload)
    assert not any(row.verdict == "VIOLATED" for row in rows)
    assert not any(row.decides for row in rows if row.unit == "s")


@pytest.mark.slow
def test_a_small_run_leaves_a_report_with_both_figures(tmp_path):
    outcome = carry_out(SMALL, tmp_path)

    assert outcome.exit_code == OK, outcome.message
    assert len(outcome.records) == len(SMALL.units())
    page = (tmp_path / "network" / REPORT).read_text()
    assert html.escape(outcome.records[0]["method"]) in page
    assert page.count("<figure>") == 2
    assert (tmp_path / "network" / MEASUREMENTS).exists()
