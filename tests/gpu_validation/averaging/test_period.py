"""When the averagings come, against the mistakes that other libraries make."""

import math
from dataclasses import dataclass

import pytest

from bounds.schedules import AdaComm, Schedule, State
from gpu_validation.averaging.pacing.inputs import PeriodController


@dataclass(frozen=True)
class Turn(State):
    round_index: int


@dataclass(frozen=True)
class Scripted(Schedule):
    """The taus of a list, one a round."""

    taus: tuple[int, ...]

    def init(self):
        return Turn(0)

    def restore(self, data):
        return Turn(**data)

    def __call__(self, state, observation):
        return Turn(state.round_index + 1), self.taus[min(state.round_index, len(self.taus) - 1)]


@dataclass(frozen=True)
class ByStep(Schedule):
    """tau from the number of local steps done: pairs (until this step, tau)."""

    pieces: tuple[tuple[int, int], ...]

    def init(self):
        return State()

    def __call__(self, state, observation):
        return state, next(tau for until, tau in self.pieces if observation.step < until)


class CounterFromZero(PeriodController):
    """Asks for a multiple of the period, and counts the step only then, as torch's PeriodicModelAverager does."""

    def count(self):
        due = self.total_steps % self.tau == 0
        super().count()
        return due


class OldPhase(PeriodController):
    """Keeps the phase of the step counter when the period changes."""

    def count(self):
        super().count()
        return self.total_steps % self.tau == 0


class LongFirstRound(PeriodController):
    """Makes tau + 1 steps before it averages for the first time."""

    def count(self):
        return super().count() and (self.rounds > 0 or self.local_steps > self.tau)


class TauInsideTheRoot(AdaComm):
    """ceil(sqrt(tau_0 F/F_0)), so that even without progress tau_0 = 16 becomes 4."""

    def __call__(self, state, observation):
        state, tau = super().__call__(state, observation)
        if state.interval:
            tau = math.ceil(math.sqrt(self.tau_0 * observation.loss / state.first_loss))
        return state, tau


def loss_at(step):
    return 2.0 ** (-step / 20)


def synchronisations(periods, steps):
    """Steps after which the rhythm averages; the clock shows one second a step."""
    found = []
    for step in range(1, steps + 1):
        if not periods.tau:
            periods.decide([periods.row([loss_at(0)], 0.0, 0.1)], [0])
        if periods.count():
            found.append(step)
            periods.end_round()
            if periods.adapts:
                periods.decide([periods.row([loss_at(step)], float(step), 0.1)], [0])
    return found


def rounds(synchronised):
    return [after - before for before, after in zip([0, *synchronised], synchronised, strict=False)]


PIECES = ByStep(((20, 8), (50, 5), (1000, 3)))  # 8 steps a round until step 20, 5 until 50, then 3
CASES = {
    "tau = 4": (4, 14, [4, 4, 4]),
    "tau = 1": (1, 3, [1, 1, 1]),
    "scripted": (Scripted((2, 5, 1, 3, 20)), 40, [2, 5, 1, 3, 20]),
    "in pieces": (PIECES, 62, [8, 8, 8, 5, 5, 5, 5, 5, 5, 3, 3]),
    # decisions in the intervals that begin at 0, 20, 40, ... s: ceil(16 sqrt(2^(-s/20))) at s = 32, 42, 66, 84
    "adacomm": (AdaComm(tau_0=16, interval_s=20.0), 99, [16, 16, 10, 8, 8, 8, 6, 6, 6, 4, 4, 4]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_round_has_tau_steps_counted_from_its_own_start(case):
    schedule, steps, expected = CASES[case]

    assert rounds(synchronisations(PeriodController(schedule), steps)) == expected


@pytest.mark.parametrize(
    ("mutant", "case", "wrong"),
    [
        (CounterFromZero, "tau = 4", [1, 4, 4, 4]),
        (CounterFromZero, "in pieces", [1, 8, 8, 8, 1, 5, 5, 5, 5, 5, 1, 3, 3, 3]),
        (OldPhase, "in pieces", [8, 8, 8, 1, 5, 5, 5, 5, 5, 1, 3, 3, 3]),
        (LongFirstRound, "tau = 4", [5, 4, 4]),
        (LongFirstRound, "adacomm", [17, 16, 10, 8, 8, 8, 6, 6, 6, 4, 4, 4]),
    ],
)
def test_known_faults_of_other_libraries_are_told_apart(mutant, case, wrong):
    schedule, steps, expected = CASES[case]

    assert wrong != expected
    assert rounds(synchronisations(mutant(schedule), steps)) == wrong


def test_tau_0_stands_outside_the_root():
    _, steps, expected = CASES["adacomm"]

    wrong = rounds(synchronisations(PeriodController(TauInsideTheRoot(tau_0=16, interval_s=20.0)), steps))

    assert wrong[:3] == [16, 16, 3] != expected[:3]  # ceil(sqrt(16 * 2^(-32/20))) = 3


def test_decision_is_a_function_of_all_rows_in_rank_order():
    periods, other = (PeriodController(AdaComm(tau_0=8, interval_s=1e-3)) for _ in range(2))
    first, later = [[4.0, 0.0, 0.1], [8.0, 9.9, 0.7]], [[1.0, 0.5, 0.1], [2.0, 0.0, 0.9]]
    for chosen in (periods, other):
        chosen.decide(first, [0, 1])
        chosen.decide(later, [0, 1])

    assert periods.tau == other.tau == 4  # 8 sqrt(1.5/6), with rank 0's clock; rank 1's would have kept tau = 8


def test_only_members_need_a_loss():
    periods, idle = PeriodController(AdaComm(tau_0=8, interval_s=1e-3)), math.nan
    periods.decide([[4.0, 0.0, 0.1], [idle, 0.0, 0.1], [12.0, 0.0, 0.1]], [0, 2])
    periods.decide([[idle, 1.0, 0.1], [2.0, 0.0, 0.1], [idle, 0.0, 0.1]], [1])

    assert periods.tau == 4  # 8 sqrt(2/8)
    with pytest.raises(ValueError, match="a new interval needs a loss"):
        periods.decide([[1.0, 2.0, 0.1], [idle, 2.0, 0.1], [1.0, 2.0, 0.1]], [0, 1])


def test_a_restored_rhythm_goes_on_in_the_middle_of_a_round():
    steps, cut = 40, 12
    straight = synchronisations(PeriodController(CASES["scripted"][0]), steps)
    first = PeriodController(CASES["scripted"][0])
    before = synchronisations(first, cut)
    second = PeriodController(CASES["scripted"][0])
    second.load_state_dict(first.state_dict())

    assert before + [cut + step for step in synchronisations(second, steps - cut)] == straight


@pytest.mark.parametrize(("losses", "who"), [(([1.0], [math.nan]), "rank 1"), (([math.inf], [math.nan]), "the ranks")])
def test_a_loss_that_is_not_finite_is_named_as_such(losses, who):
    periods = PeriodController(AdaComm(tau_0=4, interval_s=1.0))
    rows = [periods.row(own, 0.0, 0.1) for own in losses]
    with pytest.raises(ValueError, match=f"the loss of {who} was not finite within the 0 local steps so far, and"):
        periods.decide(rows, [0, 1])


def test_a_loss_that_was_not_given_is_not_taken_for_one_that_diverged():
    periods = PeriodController(AdaComm(tau_0=4, interval_s=1.0))
    with pytest.raises(ValueError, match="a new interval needs a loss; none was observed"):
        periods.decide([periods.row([], 0.0, 0.1), periods.row([1.0], 0.0, 0.1)], [0, 1])
