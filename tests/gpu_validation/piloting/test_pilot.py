"""A pilot: exact on quadratics, undone afterwards, and what it says of links, noise and operators."""

import itertools
import json
import math
import os
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import torch.distributed as dist

import ratedist as rd
from gpu_validation import pilot, run_ranks
from gpu_validation.piloting.own_training import Training, again_and_again
from operators import ErrorFeedback, Key, ScaledSign
from ratedist.interfaces.cli import main
from ratedist.pilots.timings import ALL, BETWEEN, INSIDE, LinkTimings

D, ETA, L = 30, 0.1, 2.0
QUICK = {"operators": ["scaled_sign"], "taus": (1, 2, 4), "moments": 3}


class Point(torch.nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.x = torch.nn.Parameter(torch.linspace(0.5, 1.5, D))
        self.drop = torch.nn.Dropout(dropout)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))


def quadratic(model, batch):
    model.seen += 1
    return 0.5 * L * model.drop(model.x).square().sum() + batch @ model.x


def trained(eta=ETA, dropout=0.0):
    model = Point(dropout)
    return model, torch.optim.SGD(model.parameters(), lr=eta)


def nothing():
    return itertools.repeat(torch.zeros(D))


def noise(sd, seed=0):
    draw = torch.Generator().manual_seed(seed)
    while True:
        yield sd * torch.randn(D, generator=draw)


def test_on_a_quadratic_survival_and_curvature_are_exact():
    found = pilot(*trained(), quadratic, nothing(), **QUICK)
    for row in found.survival:
        assert row == pytest.approx([(1 - ETA * L) ** tau for tau in (1, 2, 4)], rel=1e-5)
    assert np.allclose(found.secants, L, rtol=1e-4)
    left = (1 - ETA * L) ** np.array((1, 2, 4))
    energies = np.array(found.small_norms2)[:, None]
    assert np.allclose(found.falls, energies * (1 - left) / L, rtol=1e-4)
    assert np.allclose(found.bends, energies * (1 - left) ** 2 / L, rtol=1e-4)
    assert found.curvature() == pytest.approx(L, rel=1e-4)
    assert found.noise().trace.value == pytest.approx(0, abs=1e-6)
    assert len(found.step_s[0]) == len(found.losses) == 3 * 4
    assert found.losses[0] > found.losses[-1]


@pytest.mark.parametrize("Q", [0.5, 2.0])
def test_on_a_cubic_the_lipschitz_constant_of_the_hessian_is_exact(Q):
    """Along the path the third derivative is Q: the estimate is Q, and Q/2 would be noticed; on a quadratic it is 0."""
    model, optimizer = trained()
    direction = torch.nn.functional.normalize(model.x.detach().clone(), dim=0)

    def cubic(model, batch):
        return quadratic(model, batch) + Q * (direction @ model.x) ** 3 / 6

    before = model.x.detach().clone()
    found = pilot(model, optimizer, cubic, nothing(), **QUICK)
    assert found.second_secants == pytest.approx([Q] * len(found.second_secants), rel=1e-3)
    assert found.hessian_lipschitz() == pytest.approx(Q, rel=1e-3)
    assert "no bounds: Hessian" in str(found.answer().facts["third order"])
    assert found.learning_rate == ETA
    assert bool((model.x == before).all())
    assert pilot(*trained(), quadratic, nothing(), **QUICK).hessian_lipschitz() < 1e-3


@pytest.mark.parametrize(
    ("optimizer", "rate"),
    [(torch.optim.SGD, ETA), (partial(torch.optim.SGD, momentum=0.5), 2 * ETA), (torch.optim.Adam, 0.0)],
)
def test_the_learning_rate_is_that_of_sgd_over_one_minus_momentum(optimizer, rate):
    model = Point()
    assert Training(model, optimizer(model.parameters(), lr=ETA), quadratic, nothing()).rate() == pytest.approx(rate)


@pytest.mark.parametrize(("share", "kurtosis"), [(1.0, 1 + 4 / D), (1 / 8, 8 * (1 + 2 / D) + 2 / D)])
def test_the_kurtosis_is_that_of_the_noise(share, kurtosis):
    """Gaussian batches, all of them or one in eight: the estimate adds 2/D of inner products of independent noises."""

    def rare():
        draw = torch.Generator().manual_seed(1)
        while True:
            yield (torch.rand((), generator=draw) < share) * torch.randn(D, generator=draw)

    model = Point()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-30)
    found = pilot(model, optimizer, quadratic, rare(), **QUICK | {"moments": 400, "taus": (1,)})
    assert found.kurtosis() == pytest.approx(kurtosis, rel=0.25)
    assert replace(found, noise_norms2=()).kurtosis() is None


def test_noise_is_that_of_the_batches():
    model = Point()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-30)
    found = pilot(model, optimizer, quadratic, noise(0.5), **QUICK | {"moments": 200, "taus": (1,)})
    square = float((L * model.x).detach().square().sum())
    scale = found.noise()
    assert scale.trace.interval.lo <= 0.25 * D <= scale.trace.interval.hi
    assert scale.gradient2.value == pytest.approx(square, rel=0.05)
    assert scale.scale.interval.lo <= 0.25 * D / square <= scale.scale.interval.hi
    assert scale.scale.interval.hi < 2 * 0.25 * D / square


def test_dropout_drops_the_same_when_a_gradient_is_taken_again():
    found = pilot(*trained(eta=1e-30, dropout=0.5), quadratic, nothing(), **QUICK)
    assert np.array_equal(found.survival, np.ones((3, 3)))
    assert found.curvature() == 0


class Loader:
    """Three batches, as often as one asks for them."""

    def __init__(self):
        self.begun = 0

    def __iter__(self):
        self.begun += 1
        return iter([torch.full((D,), float(i)) for i in range(3)])


def test_a_loader_that_ends_is_begun_anew_and_an_iterator_is_not():
    loader = Loader()
    assert [float(x[0]) for x in itertools.islice(again_and_again(loader), 7)] == [0, 1, 2, 0, 1, 2, 0]
    assert [float(x[0]) for x in again_and_again(iter(loader))] == [0, 1, 2]
    assert list(again_and_again([])) == []
    endless = itertools.count()
    assert again_and_again(endless) is endless, "what the training loop goes on with"
    begun = loader.begun
    model, optimizer = trained()
    pilot(model, optimizer, quadratic, loader, **QUICK)
    assert loader.begun > begun + 1


def test_the_run_is_as_it_was_bit_for_bit_also_after_an_error():
    model, _ = trained()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    quadratic(model, torch.ones(D)).backward()
    optimizer.step()
    before = json.dumps(_state(model, optimizer))
    pilot(model, optimizer, quadratic, noise(1.0), **QUICK)
    assert json.dumps(_state(model, optimizer)) == before
    with pytest.raises(ValueError, match="the batches have ended before the pilot: give more of them"):
        pilot(model, optimizer, quadratic, iter([torch.ones(D)] * 6), **QUICK)
    assert json.dumps(_state(model, optimizer)) == before


def _state(model, optimizer):
    values = [*model.state_dict().values(), model.x.grad, torch.get_rng_state()]
    values += list(optimizer.state_dict()["state"][0].values())
    return [torch.as_tensor(value).tolist() for value in values]


def test_error_feedback_is_that_of_consecutive_steps():
    found = pilot(*trained(), quadratic, noise(0.1), **QUICK | {"taus": (5,)})
    model, optimizer = trained()
    batches, method = noise(0.1), ErrorFeedback(ScaledSign())
    state, expected = method.init(D), []
    for _ in range(3):
        _step(model, optimizer, next(batches))
    for moment in range(3):
        next(batches), next(batches)
        for _ in range(5):
            _step(model, optimizer, next(batches))
            if moment == 2:
                state, _ = method.encode(state, model.x.grad, key=Key(0))
                expected.append(float(state["residual"].norm() / model.x.grad.norm()))
    (trial,) = found.operators
    assert trial.residuals == pytest.approx(expected, rel=1e-5)
    assert trial.bits == ((D + 32) / D,) * 3
    assert all(0 < nmse < 1 for nmse in trial.nmse)


def _step(model, optimizer, batch):
    optimizer.zero_grad()
    quadratic(model, batch).backward()
    optimizer.step()


# -- the file, and what a plan takes from it -----------------------------------------------------------------
def test_the_file_is_the_pilot_and_anything_else_is_refused(tmp_path, capsys):
    file = tmp_path / "pilot.json"
    found = pilot(*trained(), quadratic, noise(0.1), **QUICK, path=file)
    assert rd.pilot(str(file)) == found
    assert os.listdir(tmp_path) == ["pilot.json"]
    assert main(["pilot", str(file)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("30 trained parameters", "noise scale", "after 4 local steps", "scaled_sign", "at least 2"):
        assert words in text
    assert main(["pilot", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["d"] == D
    stated = json.loads(file.read_text())
    for wrong, words in (
        ("{", "is no JSON"),
        ("[]", "is no pilot of version 1 or 2; got version None"),
        (json.dumps(stated | {"version": 3}), "is no pilot of version 1 or 2; got version 3: make a new one"),
        (json.dumps({n: v for n, v in stated.items() if n != "links"}), "is no pilot"),
        (json.dumps(stated | {"colour": 1}), "is no pilot"),
    ):
        file.write_text(wrong)
        assert main(["pilot", str(file)]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert main(["pilot", str(tmp_path / "none")]) == 2
    assert "is no file: give the path that" in capsys.readouterr().err


def test_a_plan_takes_steps_codecs_and_links():
    found = pilot(*trained(), quadratic, nothing(), **QUICK | {"operators": ["qsgd:4", "tcdq:omega=1"]})
    with pytest.raises(ValueError, match="no link all ranks was measured; got none, for one process sends nothing"):
        found.cluster(workers=64)
    cluster = found.cluster(workers=64, bandwidth_bit_per_s=1e9, latency_s=1e-4)
    assert cluster.step_s == pytest.approx(np.mean(found.step_s))
    ranking = rd.plan(
        d=10**6, cluster=cluster, codec=found.codecs(), operators=list(found.codecs()), target=0.1
    ).ranking
    assert {choice.operator for choice in ranking} == set(found.codecs())


class Slow(torch.autograd.Function):
    """The identity, whose passes take so long."""

    @staticmethod
    def forward(ctx, x, forward_s, backward_s):
        ctx.backward_s = backward_s
        time.sleep(forward_s)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.backward_s)
        return gradient, None, None


@pytest.mark.parametrize(("forward_s", "backward_s"), [(0.03, 0.01), (0.01, 0.03)])
def test_the_backward_pass_is_timed_by_itself(forward_s, backward_s):
    def loss(model, batch):
        return Slow.apply(quadratic(model, batch), forward_s, backward_s)

    timed = pilot(*trained(), loss, noise(0.1), **QUICK)
    for step, backward in zip(timed.step_s[0], timed.backward_s[0], strict=True):
        assert backward_s <= backward <= step - forward_s
    share = sum(timed.backward_s[0]) / sum(timed.step_s[0])
    link = {"workers": 4, "bandwidth_bit_per_s": 1e9, "latency_s": 1e-4}
    assert timed.cluster(**link).backward_share == pytest.approx(share)
    assert (share < 0.5) == (backward_s < forward_s)
    before = replace(timed, backward_s=()).cluster(**link)
    assert before.backward_share is None, "a pilot without it, which a prediction says"


def test_sums_at_once_are_the_measured_groups_and_no_other_networks():
    timings = LinkTimings(ALL, 2, (1 << 12, 1 << 16, 1 << 20), (1e-3, 2e-3, 1e-2))
    measured = replace(pilot(*trained(), quadratic, nothing(), **QUICK), links=(timings,), sums_at_once=2)
    assert measured.cluster(workers=8).sums_at_once == 2
    assert measured.cluster(workers=8, bandwidth_bit_per_s=1e9, latency_s=1e-4).sums_at_once == 1
    assert measured.cluster(workers=8, sums_at_once=3).sums_at_once == 3


def test_a_prediction_holds_what_is_so_on_a_noisy_quadratic():
    """One curvature: an error of omega costs omega eta L (|g|^2 + V)/m of |g|^2 (2 - eta L) - eta L V/m."""
    eta, sd, m, d = 0.001, 0.5, 4, D
    found = pilot(*trained(eta), quadratic, noise(sd), operators=["qsgd:4"], taus=(1,), moments=100)
    square, variance = found.noise().gradient2.value, sd**2 * d
    cluster = rd.Cluster(workers=m, compute="constant", step_s=0.1)
    prediction = found.predict(cluster, operator="qsgd:4").progress_per_step
    omega = float(np.mean(found.operators[0].nmse))
    curved = eta * L
    lost = omega * curved * (square + variance) / m / ((2 - curved) * square - curved * variance / m)
    assert prediction.value == pytest.approx(1 - lost, abs=0.1 * lost)
    assert 1 - lost in prediction.interval
    assert prediction.interval.width < 2 * lost


@pytest.mark.parametrize("ranks", [2, 5])
def test_a_link_is_that_of_a_ring_which_takes_these_seconds(ranks):
    latency_s, bit_per_s = 2e-4, 3e9
    cluster = rd.Cluster(workers=ranks, latency_s=latency_s, bandwidth_bit_per_s=bit_per_s)
    lengths = [4096 * 4**i for i in range(6)]
    seconds = [cluster.averaging_s(8 * length, "sum").midpoint for length in lengths]
    link = LinkTimings(ALL, ranks, tuple(lengths), tuple(seconds)).link()
    assert (link.latency_s, link.bandwidth_bit_per_s) == (pytest.approx(latency_s), pytest.approx(bit_per_s))


@pytest.mark.parametrize("last_s", [0.09, 0.1])
def test_sums_that_take_no_longer_for_more_bytes_give_no_link(last_s):
    with pytest.raises(ValueError, match="took no longer for longer vectors"):
        LinkTimings(ALL, 2, (1000, 2000, 4000), (0.1, 0.1, last_s)).link()


@pytest.mark.parametrize("seconds", [0.1, 0.5, 1 / 3])
def test_a_slope_of_rounding_errors_is_no_bandwidth(seconds):
    """Equal seconds are fitted with 5e-21 s a byte, which would be 2e21 bit/s."""
    with pytest.raises(ValueError, match="took no longer for longer vectors"):
        LinkTimings(ALL, 4, (1000, 2000, 4000, 8000), (seconds,) * 4).link()


# -- real ranks ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("ranks", "each"), [(2, 1), pytest.param(4, 2, marks=pytest.mark.thorough)])
def test_ranks_measure_together(ranks, each, tmp_path):
    file = tmp_path / "pilot.json"

    def work(place, emit):
        torch.set_num_threads(1)
        emit(dist.group.WORLD._get_backend(torch.device("cpu")).options._threads)
        given = QUICK | {"ranks_per_node": each, "most_bytes": 1 << 18, "path": file}
        emit(pilot(*trained(), quadratic, noise(0.5, seed=place.rank), **given))

    emitted = list(run_ranks(work, processes=ranks, hang_timeout_s=60))
    made = [each for each in emitted if isinstance(each, rd.Pilot)]
    assert len(made) == ranks
    found = rd.pilot(str(file))
    assert found in made
    assert all(other.step_s == found.step_s and other.links == found.links for other in made)
    assert all(other.survival == found.survival and other.bends == found.bends for other in made)
    assert {each for each in emitted if isinstance(each, int)} == {found.sums_at_once}, "gloo's own number"
    assert [len(row) for row in found.backward_s] == [len(row) for row in found.step_s]
    assert (found.ranks, len(found.small_norms2)) == (ranks, 3 * ranks)
    levels = {timings.level: timings.ranks for timings in found.links}
    assert levels == ({ALL: 2} if ranks == 2 else {ALL: 4, INSIDE: 2, BETWEEN: 2})
    for timings in found.links:
        assert len(timings.seconds) == 4 * 5
        assert min(timings.seconds) > 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"moments": 1}, "a pilot needs moments >= 2 and rising whole taus >= 1; got moments = 1"),
        ({"taus": (2, 1)}, "rising whole taus"),
        ({"taus": ()}, "rising whole taus"),
        ({"taus": (0.5, 1)}, "rising whole taus"),
        ({"operators": ["ef"]}, "ef"),
    ],
)
def test_refusals(change, match):
    with pytest.raises(ValueError, match=match) as refusal:
        pilot(*trained(), quadratic, nothing(), **QUICK | change)
    assert "\n" not in str(refusal.value)


def test_what_cannot_be_measured_is_said():
    with pytest.raises(
        ValueError, match="needs parameters of the model that the optimizer steps and that require a gradient; got none"
    ):
        pilot(torch.nn.Linear(2, 1).requires_grad_(False), trained()[1], quadratic, nothing(), **QUICK)
    with pytest.raises(ValueError, match="a gradient of the pilot is zero"):
        pilot(*trained(), lambda model, batch: 0 * model.x.sum(), nothing(), **QUICK)
    with pytest.raises(ValueError, match="not finite"):
        pilot(*trained(), lambda model, batch: math.inf * model.x.sum(), nothing(), **QUICK)
