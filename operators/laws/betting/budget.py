"""How much a check may spend: chance of a false alarm, draws, seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import monotonic, process_time

from bounds.fields import Fields

LENGTHS = tuple(block + i for block in (64, 128, 256, 512, 1024, 4096) for i in (-1, 0, 1))


@dataclass(frozen=True)
class Budget(Fields):
    """What one call of ``check`` may spend.

    Parameters
    ----------
    false_alarm : float, optional
        Bound on the probability that an honest subject is accused, over all laws and examples.
    bias : float, optional
        The least bias along x, over ``|x|``, that must be found with probability 99 %; a mean that was judged with less
        power is INCONCLUSIVE.
    draws : int, optional
        Random draws a vector, on average, in the statistical laws; up to 5 times as many until ``bias`` is reached.
    least_draws : int, optional
        Of them in all that no clock cuts.
    evaluations : int, optional
        Of one exact enumeration.
    seconds : float, optional
        After this time the statistical laws draw no more once the power is reached.  The exact ones begin no vector
        after a part of it.
    most_seconds : float, optional
        Nor without it (their tests stay valid whenever they stop).
    patience : float, optional
        Seconds of a whole check, half of them for a function: what the laws have not tried by then makes them
        INCONCLUSIVE.  Only the first ``least_draws`` are made later.
    lengths : tuple of int, optional
        Of the vectors whose every coordinate is visited, around those of buckets and SIMD blocks.
    sizes : tuple of int, optional
        Dimensions of the exact laws.
    drawn_sizes : tuple of int, optional
        Of the statistical ones.
    drawn : int, optional
        Random vectors per size in the exact laws.
    large : int, optional
        Largest length that is drawn.
    search : int, optional
        Steps of the adversarial search.
    shrinking : int, optional
        Attempts at making a failing vector simpler.

    Raises
    ------
    ValueError
        Unless 0 < false_alarm < 1, bias > 0 and the counts are positive.

    Notes
    -----
    A codec that takes longer than 2 ms a call, and a subject that a law has accused, get less of the patience.
    """

    false_alarm: float = 1e-6
    bias: float = 0.05
    draws: int = 100
    least_draws: int = 400
    evaluations: int = 2048
    seconds: float = 1.2
    most_seconds: float = 4.0
    patience: float = 10.0
    lengths: tuple[int, ...] = LENGTHS
    sizes: tuple[int, ...] = (1, 2, 7, 8, 9, 64, 1000, 4097)
    drawn_sizes: tuple[int, ...] = (1, 2, 7, 8, 64, 65)
    drawn: int = 6
    large: int = 1 << 20
    search: int = 60
    shrinking: int = 80

    infinite_fields = True  # seconds

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm < 1:
            raise ValueError(f"false_alarm must satisfy 0 < false_alarm < 1; got {self.false_alarm}")
        if not self.bias > 0:
            raise ValueError(f"bias must satisfy bias > 0; got {self.bias}")
        counts = self.draws, self.least_draws, self.evaluations, self.drawn, self.search
        if min(*counts, *self.sizes, *self.drawn_sizes, *self.lengths) < 1:
            raise ValueError(f"draws, evaluations, sizes and counts must be at least 1; got {self}")

    @classmethod
    def quick(cls) -> Budget:
        """Return about a second: a smoke test while writing an operator."""
        return cls(
            bias=0.25, draws=60, least_draws=300, evaluations=512, seconds=0.5, most_seconds=4.0,
            lengths=(64, 65, 129, 257), sizes=(1, 2, 9, 65), drawn_sizes=(2, 8), drawn=2, search=15, large=1 << 13,
        )  # fmt: skip

    @classmethod
    def deep(cls) -> Budget:
        """Return a minute and more, by hand: more draws and an index beyond the integers of binary32."""
        return cls(
            bias=0.01, draws=3000, least_draws=4000, evaluations=65_536, seconds=10.0, most_seconds=50.0,
            patience=300.0, drawn=40, large=1 << 24, search=1000,
        )  # fmt: skip

    def untimed(self) -> Budget:
        """Return the same without any limit in seconds: the result depends on the seed alone."""
        return replace(self, seconds=inf, most_seconds=inf, patience=inf)


def spelled(budget: Budget) -> str:
    """Return the budget as an argument, empty for the default one."""
    profiles = {"Budget()": Budget(), "Budget.quick()": Budget.quick(), "Budget.deep()": Budget.deep()}
    named = {profile: name for name, profile in profiles.items()}
    named |= {profile.untimed(): f"{name}.untimed()" for name, profile in profiles.items()}
    return "" if budget == Budget() else f"budget={named.get(budget, repr(budget))}"


# -- The clock of budgets: processor time, so that a busy machine costs a subject nothing ----------------------

SLOWEST = 4  # seconds of sleep that count as one of work
TICK_S = 0.001  # for so long real time stands for work: to ask the system at every call takes longer than many calls


def waited_s() -> float:
    """Return the seconds that this thread was ready without a processor; 0 where the system does not say."""
    try:
        with open("/proc/thread-self/schedstat") as counters:
            return 1e-9 * int(counters.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0


class Clock:
    """Seconds of work: processor time, at most real time, and at least a quarter of the time spent asleep.

    A subject that sleeps, or computes in other processes, so ends after four times its budget.  Waiting for a processor
    that others use counts nothing, where the system tells it from sleep.
    """

    def __init__(self) -> None:
        self._seconds, self._real, self._worked, self._waited = 0.0, monotonic(), process_time(), waited_s()
        self._latest = 0.0

    def __call__(self) -> float:
        """Return the seconds of work since some moment."""
        real = monotonic()
        passed = real - self._real
        if passed < TICK_S:
            self._latest = max(self._latest, self._seconds + passed)
            return self._latest
        worked = process_time()
        working, asleep = worked - self._worked, 0.0
        if passed / SLOWEST > working:
            waited = waited_s()
            asleep = max(0.0, passed - max(0.0, waited - self._waited))
            self._waited = waited
        self._seconds += min(passed, max(working, asleep / SLOWEST))
        self._real, self._worked = real, worked
        self._latest = max(self._latest, self._seconds)
        return self._latest


work_s = Clock()
