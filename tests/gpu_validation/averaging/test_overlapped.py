"""Averages in flight: the engine's five merge rules against the exact models of ``bounds.dynamics.outer``."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.dynamics import Quadratic
from bounds.dynamics.outer import Workers, blended, largest_lr, mean_model, stationary_variance
from gpu_validation import SGD, Nesterov
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import ring
from gpu_validation.averaging.outer import BlockMomentum
from operators import QSGD, Identity
from tests.gpu_validation.averaging.quadratics import common_model, growth, trajectory

ETA, TAU, DELAY = 0.125, 4, 2
PROBLEM = [1.0, 0.25]
RULES = {
    "overwrite": {"merge": Overwrite(delay=DELAY)},
    "overwrite, waited for": {"merge": Overwrite(delay=0)},
    "blended": {"merge": Overwrite(delay=DELAY, local_weight=0.25)},
    "blended, waited for": {"merge": Overwrite(delay=0, local_weight=0.5)},
    "corrected": {"merge": Corrected(delay=DELAY)},
    "corrected, whole round": {"merge": Corrected()},
    "delayed": {"merge": Delayed()},
    "eager": {"merge": Eager()},
}


def of_model(settings):
    """What the exact model calls the same."""
    merge = settings["merge"]
    name = type(merge).__name__.lower()
    return blended(merge.local_weight) if name == "overwrite" and merge.local_weight else name, merge.steps_in_flight(
        TAU
    )


@pytest.mark.parametrize("outer", [None, Nesterov(0.3, 0.5), SGD(0.2, 0.5)], ids=repr)
@pytest.mark.parametrize("name", RULES)
def test_the_common_model_moves_as_the_exact_model_says(name, outer):
    path, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=20, m=3, outer=outer, **RULES[name])

    merge, delay = of_model(RULES[name])
    workers = Workers.alike(Quadratic(PROBLEM, [1.0, 1.0], [0.0, 0.0]), m=3)
    theory = {} if outer is None else {"outer": outer.theory}
    expected = mean_model(workers, merge, eta=ETA, tau=TAU, delay=delay, rounds=20, **theory)
    np.testing.assert_allclose(path, expected[1:], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", RULES)
def test_workers_with_data_of_their_own_move_as_the_exact_model_says(name):
    centres = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.0]])

    def kicks(rank, step):
        return -np.array(PROBLEM) * centres[rank]

    path, _ = trajectory(
        PROBLEM, eta=ETA, tau=TAU, rounds=12, m=3, kicks=kicks, outer=Nesterov(0.3, 0.5), **RULES[name]
    )

    merge, delay = of_model(RULES[name])
    workers = Workers(np.tile(PROBLEM, (3, 1)), centres, np.zeros((3, 2)), np.ones(2))
    expected = mean_model(workers, merge, eta=ETA, tau=TAU, delay=delay, rounds=12, outer=Nesterov(0.3, 0.5).theory)
    np.testing.assert_allclose(path, expected[1:], rtol=0, atol=1e-13)


@pytest.mark.every(6)
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("name", ["corrected", "corrected, whole round", "delayed", "eager"])
def test_just_below_the_largest_outer_rate_it_converges_and_just_above_it_diverges(name, momentum):
    merge, delay = of_model(RULES[name])
    limit = largest_lr(merge, x=ETA, tau=TAU, delay=delay, m=2, momentum=momentum)

    below, above = (
        trajectory([1.0], eta=ETA, tau=TAU, rounds=600, outer=Nesterov(share * limit, momentum), **RULES[name])[0]
        for share in (0.98, 1.02)
    )
    assert growth(below) < 0.8
    assert growth(above) > 1.25


@pytest.mark.parametrize("name", ["corrected", "delayed", "eager"])
def test_the_variance_that_stays_is_the_formulas(name):
    """A unit of noise in one step of one worker leaves a trace; the sum of squares of all traces is the variance."""
    m, noise, outer = 2, 0.3, Nesterov(0.2, 0.5)

    def kicks(rank, step):
        return np.eye(TAU)[step] if rank == 0 and step < TAU else np.zeros(TAU)

    traces, _ = trajectory(
        [1.0] * TAU, eta=ETA, tau=TAU, rounds=300, start=np.zeros(TAU), kicks=kicks, outer=outer, **RULES[name]
    )
    merge, delay = of_model(RULES[name])
    workers = Workers.alike(Quadratic([1.0], [0.0], [noise]), m=m)
    expected = stationary_variance(workers, merge, eta=ETA, tau=TAU, delay=delay, outer=outer.theory)[0]
    assert m * noise * (traces**2).sum() == pytest.approx(expected, rel=1e-9)


def noise_of_a_step(rank, step):
    """Integers, so that all sums of few steps are exact."""
    return np.random.default_rng([rank, step]).integers(-8, 8, 2).astype(float)


def test_overwriting_is_blocking_with_fewer_steps_bit_for_bit():
    """The steps in flight draw noise that the blocking run never sees."""

    def kept(rank, step):
        round_index, k = divmod(step, TAU - DELAY)
        return np.sin(noise_of_a_step(rank, round_index * TAU + k))

    def all_of(rank, step):
        return np.sin(noise_of_a_step(rank, step))

    for outer in (None, Nesterov(0.7, 0.9)):
        blocking, _ = trajectory(PROBLEM, eta=0.1, tau=TAU - DELAY, rounds=20, m=3, kicks=kept, outer=outer)
        overwrite, _ = trajectory(
            PROBLEM, eta=0.1, tau=TAU, rounds=20, m=3, kicks=all_of, outer=outer, **RULES["overwrite"]
        )
        np.testing.assert_array_equal(overwrite, blocking)


def test_the_mean_iterate_of_the_corrected_merge_does_not_depend_on_the_delay_bit_for_bit():
    """Integers over powers of two: in few steps no sum is rounded, so that float64 tells the iterates apart exactly."""

    def mean_after(delay):
        overlap = {} if delay == 0 else {"merge": Corrected(delay=delay)}
        _, workers = trajectory(
            [1.0, 0.5], eta=0.25, tau=TAU, rounds=3, m=4, kicks=noise_of_a_step, start=[1.0, -3.0], **overlap
        )
        return sum(worker.model.x.detach().numpy() for worker in workers.engine.workers) / 4

    blocking = mean_after(0)
    for delay in range(1, TAU + 1):
        np.testing.assert_array_equal(mean_after(delay), blocking)


@pytest.mark.parametrize("fragments", [2, 3])
@pytest.mark.parametrize("merge", [Corrected(2), Overwrite(2), Delayed(), Eager()], ids=repr)
def test_every_fragment_moves_as_a_model_of_its_own(merge, fragments):
    """Part p ends its first round p + 1 P-ths of a period after the start."""
    tau, d, rounds = 6, 6, 5
    settings = {"eta": ETA, "tau": tau, "rounds": rounds, "outer": Nesterov(0.3, 0.5)}
    eigenvalues = [1.0] * d
    path, workers = trajectory(eigenvalues, merge=replace(merge, fragments=fragments), **settings)

    whole, _ = trajectory([1.0], merge=merge, **settings)
    last = path[:, -1]
    np.testing.assert_array_equal(last, whole[:, 0])
    assert [part.stop - part.start for part in workers.engine.overlapped.parts] == [d // fragments] * fragments
    assert len(set(path[-1].tolist())) == fragments


def test_a_message_in_flight_survives_a_restart():
    for name, settings in RULES.items():
        for stop in (3 * TAU - 1, 3 * TAU):
            whole, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=6, outer=Nesterov(0.3, 0.5), **settings)
            resumed = resumed_at(stop, settings)
            np.testing.assert_array_equal(resumed, whole[-1], err_msg=name)


def resumed_at(stop, settings):
    _, first = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=0, outer=Nesterov(0.3, 0.5), **settings)
    go_on(first, range(stop))
    _, second = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=0, outer=Nesterov(0.3, 0.5), **settings)
    for worker, before in zip(second.engine.workers, first.engine.workers, strict=True):
        worker.model.load_state_dict(before.model.state_dict())
    second.load_state_dict(first.state_dict())
    go_on(second, range(stop, 6 * TAU))
    return common_model(second)


def go_on(workers, steps):
    for _ in steps:
        for worker in workers.engine.workers:
            x = worker.model.x
            x.data -= ETA * torch.tensor(PROBLEM, dtype=torch.float64) * x.detach()
        workers.step()


@pytest.mark.parametrize("name", RULES)
def test_at_the_end_all_models_are_the_same_and_nothing_is_under_way(name):
    def kicks(rank, step):
        return [float(rank), 0.0]

    _, workers = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=3, kicks=kicks, **RULES[name])
    workers.average()

    first, second = (worker.model.x.tolist() for worker in workers.engine.workers)
    assert first == second
    assert workers.engine.overlapped.thetas()[0].tolist() == first


def test_what_cannot_work_is_refused():
    for given, words in (
        ({"merge": "late"}, r"merge must be Blocking\(\), .* or Eager\(\); got 'late'"),
        ({"merge": Corrected(delay=5)}, "0 <= delay <= tau; got delay = 5"),
        ({"merge": Corrected(fragments=3)}, "at most the number of parameters, 2; got 3"),
        ({"merge": Corrected(), "mixing": ring(2)}, "does not work with mixing"),
        ({"merge": Corrected(), "outer": BlockMomentum(0.5)}, "does not work with outer = BlockMomentum"),
        ({"merge": Eager(), "operator": Identity()}, "does not work with operator"),
    ):
        with pytest.raises(ValueError, match=words):
            trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=1, **given)


def test_compressed_movements_in_flight_are_those_of_waiting_workers():
    """overwrite sends what a blocking round of as many steps sends, by the same random stream."""
    blocking, _ = trajectory(PROBLEM, eta=ETA, tau=TAU - DELAY, rounds=9, operator=QSGD(levels=4))
    overwrite, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9, operator=QSGD(levels=4), **RULES["overwrite"])

    np.testing.assert_array_equal(overwrite, blocking)


def test_fragments_draw_from_streams_of_their_own():
    _, workers = trajectory(
        PROBLEM, eta=ETA, tau=TAU, rounds=0, operator=QSGD(levels=1), merge=Corrected(DELAY, fragments=2)
    )
    first, second = (part.exchange._key for part in workers.engine.overlapped.parts)
    assert first == workers.engine.settings.shared_key
    assert first != second
