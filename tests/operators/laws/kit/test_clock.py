"""The clock of budgets counts work: neither waiting for a processor nor several threads make it run away."""

import pytest

from operators.laws.betting import budget as clock


@pytest.mark.parametrize(
    ("real", "worked", "waited", "counted"),
    [
        (1.0, 1.0, 0.0, 1.0),  # one thread computes
        (1.0, 2.0, 0.0, 1.0),  # two threads
        (3.0, 1.0, 0.0, 1.0),  # a busy machine
        (20.0, 1.0, 19.0, 1.0),  # a very busy machine
        (8.0, 0.0, 0.0, 2.0),  # it sleeps, or waits for another process
        (20.0, 0.0, 12.0, 2.0),  # it sleeps on a busy machine
    ],
)
def test_seconds_are_those_of_work_and_at_least_a_quarter_of_those_asleep(real, worked, waited, counted, monkeypatch):
    now = {"real": 100.0, "worked": 5.0, "waited": 1.0}
    monkeypatch.setattr(clock, "waited_s", lambda: now["waited"])
    monkeypatch.setattr(clock, "monotonic", lambda: now["real"])
    monkeypatch.setattr(clock, "process_time", lambda: now["worked"])
    work_s = clock.Clock()
    for k in range(1, 4):
        now["real"] += real
        now["worked"] += worked
        now["waited"] += waited
        assert work_s() == pytest.approx(k * counted)


def test_intervals_are_added_one_by_one(monkeypatch):
    times = iter([0.0, 1.0, 5.0, 6.0])
    work = iter([0.0, 1.0, 1.0, 2.0])
    monkeypatch.setattr(clock, "monotonic", lambda: next(times))
    monkeypatch.setattr(clock, "process_time", lambda: next(work))
    monkeypatch.setattr(clock, "waited_s", lambda: 0.0)
    work_s = clock.Clock()
    assert [work_s() for _ in range(3)] == [1.0, 2.0, 3.0]
