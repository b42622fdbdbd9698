"""Trial rounds: what they gain, written out step by step, and what they leave behind."""

import copy
import itertools

import numpy as np
import pytest
import torch

from gpu_validation import pilot, run_ranks
from gpu_validation.piloting.own_training import Training
from gpu_validation.piloting.rounds import Worker
from operators import Key, TopK
from ratedist.pilots.pilot import Pilot

ETA, D, M = 0.1, 6, 2
CURVED = np.array([[1.0, 0.5, 2.0, 0.2, 1.5, 1.0], [0.3, 2.0, 1.0, 1.0, 0.1, 0.7]])
CENTRES = np.array([[1.0, -1.0, 0.5, 2.0, 0.0, -2.0], [-1.0, 0.5, 1.5, -0.5, 1.0, 0.3]])
SAME = np.stack([CURVED[0]] * M), np.stack([CENTRES[0]] * M)
GIVEN = {"moments": 2, "taus": (1, 4), "operators": ["topk:0.5"], "rounds": 3, "round_taus": (1, 2, 4)}


class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.linspace(2, 3, D))


def quadratic(model, batch):
    h, c = batch
    return 0.5 * (h * (model.x - c) ** 2).sum()


def data(i, h=CURVED, c=CENTRES):
    return itertools.repeat((torch.tensor(h[i]).float(), torch.tensor(c[i]).float()))


def tried(h=CURVED, c=CENTRES, optimizer=torch.optim.SGD, **how):
    model = Point()
    workers = [data(i, h, c) for i in range(M)]
    made = optimizer(model.parameters(), lr=ETA, **how)
    return pilot(model, made, quadratic, data(0, h, c), worker_batches=workers, **GIVEN)


# -- an oracle -----------------------------------------------------------------------------------------------
def F(x, h, c):
    return 0.5 * float((h * (x - c) ** 2).sum(axis=1).mean())


def top_half(v):
    kept = np.zeros_like(v)
    largest = np.argsort(-abs(v), kind="stable")[: D // 2]
    kept[largest] = v[largest]
    return kept


def ended(x, tau, h, c, *, compressed, momentum=0.0):
    """Where the workers end after four steps, and what their residuals owe on average."""
    owed, moved = np.zeros((M, D)), np.zeros((M, D))
    for _ in range(4 // tau):
        changes = []
        for i in range(M):
            own = x.copy()
            for _ in range(tau):
                moved[i] = momentum * moved[i] + h[i] * (own - c[i])
                own = own - ETA * moved[i]
            change = x - own + owed[i]
            sent = top_half(change) if compressed else change
            owed[i] = change - sent if compressed else 0
            changes.append(sent)
        x = x - np.mean(changes, axis=0)
    return x, owed.mean(axis=0)


@pytest.mark.parametrize(("h", "c"), [(CURVED, CENTRES), SAME], ids=["different data", "same data"])
def test_falls_are_those_of_the_rounds_written_out(h, c):
    found, x = tried(h, c).rounds, np.linspace(2, 3, D)
    assert (found.workers, found.steps) == (M, 4)
    rows = {(row.operator, row.tau): row for row in found.rows}
    assert {tau for _, tau in rows} == {1, 2, 4}
    for moment in range(3):
        for (operator, tau), row in rows.items():
            end, owed = ended(x, tau, h, c, compressed=bool(operator))
            assert row.falls[0][moment] == pytest.approx(F(x, h, c) - F(end - owed, h, c), rel=1e-4)
            assert not operator or row.owed[0][moment] == pytest.approx(F(end, h, c) - F(end - owed, h, c), rel=1e-3)
        x, _ = ended(x, 1, h, c, compressed=False)


def test_local_steps_cost_nothing_on_the_same_data_and_something_on_other():
    same, other = tried(*SAME).rounds, tried().rounds
    for tau in (2, 4):
        assert same.kept("", tau, 0.9).value == pytest.approx(1, abs=1e-5)
        assert other.kept("", tau, 0.9).value < 0.999


def test_momentum_goes_on_where_the_path_goes_on():
    found = tried(momentum=0.5).rounds
    (row,) = (row for row in found.rows if (row.operator, row.tau) == ("", 4))
    x = np.linspace(2, 3, D)
    end, _ = ended(x, 4, CURVED, CENTRES, compressed=False, momentum=0.5)
    assert row.falls[0][0] == pytest.approx(F(x, CURVED, CENTRES) - F(end, CURVED, CENTRES), rel=1e-4)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_local_steps_of_an_adaptive_optimizer_are_divided_by_own_squares_from_the_start_of_a_trial(kind):
    """Where noise is most of a gradient, own squares are m times those of the mean, and a step is half for m = 4."""
    d, m = 400, 4

    def slope(model, noise):
        return ((1 + noise) * model.x).sum()

    def noise(seed):
        draw = torch.Generator().manual_seed(seed)
        while True:
            yield 8 * torch.randn(d, generator=draw)

    model = Point()
    model.x = torch.nn.Parameter(torch.zeros(d))
    workers = [noise(1 + i) for i in range(m)]
    given = GIVEN | {"rounds": 5, "round_taus": (1, 4), "worker_batches": workers}
    found = pilot(model, kind(model.parameters(), lr=1e-3), slope, noise(0), **given)
    falls = {(row.operator, row.tau): row.falls[0] for row in found.rounds.rows}
    late = [local / mean for local, mean in zip(falls["", 4], falls["", 1], strict=True)][2:]
    assert np.mean(late) == pytest.approx(1 / np.sqrt(m), rel=0.1)


def test_a_sum_of_squares_is_scaled_twice_and_others_are_left_alone():
    x = torch.nn.Parameter(torch.ones(3))
    for kind, name, expected in ((torch.optim.Adagrad, "sum", 4.0), (torch.optim.SGD, "momentum_buffer", 1.0)):
        optimizer = kind([x], lr=0.1)
        optimizer.state[x][name] = torch.ones(3)
        model = torch.nn.Module()
        model.x = x
        Worker(Training(model, optimizer, quadratic, data(0)), 0).scale_second_moments(torch.full((3,), 2.0))
        assert optimizer.state[x][name].tolist() == [expected] * 3


def test_model_optimizer_and_randomness_are_left_alone():
    model = Point()
    optimizer = torch.optim.Adam(model.parameters(), lr=ETA)
    quadratic(model, next(data(0))).backward()
    optimizer.step()
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict(), torch.get_rng_state()))
    pilot(model, optimizer, quadratic, data(0), worker_batches=[data(0), data(1)], **GIVEN)
    after = model.state_dict(), optimizer.state_dict(), torch.get_rng_state()
    assert torch.equal(after[0]["x"], before[0]["x"])
    assert all(torch.equal(after[1]["state"][0][name], before[1]["state"][0][name]) for name in ("step", "exp_avg"))
    assert torch.equal(after[2], before[2])


def test_a_loss_that_is_not_finite_is_no_progress():
    def diverging(model, batch):
        return quadratic(model, batch) * torch.where(model.x.sum() < 13, torch.inf, 1.0)

    model = Point()
    workers = [data(0), data(1)]
    found = pilot(model, torch.optim.SGD(model.parameters(), lr=1e-30), quadratic, data(0), **GIVEN | {"rounds": 0})
    assert found.rounds is None
    optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
    with pytest.raises(ValueError, match="not finite"):
        pilot(model, optimizer, diverging, data(0), worker_batches=workers, **GIVEN)


# -- real ranks ----------------------------------------------------------------------------------------------
def test_ranks_with_their_own_data_are_the_simulated_workers(tmp_path):
    def work(place, emit):
        torch.set_num_threads(1)
        model = Point()
        optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
        emit(pilot(model, optimizer, quadratic, data(place.rank), most_bytes=1 << 12, **GIVEN))

    by_ranks, alone = list(run_ranks(work, processes=M, hang_timeout_s=60)), tried().rounds
    for found in by_ranks:
        assert found.rounds.workers == M
        for row, other in zip(found.rounds.rows, alone.rows, strict=True):
            assert (row.operator, row.tau) == (other.operator, other.tau)
            assert row.falls[0] == pytest.approx(other.falls[0], rel=1e-5)


# -- bits ----------------------------------------------------------------------------------------------------
def test_bits_are_those_of_the_movement_of_an_adaptive_step():
    """The largest entries of a gradient and of Adam's movement have other places, and other lengths of gaps."""
    d, steps = 400, 4
    h = torch.logspace(-3, 0, d)

    def descend(model, batch):
        return 0.5 * (h * (model.x - batch) ** 2).sum()

    def started():
        model = Point()
        model.x = torch.nn.Parameter(1 + torch.sin(torch.arange(d) ** 2.0))
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    def bits(vector):
        top = TopK(0.05)
        return (top.encode(vector, key=Key(0)).bits - top.carried_bits(d)) / d

    def moved(before, after):
        model, optimizer = started()
        points = [model.x.detach().clone()]
        for _ in range(after):
            optimizer.zero_grad()
            descend(model, 0.0).backward()
            optimizer.step()
            points.append(model.x.detach().clone())
        return points[before] - points[after], model.x.grad

    zeros = itertools.repeat(torch.zeros(()))
    given = GIVEN | {"operators": ["topk:0.05"], "worker_batches": [zeros, zeros]}
    found = pilot(*started(), descend, zeros, **given)
    movement, gradient = moved(3, 4)  # after three steps that warm up
    assert found.operators[0].bits[0] == pytest.approx(bits(movement))
    assert bits(gradient) != pytest.approx(bits(movement), rel=0.01)
    row = next(row for row in found.rounds.rows if row.operator and row.tau == steps)
    assert row.bits[0][0] == pytest.approx(bits(moved(0, steps)[0]))
    assert found.rounds.rows[0].bits == ()


# -- the file ------------------------------------------------------------------------------------------------
def test_the_file_holds_them_and_that_of_the_first_version_has_none():
    found = tried()
    stated = found.to_dict()
    assert Pilot.from_dict(stated) == found
    older = {name: value for name, value in stated.items() if name != "rounds"} | {"version": 1}
    assert Pilot.from_dict(older).rounds is None
    for row in stated["rounds"]["rows"]:
        del row["bits"]
    assert Pilot.from_dict(stated).rounds.bits("topk:0.5", 2) is None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rounds": 1}, "trial rounds need rounds = 0 or rounds >= 2"),
        ({"round_taus": (1, 3, 4)}, "rising round_taus from 1 on that divide the largest"),
        ({"round_taus": (2, 4)}, "from 1 on"),
        ({"worker_batches": ()}, "need worker_batches of at least two workers; got 0"),
    ],
)
def test_refusals(change, match):
    model, given = Point(), {"worker_batches": [data(0), data(1)], **GIVEN}
    with pytest.raises(ValueError, match=match) as refusal:
        pilot(model, torch.optim.SGD(model.parameters(), lr=ETA), quadratic, data(0), **given | change)
    assert "\n" not in str(refusal.value)
