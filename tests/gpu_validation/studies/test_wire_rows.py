"""Rows from records made up by hand, and one real exchange of every kind."""

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.network import Network
from gpu_validation.processes.launch import run_ranks
from gpu_validation.studies.topologies import TOPOLOGIES
from gpu_validation.studies.wire import WirePlan, fitted_line, measure_wire, wire_rows
from operators import QSGD, Identity, specification

pytestmark = pytest.mark.timeout(90)

A_BYTES, B = 5000.0, 1.06


def record(payload, interface, *, kind="operator", predicted=None, own=True, streams=None):
    return {
        "kind": kind,
        "operator": "identity",
        "topology": "ring",
        "m": 4,
        "longest_bytes": 2000,
        "one_frame": False,
        "payload_bytes": payload,
        "predicted_payload_bytes": payload if predicted is None else predicted,
        "interface_bytes": interface,
        "stream_bytes": streams,
        "method": "by hand",
        "own_network": own,
    }


LINE = [record(x, A_BYTES + B * x, kind="line") for x in (1e4, 1e5, 1e6)]


def verdicts(*records):
    return {row.quantity: row.verdict for row in wire_rows([*LINE, *records])}


def test_the_line_through_exact_points_is_exact():
    a, b = fitted_line(LINE)
    assert a == pytest.approx(A_BYTES, rel=1e-9)
    assert b == pytest.approx(B, rel=1e-12)


def test_the_payload_must_lie_within_what_the_formats_permit():
    found = verdicts(record(1000, 900, predicted=1001, streams=900))

    assert set(found.values()) == {Verdict.VIOLATED}


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.HOLDS), (4, Verdict.VIOLATED), (0.8, Verdict.VIOLATED)])
def test_a_line_through_wrong_points_acquits_nothing(times, verdict):
    wrong = [record(x, A_BYTES + times * B * x, kind="line") for x in (1e4, 1e5, 1e6)]
    judged = record(2e6, A_BYTES + times * B * 2e6, streams=100 * 48 + times * 2e6)  # whole preambles of gloo
    found = {row.quantity: row.verdict for row in wire_rows([*wrong, judged])}

    assert found["payload within the bytes of TCP streams"] is verdict
    assert found["payload within the bytes of the interfaces"] is verdict


def test_a_shared_or_missing_counter_is_out_of_scope_and_says_how_it_was_counted():
    for unknown in (record(1000, 5000, own=False), record(1000, None)):
        (row,) = (r for r in wire_rows([*LINE, unknown]) if r.quantity.endswith("of the interfaces"))
        assert row.verdict is Verdict.OUT_OF_SCOPE
        assert "by hand" in row.reason
        assert not row.decides
    assert fitted_line([record(1000, None, kind="line")]) is None


def test_a_line_needs_three_points():
    for few in ((5, 6, 2000, 3000, 4000), (5, 6, 1448, 2000, 3000, 3000)):
        with pytest.raises(ValueError, match="three different lengths up to 1448 and three above"):
            WirePlan((), d=1, lengths_bytes=few, repeats=1)


@pytest.mark.parametrize("methods", [("root", "user", "loopback"), ("loopback",)])
def test_every_operator_and_topology_sends_what_it_predicts(methods):
    operators = (Identity(), QSGD(levels=16))
    plan = WirePlan(operators, d=3000, lengths_bytes=(1, 500, 1448, 2000, 4000, 8000), repeats=1)

    def work(place, emit):
        for found in measure_wire(place, plan):
            if place.rank == 0:
                emit(found)

    with Network(2, methods=methods) as network:
        shaped, words = network.shaped, network.description
        running = run_ranks(work, processes=2, hang_timeout_s=30, network=network, scheduling="realtime")
        records = list(running)

    rows = list(wire_rows(records))
    sent = [row for row in rows if row.quantity == "payload bytes of an exchange"]
    assert len(sent) == len(operators) * len(TOPOLOGIES)
    assert {row.operator for row in sent} == {specification(operator) for operator in operators}
    assert all(row.verdict is Verdict.HOLDS for row in sent)
    assert {r["method"] for r in records} == {words}
    identity = next(r for r in records if r.get("operator") == "identity" and r["topology"] == "ring")
    assert identity["payload_bytes"] == 2 * (8 + 4 * 3000)
    permitted = {Verdict.HOLDS, Verdict.INCONCLUSIVE}
    for quantity, expected in (
        ("payload within the bytes of TCP streams", permitted),
        ("payload within the bytes of the interfaces", permitted if shaped else {Verdict.OUT_OF_SCOPE}),
    ):
        assert {row.verdict for row in rows if row.quantity == quantity} <= expected, quantity
