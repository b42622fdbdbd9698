"""The simulated clock: slowest member, then the delay, then the messages; the same on every rank's copy."""

import numpy as np
import pytest

from bounds.runtime import (
    AutoregressiveLogNormal,
    Coding,
    Constant,
    Exponential,
    ParameterServer,
    PersistentStragglers,
    Ring,
    RuntimeModel,
)
from gpu_validation.averaging.pacing import clock as module
from gpu_validation.averaging.pacing.clock import Event, InFlight, SimulatedClock, WallClock
from operators import Key


def run(clock, rounds, bits=(), members=(0, 1, 2, 3)):
    for tau in rounds:
        clock.advance_round(tau, bits, members)
    return clock.events


def test_constant_times_by_hand():
    model = RuntimeModel(Constant(0.5), delay_s=2.0, communication=ParameterServer(0.0, 100.0))
    clock = SimulatedClock(model, m=4, key=Key(0))

    events = run(clock, [3, 1], bits=(800, 800, 8, 0))

    each = 2.0 + (100 + 100 + 1 + 0 + 4 * 100) / 100  # delay; bytes in, and four copies of the longest out
    assert events == [Event(1.5 + each, 3, 1608), Event(1.5 + 0.5 + 2 * each, 4, 1608)]
    assert clock.seconds() == events[-1].seconds


def test_a_round_waits_for_its_slowest_member_only():
    model = RuntimeModel(PersistentStragglers(Constant(1.0), [1.0, 2.0, 3.0, 10.0]))

    (everyone,) = run(SimulatedClock(model, m=4, key=Key(0)), [5])
    (some,) = run(SimulatedClock(model, m=4, key=Key(0)), [5], members=(0, 2))

    assert (everyone.seconds, some.seconds) == (50.0, 15.0)


def test_coding_takes_the_workers_time_whether_they_wait_or_not():
    model = RuntimeModel(Constant(1.0), delay_s=4.0, coding=Coding(encode_s=0.25, decode_s=0.5))
    coding_s = 0.25 + 4 * 0.5

    waiting = SimulatedClock(model, m=4, key=Key(0))
    waiting.start_sync(3)
    (waited,) = run(waiting, [3])
    assert waited.seconds == 3.0 + coding_s + 4.0
    assert waiting.averaged([0]) == [coding_s + 4.0]

    waiting.advance_round(3, (), (0, 1, 2, 3), coding_s=0.0)  # another codec in this round: none
    assert waiting.seconds() == waited.seconds + 3.0 + 4.0

    hidden = SimulatedClock(model, m=4, key=Key(0))
    hidden.advance_round(9, (), (0, 1, 2, 3), flight=InFlight(steps=8, seconds=float("nan")))
    assert hidden.seconds() == 9.0 + coding_s  # sent after one step, back after 1 + 2.25 + 4: before the ninth ends


def test_copies_agree_and_other_keys_do_not():
    model = RuntimeModel(Exponential(1.0), delay_s=Exponential(0.5))
    first, copy, other = (
        run(SimulatedClock(model, m=4, key=key), [4, 2, 9]) for key in (Key(1), Key(1, rank=3), Key(2))
    )

    assert first == copy != other
    gaps = np.diff([0.0, *(event.seconds for event in first)])
    assert (gaps > 0).all()
    assert len(set(gaps)) == 3


def test_mean_round_takes_what_the_runtime_model_says():
    model, rounds, tau = RuntimeModel(Exponential(1.0), delay_s=Exponential(2.0), m=4), 4000, 5
    clock = SimulatedClock(model, m=4, key=Key(6))

    lengths = np.diff([0.0, *(event.seconds for event in run(clock, [tau] * rounds))])

    expected = tau * model.seconds_per_iteration(tau=tau)
    assert abs(lengths.mean() - expected) < 5 * lengths.std() / np.sqrt(rounds)  # 5 sd: 6e-7


def test_a_restored_clock_goes_on_with_the_same_times():
    model = RuntimeModel(Exponential(1.0), communication=Ring(0.1, 1e3))
    straight = run(SimulatedClock(model, m=4, key=Key(1)), [3, 3, 3, 3], bits=(64,) * 4)
    first, second = (SimulatedClock(model, m=4, key=Key(1)) for _ in range(2))
    run(first, [3, 3], bits=(64,) * 4)
    second.load_state_dict(first.state_dict())

    assert run(second, [3, 3], bits=(64,) * 4) == straight


def test_wall_clock_counts_on_after_a_restart(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    first = WallClock()
    now[0] += 7.0
    first.advance_round(4, (8, 8), (0, 1))
    saved = first.state_dict()
    now[0] = 5.0  # another machine
    second = WallClock()
    second.load_state_dict(saved)
    now[0] += 1.5
    second.advance_round(2, (8, 0), (0,))

    assert second.events == [Event(7.0, 4, 16), Event(8.5, 6, 8)]


@pytest.mark.parametrize("rounds", [1, 1023, 1024, 1025, 3000])
def test_a_wall_clock_keeps_the_latest_averagings_and_all_steps(rounds):
    clock = WallClock()
    for number in range(rounds):
        clock.advance_round(3, (8, number), (0, 1))

    kept = min(rounds, 1024)
    assert [event.bits for event in clock.events] == list(range(8 + rounds - kept, 8 + rounds))
    assert clock.events[-1].steps == 3 * rounds
    other = WallClock()
    other.load_state_dict(clock.state_dict())
    assert other.events == clock.events


def test_a_simulated_clock_keeps_all_averagings():
    clock = SimulatedClock(RuntimeModel(Constant(1.0)), m=2, key=Key(0))
    assert len(run(clock, [1] * 1500, members=(0, 1))) == 1500


def test_times_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="independent, to be drawn; got AutoregressiveLogNormal"):
        SimulatedClock(RuntimeModel(AutoregressiveLogNormal(1.0, 0.3, 0.9)), m=2, key=Key(0))
    clock = SimulatedClock(RuntimeModel(PersistentStragglers(Constant(1.0), [1.0, 2.0])), m=3, key=Key(0))
    with pytest.raises(ValueError, match="each of the m = 3 ranks; got 2"):
        clock.advance_round(1, (), (0, 1, 2))


def test_wall_clock_times_steps_and_averagings_apart_and_leaves_probes_out(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    clock = WallClock()

    def round_of(computing_s, averaging_s, probe_s=0.0):
        now[0] += computing_s
        clock.start_sync(4)
        now[0] += averaging_s
        clock.advance_round(4, (), (0,))
        seen = clock.computed([0]) + clock.averaged([0])
        now[0] += probe_s
        clock.end_sync()
        return seen

    assert round_of(9.0, 0.5, 1.0) == pytest.approx([np.nan, 0.5], nan_ok=True)  # it may have begun at any time
    assert round_of(4.0, 2.0, 3.0) == [4.0, 2.0]
    assert round_of(8.0, 1.0) == [8.0, 1.0]
    clock.load_state_dict(clock.state_dict())  # a restart, in the middle of a round
    assert round_of(7.0, 0.25) == pytest.approx([np.nan, 0.25], nan_ok=True)
    assert round_of(5.0, 0.5) == [5.0, 0.5]


def test_simulated_timings_are_those_that_pass_and_a_probe_takes_a_step():
    model = RuntimeModel(PersistentStragglers(Exponential(1.0), [1.0, 3.0]), delay_s=0.25)
    clock, plain = (SimulatedClock(model, m=2, key=Key(0)) for _ in range(2))

    for each in (clock, plain):
        each.start_sync(4)
        each.advance_round(4, (), (0, 1))
        assert each.averaged([0, 1]) == [0.25, 0.25]
        assert each.seconds() == pytest.approx(max(each.computed([0, 1])) + 0.25)
    clock.pass_probe()
    resumed = SimulatedClock(model, m=2, key=Key(0))
    resumed.load_state_dict(clock.state_dict())
    ends = []
    for each in (clock, resumed, plain):
        begun = each.seconds()
        each.start_sync(2)
        each.advance_round(2, (), (0, 1))
        ends.append((each.seconds(), each.computed([1])))
        assert (each.seconds() - begun > max(each.computed([0, 1])) + 0.3) == (each is not plain)
    assert ends[0] == ends[1]
