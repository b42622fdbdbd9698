import numpy as np
import pytest
import sympy as sp

from bounds.schedules import AdaComm, Fixed, Observation
from bounds.tau import TauStar


def decide(rule, losses, etas=None, interval_s=10.0):
    """The taus at the starts of successive intervals."""
    state, taus = rule.init(), []
    for k, loss in enumerate(losses):
        eta = 0.1 if etas is None else etas[k]
        state, tau = rule(state, Observation(k * interval_s, 100 * k, eta, loss))
        taus.append(tau)
    return taus


@pytest.mark.parametrize(("ratio", "tau"), [(0.5, 15), (0.25, 10), (0.1, 7), (0.0, 1)])
def test_tau_follows_the_root_of_the_loss(ratio, tau):
    assert decide(AdaComm(20, 10.0), [4.0, 4.0 * ratio]) == [20, tau]


@pytest.mark.parametrize(("exponent", "tau"), [(0.0, 10), (0.5, 32), (1.5, 317)])
def test_a_tenfold_decay_multiplies_tau_by_the_power_of_ten(exponent, tau):
    assert decide(AdaComm(20, 10.0, eta_exponent=exponent), [4.0, 1.0], [0.1, 0.01]) == [20, tau]


def test_exponents_follow_from_theorem_2():
    tau_star = TauStar.derivation().minimiser
    gap, eta = (next(s for s in tau_star.free_symbols if s.name == name) for name in ("gap", "eta"))
    a, b = sp.symbols("a b", positive=True)
    ratio = tau_star.subs({gap: a * gap, eta: eta / b}, simultaneous=True) / tau_star
    assert sp.simplify(sp.powdenest(ratio, force=True) - sp.sqrt(a) * b ** sp.Rational(3, 2)) == 0


def test_a_known_infimum_is_subtracted():
    assert decide(AdaComm(20, 10.0, loss_inf=1.0), [5.0, 2.0]) == [20, 10]
    assert decide(AdaComm(20, 10.0, loss_inf=1.0), [5.0, 0.9]) == [20, 1]


def test_without_saturation_rule_tau_stalls_and_with_it_falls_to_one():
    losses = [4.0, 1.0] + [1.0] * 5
    assert decide(AdaComm(20, 10.0), losses) == [20] + [10] * 6
    assert decide(AdaComm(20, 10.0, gamma=0.5), losses) == [20, 10, 5, 3, 2, 1, 1]


def decayed_when_ready(rule, losses, *, due):
    """(interval of the decay, taus): a decay by ten that is due at an interval is done once the rule is ready."""
    state, eta, done, taus = rule.init(), 0.1, None, []
    for k, loss in enumerate(losses):
        if done is None and k >= due and rule.ready_to_decay(state):
            eta, done = eta / 10, k
        state, tau = rule(state, Observation(k * rule.interval_s, k, eta, loss))
        taus.append(tau)
    return done, taus


def test_a_decay_that_is_due_waits_until_tau_has_come_down_to_one():
    flat = [1.0] * 12
    halves = [20]
    while halves[-1] > 1:  # the scalar oracle: ceil(tau/2) down to 1
        halves.append(-(-halves[-1] // 2))
    assert halves == [20, 10, 5, 3, 2, 1]
    for due in (0, 1, 5):
        done, taus = decayed_when_ready(AdaComm(20, 10.0, gamma=0.5, eta_exponent=0.5), flat, due=due)
        assert done == len(halves)
        assert taus[: len(halves)] == halves
        assert taus[done] == 64  # the coupling: 20 sqrt(10), from there down again
    assert decayed_when_ready(AdaComm(20, 10.0, gamma=0.5), flat, due=8) == (8, [*halves, 1, 1, *halves[:4]])
    assert decayed_when_ready(AdaComm(1, 10.0), flat, due=0)[0] == 1


def test_before_the_first_decision_or_at_a_stalled_tau_no_decay_is_ready():
    rule = AdaComm(20, 10.0)
    assert not rule.ready_to_decay(rule.init())
    assert decayed_when_ready(rule, [4.0] + [1.0] * 11, due=0) == (None, [20] + [10] * 11)


def test_readiness_survives_a_checkpoint():
    rule = AdaComm(2, 10.0, gamma=0.5)
    state = rule.init()
    for k in range(2):
        state, _ = rule(state, Observation(10.0 * k, k, 0.1, 1.0))
    assert rule.ready_to_decay(rule.restore(state.to_dict()))


def test_saturation_near_one_still_shrinks():
    assert decide(AdaComm(5, 10.0, gamma=0.9), [1.0] * 6) == [5, 4, 3, 2, 1, 1]


def test_saturation_does_not_cancel_the_coupling():
    rule = AdaComm(20, 10.0, gamma=0.5, eta_exponent=0.5)
    assert decide(rule, [4.0, 4.0, 4.0, 4.0], [0.1, 0.1, 0.01, 0.01]) == [20, 10, 64, 32]


def test_a_rising_loss_is_clamped():
    assert decide(AdaComm(20, 10.0), [1.0, 100.0]) == [20, 200]
    assert decide(AdaComm(20, 10.0, cap=25), [1.0, 100.0]) == [20, 25]
    assert decide(AdaComm(20, 10.0, L=1.0), [1.0, 100.0], [0.1, 0.1]) == [10, 10]
    assert decide(AdaComm(20, 10.0, L=1.0), [1.0, 1.0], [0.1, 2.0]) == [10, 1]


def test_tau_changes_only_when_an_interval_begins():
    rule = AdaComm(20, 10.0)
    state, _ = rule(rule.init(), Observation(0.0, 0, 0.1, 4.0))
    for time_s in (3.0, 9.9):
        assert rule(state, Observation(time_s, 5, 0.1, 1.0)) == (state, 20)
    assert rule(state, Observation(10.1, 5, 0.1, 1.0))[1] == 10
    assert rule(state, Observation(57.0, 5, 0.1, 1.0))[1] == 10  # intervals may be skipped


def test_inside_an_interval_no_loss_is_needed_but_at_its_start_it_is():
    rule = AdaComm(20, 10.0)
    state, _ = rule(rule.init(), Observation(0.0, 0, 0.1, 4.0))
    assert rule(state, Observation(5.0, 5, 0.1))[1] == 20
    with pytest.raises(ValueError, match=r"none was observed at 12\.0 s: measure one"):
        rule(state, Observation(12.0, 9, 0.1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau_0": 0, "interval_s": 1.0}, "tau_0 must be an integer >= 1; got tau_0 = 0"),
        ({"tau_0": 5, "interval_s": 0.0}, "interval_s must be finite and > 0"),
        ({"tau_0": 5, "interval_s": 1.0, "gamma": 1.0}, "0 < gamma < 1; got gamma = 1.0"),
        (
            {"tau_0": 5, "interval_s": 1.0, "eta_exponent": -0.5},
            "eta_exponent must be finite and >= 0; got eta_exponent = -0.5",
        ),
        ({"tau_0": 5, "interval_s": 1.0, "eta_exponent": float("nan")}, "eta_exponent must be finite and >= 0"),
        ({"tau_0": 5, "interval_s": 1.0, "loss_inf": float("nan")}, "loss_inf must be finite; got loss_inf = nan"),
        ({"tau_0": 5, "interval_s": 1.0, "L": 0.0}, "L must be finite and > 0"),
        ({"tau_0": 5, "interval_s": 1.0, "cap": 0}, "cap must be an integer >= 1"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdaComm(**arguments)
    with pytest.raises(ValueError, match=r"the first loss must exceed loss_inf = 0\.0; got 0\.0"):
        decide(AdaComm(5, 1.0), [0.0])


def kinked_run(rule, *, seed, until_s=6000.0):
    """(final F, time to F <= .05): F' = x for x > 0 and .05 x below, d = 20, m = 32, Y = 1, D = 10, eta = .1."""
    rng = np.random.default_rng(seed)
    models = np.full((32, 20), 5.0)
    state, time_s, step, reached = rule.init(), 0.0, 0, None
    while time_s < until_s:
        mean = models[0]
        loss = float(np.where(mean > 0, mean**2, 0.05 * mean**2).sum() / 2)
        if reached is None and loss <= 0.05:
            reached = time_s
        state, tau = rule(state, Observation(time_s, step, 0.1, loss))
        for _ in range(tau):
            models = models - 0.1 * (np.where(models > 0, 1.0, 0.05) * models + rng.standard_normal(models.shape))
        models[:] = models.mean(axis=0)
        time_s, step = time_s + tau + 10.0, step + tau
    return loss, reached


def test_adaptation_ends_as_low_as_synchronous_training_on_a_kink_but_starts_late():
    adaptive = [kinked_run(AdaComm(100, 600.0), seed=s) for s in range(5)]
    fixed = {tau: [kinked_run(Fixed(tau), seed=s) for s in range(5)] for tau in (1, 20, 100)}
    final = {tau: np.mean([loss for loss, _ in runs]) for tau, runs in fixed.items()}
    assert final[1] < 0.03 < final[20] < 0.1 < final[100]
    assert np.mean([loss for loss, _ in adaptive]) < 0.03
    assert np.median([reached for _, reached in adaptive]) > 600  # one interval with tau = 100 is too long
    assert all(reached == 60 for _, reached in fixed[20])


@pytest.mark.parametrize(
    ("exponent", "etas", "losses", "tau"),
    [
        (1e6, [1.0, 0.1], [4.0, 4.0], 2**53),
        (1e6, [0.1, 1.0], [4.0, 4.0], 1),
        (1e6, [1.0, 0.1], [4.0, 0.0], 1),
        (1.5, [1e300, 1e-300], [4.0, 4.0], 2**53),
        (0.0, [1.0, 1.0], [1e-300, 1e308], 2**53),
    ],
)
def test_extreme_exponents_and_rates_do_not_overflow(exponent, etas, losses, tau):
    assert decide(AdaComm(20, 10.0, eta_exponent=exponent), losses, etas) == [20, tau]
    assert decide(AdaComm(20, 10.0, eta_exponent=exponent, cap=50), losses, etas) == [20, min(tau, 50)]
