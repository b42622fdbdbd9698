"""Rounds by a time: exact values, enclosures of simulated ones, and the two methods against each other."""

import ast
import itertools
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expi

import bounds
from bounds.runtime import (
    AutoregressiveLogNormal,
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Pareto,
    PersistentStragglers,
    Ring,
    RuntimeModel,
    Uniform,
    count_rounds,
    most_rounds,
    renewal,
    rounds_by,
    tails,
)

ERRORS = 4  # standard errors


def poisson_inverse(mean):
    """E 1/max(N, 1) of a Poisson number, by the exponential integral."""
    return math.exp(-mean) * (1 + float(expi(mean)) - np.euler_gamma - math.log(mean))


@pytest.mark.parametrize("time_s", [0.2, 3, 10, 30, 100, 600])
def test_exponential_rounds_of_one_worker_are_a_poisson_process(time_s):
    found = rounds_by(RuntimeModel(Exponential(1.0), m=1), time_s=time_s, tau=1)
    assert time_s in found.expected
    assert poisson_inverse(time_s) in found.inverse
    assert found.inverse.relative_width < 0.035
    assert found.inverse.lo > 1 / time_s or not 1 < time_s < 200  # E 1/N is not 1/E N


@pytest.mark.parametrize("time_s", [3000.0, 1e5, 1e9])
def test_many_rounds_are_enclosed_by_moments(time_s):
    found = rounds_by(RuntimeModel(Exponential(1.0), m=1), time_s=time_s, tau=1)
    assert time_s in found.expected
    assert (1 + 1 / time_s) / time_s in found.inverse
    assert float(found.inverse.hi) * time_s < 1.05


@pytest.mark.parametrize(
    ("step_s", "delay_s", "tau", "time_s", "done"),
    [(1, 0, 1, 1.9, 1), (1, 2, 4, 150, 25), (1, 2, 4, 149.9, 24), (0.1, 0, 1, 0.3, 3), (1, 0, 1, 0.5, 0)],
)
def test_constant_times_hold_whole_rounds(step_s, delay_s, tau, time_s, done):
    found = rounds_by(RuntimeModel(Constant(step_s), delay_s, m=3), time_s=time_s, tau=tau)
    assert (found.expected.lo, found.expected.hi) == (done, done)
    assert found.inverse.lo == found.inverse.hi == Fraction(1, max(done, 1))
    assert found.steps == tau * max(done, 1)


def test_a_law_of_two_values_is_enclosed_at_every_time():
    times, m = (1.0, 2.5), 2  # of a round: 2.5 unless both workers are fast
    model = RuntimeModel(Empirical(times), 0.25, m=m)
    law = {1.25: 1 / 4, 2.75: 3 / 4}
    for time_s in (1.0, 1.3, 4.1, 6.7):
        completed, inverse = 0.0, 0.0
        for rounds in itertools.product(law, repeat=6):
            done = int(np.sum(np.cumsum(rounds) <= time_s))
            chance = math.prod(law[one] for one in rounds)
            completed, inverse = completed + chance * done, inverse + chance / max(done, 1)
        found = rounds_by(model, time_s=time_s, tau=1)
        assert completed in found.expected
        assert inverse in found.inverse


@dataclass(frozen=True)
class Summed(Exponential):
    """Exponential steps that pretend to have no law of their sums, so that the lattice is used."""

    def sum_law(self, tau):
        return self if tau == 1 else None


@pytest.mark.parametrize("tau", [2, 7, 60])
def test_a_sum_on_a_lattice_encloses_its_closed_form(tau):
    lattice = tails.round_tail(Summed(1.0), m=8, tau=tau, delay_s=0.5, reach_s=1e4)
    closed = tails.round_tail(Exponential(1.0), m=8, tau=tau, delay_s=0.5, reach_s=1e4)
    t = np.linspace(-1, 5 * tau, 4001)
    exact = closed.above(t)
    assert np.all(lattice.below(t) <= exact + 1e-12)
    assert np.all(exact <= lattice.above(t) + 1e-12)
    assert np.max(lattice.above(t) - lattice.below(t)) < 0.01


@pytest.mark.parametrize("step", [Exponential(1.0), Gamma(0.3, 1 / 0.3), Pareto(1 / 3, 1.5)])
def test_moments_enclose_what_the_lattice_encloses_better(step):
    model, time_s = RuntimeModel(step, 0.2, m=4), 400 * step.expected_max(m=4)
    fine = rounds_by(model, time_s=time_s, tau=1)
    tail = tails.round_tail(step, m=4, tau=1, delay_s=0.2, reach_s=time_s)
    expected, inverse = renewal.by_moments(tail, time_s, fine.mean_s)
    for wide, narrow in ((expected, fine.expected), (inverse, fine.inverse)):
        assert wide.lo <= narrow.hi
        assert narrow.lo <= wide.hi
    assert inverse.hi >= fine.inverse.lo
    assert float(inverse.hi) < 1.5 * float(fine.inverse.hi)


def ended(step, *, m, tau, delay_s, time_s, runs, rng):
    """The simulated number of rounds that have ended, shape (runs,)."""
    now, done = np.zeros(runs), np.zeros(runs)
    block = max(1, min(2**20 // (runs * m * tau), 512))
    while now.min() <= time_s:
        rows = runs * block * m
        if isinstance(step, Pareto):
            sums = step.sample(rng, (rows, tau)).sum(1)
        else:
            sums = step.sum_law(tau).sample(rng, (rows,))
        ends = now[:, None] + np.cumsum(sums.reshape(runs, block, m).max(2) + delay_s, axis=1)
        done += (ends <= time_s).sum(1)
        now = ends[:, -1]
    return done


def random_cell(rng):
    """A law, tau, m, delay and number of mean rounds, all spread over their ranges."""
    kind, tau, m = rng.integers(4), int(np.exp(rng.uniform(0, np.log(64)))), int(np.exp(rng.uniform(0, np.log(64))))
    if kind == 0:
        step = Constant(float(rng.uniform(0.1, 2)))
    elif kind == 1:
        step = Exponential(float(rng.uniform(0.1, 2)))
    elif kind == 2:
        shape = float(np.exp(rng.uniform(np.log(0.2), np.log(20))))
        step = Gamma(shape, 1 / shape)
    else:
        step = Pareto(1.0, float(rng.uniform(1.3, 5)))
    rounds = float(np.exp(rng.uniform(0, np.log(400))))
    return step, tau, m, float(rng.choice([0, 0.3, 3])), rounds


def standard_error(done):
    """Of the mean of 1/max(N, 1); a run on either side of those seen keeps it from 0 where all runs agree."""
    values = 1 / np.maximum([*done, done.min() - 1, done.max() + 1], 1)
    return float(values.std()) / math.sqrt(done.size)


def worst_ratio(seed, cells, draws):
    """How much the upper end exceeds 1/(E-based rounds), at most, in the cells of at least 100 rounds.

    Asserts in every cell that the upper end is not below the simulated truth by 4 standard errors, and not more than
    1.3 times the E-based value from 100 rounds on.
    """
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(cells):
        step, tau, m, delay_s, count = random_cell(rng)
        model = RuntimeModel(step, delay_s, m=m)
        time_s = count * tau * model.seconds_per_iteration(tau=tau)
        found = rounds_by(model, time_s=time_s, tau=tau)
        runs = int(np.clip(draws / (count * m * tau), 20, 4000))
        done = ended(step, m=m, tau=tau, delay_s=delay_s, time_s=time_s * (1 + 1e-9), runs=runs, rng=rng)
        mean, margin = np.mean(1 / np.maximum(done, 1)), 0.0
        if not isinstance(step, Constant):
            margin = ERRORS * standard_error(done)
        cell = (step, tau, m, delay_s, time_s, found.inverse, mean, margin)
        assert float(found.inverse.hi) >= mean - margin - 1e-12, cell
        if count >= 100:
            worst = max(worst, float(found.inverse.hi) * count)
            assert float(found.inverse.hi) * count <= 1.3, cell
    return worst


def test_the_upper_end_is_never_below_simulated_rounds():
    assert worst_ratio(seed=1, cells=12, draws=2e6) > 1


@pytest.mark.slow
def test_the_upper_end_is_never_below_simulated_rounds_in_many_cells():
    assert worst_ratio(seed=2, cells=1000, draws=3e5) > 1


def test_workers_of_different_speed_and_random_delays_are_covered():
    rng = np.random.default_rng(3)
    slow = PersistentStragglers(Exponential(1.0), [1, 1, 3])
    found = rounds_by(RuntimeModel(slow, m=3), time_s=40.0, tau=2)
    ends = np.cumsum((rng.gamma(2, 1, (4000, 80, 3)) * np.array([1, 1, 3])).max(2), axis=1)
    assert_encloses(found, (ends <= 40).sum(1))
    found = rounds_by(RuntimeModel(Uniform(0.5, 1.5), Exponential(1.0), m=2), time_s=30.0, tau=1)
    ends = np.cumsum(rng.uniform(0.5, 1.5, (4000, 60, 2)).max(2) + rng.exponential(1.0, (4000, 60)), axis=1)
    assert_encloses(found, (ends <= 30).sum(1))


def assert_encloses(found, done):
    errors = done.std() / math.sqrt(done.size), standard_error(done)
    for interval, values, error in zip(
        (found.expected, found.inverse), (done, 1 / np.maximum(done, 1)), errors, strict=True
    ):
        assert interval.lo - ERRORS * error <= values.mean() <= interval.hi + ERRORS * error


def test_more_time_never_means_fewer_rounds():
    model = RuntimeModel(Gamma(2.0, 0.5), 0.5, m=8)
    found = [rounds_by(model, time_s=t, tau=3) for t in np.geomspace(3, 3e4, 40)]
    for a, b in itertools.pairwise(found):
        assert b.inverse.lo <= a.inverse.hi
        assert a.expected.lo <= b.expected.hi


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (RuntimeModel(AutoregressiveLogNormal(1.0, 0.3, 0.9), m=2), "independent times; got AutoregressiveLogNormal"),
        (RuntimeModel(Pareto(1.0, 0.9), m=2), "finite mean time"),
        (RuntimeModel(Constant(0.0), m=2), "finite mean time"),
        (RuntimeModel(Constant(1.0), Exponential(1.0), Ring(1.0, 1e9), m=2), "are not covered"),
    ],
)
def test_what_is_not_covered_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        rounds_by(model, time_s=10.0, tau=1, bits=8)


@pytest.mark.parametrize(
    ("time_s", "round_s", "done"),
    [
        *((0.3, 0.1, 3), (0.7, 0.1, 7), (1.1, 0.1, 11), (1.9, 1.01, 1), (1.0, 1.5, 0), (0.0, 1.0, 0), (5e-324, 1.0, 0)),
        *((1.0, math.inf, 0), (Fraction(7, 10), Fraction(1, 10), 7), (1e300, 1.0, 10**300), (2.9999999, 1.0, 2)),
    ],
)
def test_whole_rounds_are_counted_exactly(time_s, round_s, done):
    assert count_rounds(time_s, round_s) == pytest.approx(done, rel=1e-11)


@given(rounds=st.integers(0, 10**6), round_s=st.floats(1e-9, 1e6), part=st.floats(1e-6, 1 - 1e-6))
def test_a_multiple_of_a_round_holds_it_so_often_and_a_part_more_no_oftener(rounds, round_s, part):
    assert count_rounds(rounds * round_s, round_s) == rounds
    assert count_rounds((rounds + part) * Fraction(round_s), round_s) == rounds
    assert most_rounds(rounds * round_s, np.array([round_s])) >= rounds


@pytest.mark.parametrize(
    ("time_s", "round_s", "match"), [(math.inf, 1, "finite; got"), (-1, 1, "0 <= time_s"), (1, 0, "got 0 s")]
)
def test_no_budget_and_no_round_are_refused(time_s, round_s, match):
    with pytest.raises(ValueError, match=match):
        count_rounds(time_s, round_s)


BUDGET = re.compile(r"^(time|budget|horizon|until|deadline)(_s)?$|_(budget|horizon)(_s)?$")
PERIOD = re.compile(r"_s$|^seconds|^each$|^period|^interval|^length|^round")
WALD = "a run that ends with the first averaging after T makes T/(Y + D/tau) steps or more on average"
NOT_COUNTED = {  # a budget over a period that is no count of whole rounds, with the reason
    "bounds/runtime/rounds.py": "the one function that counts, and the lattice of the renewal functions",
    "bounds/plan/local_updates.py float(self.time_s or 0) / seconds": "a limit of the search, without whole rounds",
    "gpu_validation/processes/quorum.py (time.monotonic() - began) / self.timeout_s": "a share of a time limit",
    "operators/laws/mean.py 2 * budget.most_seconds / pace_s": "how many draws fit into the seconds of a test",
    "bounds/plan/local_updates.py time_s / seconds": "a limit of a search; the option found is counted in whole rounds",
    "bounds/runtime/renewal.py (tail.lower_s + least) / (time_s + cut)": "an elementary bound on E 1/N",
    "bounds/tau/tau_convex.py time_s / (step_s + delay_s / tau)": WALD,
    "bounds/tau/tau_smooth.py 2 * gap * delay_s / (eta * time_s * tau)": WALD,
    "bounds/tau/tau_third_order.py 2 * gap * delay_s / (eta * time_s * tau)": WALD,
    "bounds/theorems/seconds.py time_s / (step_s + delay_s / tau)": WALD,
    "bounds/theorems/seconds.py time_s / (step_s + sp.Max(0, delay_s - in_flight * step_s) / tau)": WALD,
    "gpu_validation/studies/runs/training.py run.budget_s / run.step.mean_s": "how many random step times are drawn",
    "gpu_validation/studies/overlap_problems.py budget_s(ratio) / length_s": "rounds to compute, rounded up",
}


def _names(node):
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _divisions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            yield node, node.left, node.right
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in DIVIDES:
            yield node, *node.args[:2]


DIVIDES = ("divmod", "floor_divide", "divide", "true_divide")


def test_no_other_place_divides_a_budget_by_a_period():
    root, found = Path(bounds.__file__).parents[1], set()
    for package in ("bounds", "operators", "ratedist", "gpu_validation"):
        for file in sorted((root / package).rglob("*.py")):
            place = str(file.relative_to(root))
            if place in NOT_COUNTED:
                continue
            for node, left, right in _divisions(ast.parse(file.read_text())):
                for budget, period in ((left, right), (right, left)):
                    others = {name for name in _names(period) if not BUDGET.search(name)}
                    if any(map(BUDGET.search, _names(budget))) and any(map(PERIOD.search, others)):
                        found.add(f"{place} {ast.unparse(node)}")
    assert found == set(NOT_COUNTED) - {place for place in NOT_COUNTED if " " not in place}
