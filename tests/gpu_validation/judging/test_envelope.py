"""The interval of payloads that a count permits: against frames counted one by one, and honest and wrong transports."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.judging.envelope import in_streams, on_interface, payload_in_streams, payload_on_interface
from gpu_validation.judging.verdict import Verdict
from gpu_validation.network.streams import StreamCount
from gpu_validation.processes.launch import run_ranks
from gpu_validation.processes.vectors import averaging_messages, barrier_messages
from gpu_validation.studies.topologies import TOPOLOGIES
from gpu_validation.studies.wire import WirePlan, measure_wire, wire_rows
from operators import QSGD, Identity, Key
from tests.gpu_validation.mutations.transports import bodies_sent

MSS = 1448
lengths = st.lists(st.integers(0, 200_000), min_size=1, max_size=20)


def frames(bodies, *, per_acknowledgement):
    """Bytes of all frames of gloo's messages, one by one: (streams, interface)."""
    streams = interface = acknowledged = 0
    for body in bodies:
        for piece in (48, 48, 48 + body):
            segments = [min(MSS, piece - start) for start in range(0, piece, MSS)]
            streams += piece
            interface += sum(14 + 20 + 32 + segment for segment in segments)
            acknowledged += len(segments)
    return streams, interface + 66 * (acknowledged // per_acknowledgement if per_acknowledgement else 0)


@given(lengths, st.sampled_from([0, 1, 2]))
def test_the_payload_lies_in_the_interval_of_its_own_frames(bodies, per_acknowledgement):
    streams, interface = frames(bodies, per_acknowledgement=per_acknowledgement)

    low, high = payload_in_streams(streams, len(bodies))
    assert low == sum(bodies) <= high
    low, high = payload_on_interface(interface, len(bodies), MSS)
    assert low - 1e-6 <= sum(bodies) <= high + 1e-6


@pytest.mark.parametrize("times", [0.5, 0.9, 1.2, 4])
@given(st.integers(20_000, 10**9))
def test_a_tenth_more_or_less_of_a_long_body_is_out_of_the_interval(times, body):
    streams, interface = frames([body if body < 10**6 else 10**6], per_acknowledgement=2)
    claimed = min(body, 10**6) / times

    assert in_streams(claimed, streams, 1, operator="", quantity="").verdict is Verdict.VIOLATED
    row = on_interface(claimed, payload_on_interface(interface, 1, MSS), "by hand", operator="", quantity="")
    assert row.verdict is Verdict.VIOLATED


def test_what_was_sent_again_is_granted():
    _, interface = frames([10_000], per_acknowledgement=1)
    again = StreamCount(0, 3 * MSS, 3)
    lossy = interface + 3 * (MSS + 66) + 3 * (66 + 40)

    assert payload_on_interface(lossy, 1, MSS)[0] > 10_000
    assert payload_on_interface(lossy, 1, MSS, again)[0] <= 10_000


def test_a_payload_short_beside_what_the_transport_says_is_inconclusive_and_no_counter_out_of_scope():
    short = in_streams(100.0, 100 + 144, 1, operator="", quantity="")
    blind = in_streams(100.0, None, 1, operator="", quantity="")

    assert short.verdict is Verdict.INCONCLUSIVE
    assert short.noticed == (1.0, 2.44)
    assert blind.verdict is Verdict.OUT_OF_SCOPE
    assert not blind.decides
    assert math.isnan(blind.measured)


def test_one_rank_alone_sends_nothing():
    assert averaging_messages(1) == barrier_messages(1) == 0
    assert [topology.messages(1) for topology in TOPOLOGIES] == [0, 0, 0]
    assert in_streams(0, 0, 0, operator="", quantity="").verdict is Verdict.HOLDS


PLAN = WirePlan((Identity(), QSGD(levels=16)), 3000, (1, 2, 3, 2000, 3000, 4000), repeats=2)


def measured(processes):
    for operator in PLAN.operators:  # compile before the processes fork
        operator.encode(torch.linspace(-1, 1, 64), key=Key(0))

    def work(place, emit):
        for record in measure_wire(place, PLAN):
            if place.rank == 0:
                emit(record)

    return list(wire_rows(list(run_ranks(work, processes=processes, hang_timeout_s=60))))


@given(lengths, st.sampled_from([1, 2, 4, 8]))
def test_streams_carry_the_payload_and_whole_preambles(bodies, repeats):
    payload, sent = sum(bodies) / repeats, (sum(bodies) + 144 * len(bodies)) / repeats
    about = {"operator": "any", "quantity": "payload", "repeats": repeats}
    assert in_streams(payload, sent, len(bodies) / repeats, **about).verdict is not Verdict.VIOLATED
    for wrong in (sent + 1 / repeats, sent - 1 / repeats, payload - 48 / repeats):
        assert in_streams(payload, wrong, len(bodies) / repeats, **about).verdict is Verdict.VIOLATED


@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.parametrize("processes", [3])
def test_without_privileges_honest_bodies_pass_and_bodies_sent_four_times_do_not(processes):
    honest = measured(processes)
    with bodies_sent(4):
        wrong = measured(processes)

    assert len(honest) == len(wrong) == 3 * len(PLAN.operators) * len(TOPOLOGIES)
    for name, rows, verdicts in (
        ("payload bytes of an exchange", wrong, {Verdict.HOLDS}),  # nobody counted what was sent again
        ("payload within the bytes of TCP streams", honest, {Verdict.HOLDS, Verdict.INCONCLUSIVE}),
        ("payload within the bytes of TCP streams", wrong, {Verdict.VIOLATED}),
    ):
        assert {row.verdict for row in rows if row.quantity == name} <= verdicts, name
