"""Two rounds tell h: exactly without noise, within the interval with it, and for workers with Adam inside."""

import numpy as np
import pytest

from bounds.dynamics.outer import AVERAGING, OuterStep, largest_lr, probe, probe_of_products, share_of

EIGENVALUES = np.array([0.02, 0.1, 0.4, 1.0])
ETA, TAU = 0.2, 10
H = 1 - (1 - ETA * EIGENVALUES) ** TAU


def displacements(theta, m, noise, rng):
    """Delta_i of a round of SGD with additive noise from theta; exact in law."""
    kept = (1 - ETA * EIGENVALUES) ** 2
    variance = noise * ETA**2 * (1 - kept**TAU) / (1 - kept)
    return theta * H + np.sqrt(variance) * rng.standard_normal((m, len(theta)))


def probed(theta, *, outer=AVERAGING, m=4, noise=0.0, seed=0, corrects=True):
    """A probe of two rounds, the step between them, and the h along it."""
    rng = np.random.default_rng(seed)
    first = displacements(theta, m, noise, rng)
    after, _ = outer.apply(theta, np.zeros_like(theta), first.mean(0))
    step = theta - after
    second = displacements(after, m, noise, rng)
    return (
        probe(first, second, step=step, share=share_of(outer) if corrects else 0.0),
        step,
        float(step @ (H * step) / (step @ step)),
    )


@pytest.mark.parametrize("outer", [AVERAGING, OuterStep(0.7, 0.9), OuterStep(0.5, 0.9, nesterov=False)])
def test_without_noise_it_is_the_rayleigh_quotient(outer):
    result, _, truth = probed(np.array([3.0, -1.0, 2.0, 0.5]), outer=outer)
    assert result.h == pytest.approx(truth, rel=1e-12)
    assert result.interval.hi - result.interval.lo < 1e-12
    assert H.min() < result.h < H.max()


@pytest.mark.parametrize("index", range(4))
def test_along_one_direction_it_gives_the_limit_of_that_direction(index):
    theta = np.zeros(4)
    theta[index] = 1.0
    result, _, _ = probed(theta)
    for momentum in (0.0, 0.9):
        limit = largest_lr("blocking", x=ETA * EIGENVALUES[index], tau=TAU, momentum=momentum)
        assert result.largest_lr(momentum).lo == pytest.approx(limit, rel=1e-9)


@pytest.mark.every(2)
@pytest.mark.parametrize("outer", [AVERAGING, OuterStep(0.7, 0.9)])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_the_interval_covers_and_the_numerator_is_centred(outer, noise):
    """2000 probes: coverage at least 93 % of 95 asked, and <s, H s> within four standard errors; without the correction
    noise looks like curvature.
    """
    corrected, raw, covered = [], [], []
    for seed in range(2000):
        result, step, truth = probed(np.array([1.0, -0.5, 0.8, 0.3]), outer=outer, noise=noise, seed=seed)
        covered.append(result.interval.lo <= truth <= result.interval.hi)
        corrected.append((result.h - truth) * (step @ step))
        plain, _, _ = probed(np.array([1.0, -0.5, 0.8, 0.3]), outer=outer, noise=noise, seed=seed, corrects=False)
        raw.append((plain.h - truth) * (step @ step))
    assert np.mean(covered) >= 0.93
    errors = [abs(np.mean(values)) / np.std(values) * 2000**0.5 for values in (corrected, raw)]
    assert errors[0] < 4
    assert errors[1] > (4 if noise < 0.1 else 15)


def test_products_say_the_same_as_vectors():
    rng = np.random.default_rng(2)
    first, second, step = rng.normal(size=(5, 7)), rng.normal(size=(5, 7)), rng.normal(size=7)
    spread = ((first - first.mean(0)) ** 2).sum(1)
    products = probe_of_products(first @ step, second @ step, spread=spread, step_square=step @ step, share=0.7)
    assert products == probe(first, second, step=step, share=0.7)


def test_a_probe_of_adam_tells_the_next_displacement():
    """AdamW in 8 workers on least squares: h from a step of rate .5 predicts the displacement after one of rate 1."""
    torch = pytest.importorskip("torch")
    first, after_half, after_whole = _adam_rounds(torch)
    step = first.mean(0)
    half = probe(first, after_half, step=0.5 * step, share=0.5)
    whole = probe(first, after_whole, step=step, share=1.0)
    assert 0.05 < half.h < 1.5
    assert half.interval.lo <= whole.h <= half.interval.hi
    assert whole.interval.hi - whole.interval.lo < half.interval.hi - half.interval.lo


def _adam_rounds(torch, m=8, d=20, tau=20, rounds=12):
    """Displacements of one round, and of the next after an outer rate of .5 and of 1, from the same states of Adam."""
    drawn = torch.Generator().manual_seed(3)
    features = torch.randn(400, d, generator=drawn) * torch.logspace(-0.7, 0, d)
    target = features @ torch.randn(d, generator=drawn)

    def train(start, states, batches):
        ends, after = [], []
        for worker in range(m):
            x = start.clone().requires_grad_(True)
            adam = torch.optim.AdamW([x], lr=0.02, weight_decay=0.0)
            if states is not None:
                adam.load_state_dict(states[worker])
            for batch in batches[worker]:
                adam.zero_grad()
                ((features[batch] @ x - target[batch]) ** 2).mean().backward()
                adam.step()
            ends.append(x.detach())
            after.append(adam.state_dict())
        return start - torch.stack(ends), after

    theta, states = torch.zeros(d), None
    for _ in range(rounds):
        batches = torch.randint(0, 400, (m, tau, 32), generator=drawn)
        displaced, states = train(theta, states, batches)
        before, theta = theta, theta - 0.5 * displaced.mean(0)
    following = torch.randint(0, 400, (m, tau, 32), generator=drawn)
    half, _ = train(theta, states, following)
    whole, _ = train(before - displaced.mean(0), states, following)
    return displaced.numpy(), half.numpy(), whole.numpy()


def test_what_is_no_probe_is_refused():
    with pytest.raises(ValueError, match="needs two workers"):
        probe(np.ones((1, 3)), np.ones((1, 3)), step=np.ones(3), share=1.0)
    with pytest.raises(ValueError, match=r"\|step\|\^2 = 0"):
        probe(np.ones((2, 3)), np.ones((2, 3)), step=np.zeros(3), share=1.0)
    with pytest.raises(ValueError, match=r"must be \(m, d\) twice"):
        probe(np.ones((2, 3)), np.ones((2, 4)), step=np.ones(3), share=1.0)
