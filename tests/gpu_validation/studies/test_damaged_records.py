"""A record that lacks or contradicts a field becomes a row "not measured"; the other records keep their rows."""

import pytest

from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.studies.grid.study import Preset
from gpu_validation.studies.quick import PRESET
from gpu_validation.studies.study import Study, without_damaged
from gpu_validation.studies.wire import wire_rows

EXCHANGE = {
    "kind": "operator", "operator": "Identity()", "topology": "ring", "m": 2, "payload_bytes": 80,
    "predicted_payload_bytes": 80, "stream_bytes": None, "interface_bytes": None,
    "own_network": False, "method": "none",
}  # fmt: skip
DAMAGES = [
    ("payload_bytes", None), ("predicted_payload_bytes", None), ("topology", "torus"), ("m", "two"), ("topology", 3),
    ("m", None),
]  # fmt: skip


def inconclusive(rows):
    return [row for row in rows if row.unmeasured]


@pytest.mark.parametrize(("field", "value"), DAMAGES)
@pytest.mark.parametrize("missing", [True, False], ids=["missing", "wrong"])
def test_a_damaged_exchange_is_a_row_and_the_others_are_judged(field, value, missing):
    damaged = {name: entry for name, entry in EXCHANGE.items() if not (missing and name == field)}
    if not missing:
        damaged[field] = value
    rows = list(wire_rows([EXCHANGE, damaged, EXCHANGE]))
    assert len([row for row in rows if row.verdict is Verdict.HOLDS]) >= 2
    assert inconclusive(rows)
    assert not [row for row in rows if row.verdict is Verdict.VIOLATED]


class Sum(Study):
    """Judges all records together: a sum against a bound."""

    name, description, minutes, processes, false_alarm = "sum", "a sum", 0.0, 1, 0.01

    def units(self):
        return ["a", "b", "c"]

    def measure(self, unit):
        return {"unit": unit, "x": 1.0}

    def judge(self, records):
        total = sum(1 / record["x"] for record in records)
        bound = {"bound": 10.0, "side": "upper", "verdict": Verdict.HOLDS}
        return [Comparison(quantity="sum", operator="all", measured=total, interval=(total, total), **bound)]

    def figures(self, records):
        return [record["x"].real for record in records]


@pytest.mark.parametrize("damage", [{}, {"x": 0}, {"x": None}, {"x": "wide"}])
def test_a_study_judges_and_draws_the_records_that_it_can_read(damage):
    records = [{"unit": "a", "x": 1.0}, {"unit": "b", "operator": "mine", **damage}, {"unit": "c", "x": 2.0}]
    rows = Sum().judged(records)
    assert rows[0].measured == 1.5
    (row,) = inconclusive(rows)
    assert (row.operator, row.workload) == ("mine", "b")
    assert len(Sum().drawn(records)) >= 2


def test_what_no_record_explains_is_a_row_for_each():
    def use(records):
        raise ValueError("the units do not agree")

    assert [len(without_damaged(use, [{}] * n)[1]) for n in (1, 3)] == [1, 3]


@pytest.mark.parametrize("record", [{}, {"kind": "probe"}, {"kind": "training", "unit": 3}, {"kind": "nothing"}])
def test_the_figures_and_the_summary_of_a_grid_leave_damaged_records_out(record):
    assert isinstance(PRESET, Preset)
    rows = PRESET.judge([record])
    assert inconclusive(rows)
    assert PRESET.figures([record]) is not None
    PRESET.summary([record], rows)
