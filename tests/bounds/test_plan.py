import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bounds import Property, all_bounds
from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from bounds.plan import Candidate, Conditioned, Infeasible, Smooth, plan
from bounds.plan.local_updates import BY_THE_CLOCK, Search
from bounds.runtime import Constant, Exponential, ParameterServer, Ring, RuntimeModel
from bounds.tau import compressed_optimum, tau_convex
from bounds.tau.in_eta import in_eta
from bounds.theorems.compressed_local_sgd import pasgd_compressed

DENSE = 8e6  # bits
NETWORK = ParameterServer(latency_s=0.0, bytes_per_s=1e6)  # a dense message among 8 workers: 16 s
RUNTIME = RuntimeModel(Constant(1.0), communication=NETWORK, m=8)
PROBLEM = Smooth(gap=1.0, L=1.0, sigma2=1.0)
CANDIDATES = (
    Candidate("dense", Unbiased(0.0), DENSE),
    Candidate("mild", Unbiased(0.25), DENSE / 8),
    Candidate("strong", Unbiased(3.0), DENSE / 64),
)


def error_by_hand(option, omega):
    """The joint bound in fractions, every float read as the decimal it prints."""
    eta, K, m = Fraction(str(option.eta)), option.steps, 8
    return 2 / (eta * K) + eta * (1 + 2 * Fraction(str(omega))) / m + eta**2 * (option.tau - 1)


@pytest.mark.parametrize("target", [0.3, 0.05, 0.004])
def test_target_is_met_exactly_and_with_no_round_to_spare(target):
    found = plan(CANDIDATES, runtime=RUNTIME, problem=PROBLEM, target=target)
    omegas = {candidate.name: candidate.claim.omega for candidate in CANDIDATES}
    for option in found.ranking:
        exact = error_by_hand(option, omegas[option.name])
        assert exact <= Fraction(option.error) <= Fraction(target)
        assert option.steps == option.rounds * option.tau
        assert option.seconds == pytest.approx(
            option.steps * RUNTIME.seconds_per_iteration(tau=option.tau, bits=option.bits / option.rounds)
        )
        eta = option.eta
        fewer = (option.rounds - 1) * option.tau
        assert fewer == 0 or 2 / (eta * fewer) + float(exact) - 2 / (eta * option.steps) > target


@pytest.mark.parametrize("budget_s", [40.0, 2000.0, 1e6])
def test_budget_is_never_exceeded_and_used_to_the_last_round(budget_s):
    found = plan(CANDIDATES, runtime=RUNTIME, problem=PROBLEM, time_s=budget_s)
    for option in found.ranking:
        assert option.seconds <= budget_s
        assert option.seconds + option.seconds / option.rounds > budget_s


@pytest.mark.parametrize(("name", "omega"), [("mild", 0.25), ("strong", 3.0)])
def test_no_rate_and_period_on_a_fine_grid_is_better(name, omega):
    at = {"gap": 1, "L": 1, "sigma2": 1, "m": 8, "omega": omega}
    eta, tau = np.geomspace(1e-4, 1, 1500)[:, None], np.arange(1, 80)[None]
    inside = pasgd_compressed.holds_at(**at, eta=eta, tau=tau, K=1)
    (candidate,) = (c for c in CANDIDATES if c.name == name)
    round_s = tau + RUNTIME.seconds_per_averaging(bits=candidate.bits)

    def bound(steps):
        return np.where(inside, 2 / (eta * steps) + eta * (1 + 2 * omega) / 8 + eta**2 * (tau - 1), np.inf)

    budget = plan([candidate], runtime=RUNTIME, problem=PROBLEM, time_s=2000.0).best
    assert budget.error <= bound(np.maximum(np.floor(2000 / round_s), 1e-9) * tau).min()
    target = plan([candidate], runtime=RUNTIME, problem=PROBLEM, target=0.05).best
    room = 0.05 - bound(1e300)
    steps = np.where(room > 0, 2 / (eta * np.maximum(room, 1e-300)), np.inf)
    assert target.seconds <= (np.ceil(steps / tau) * round_s).min()


def test_ranking_is_sorted_and_says_what_the_others_cost():
    found = plan(CANDIDATES, runtime=RUNTIME, problem=PROBLEM, target=0.05)
    seconds = [option.seconds for option in found.ranking]
    assert seconds == sorted(seconds)
    assert [option.relative_cost for option in found.ranking] == pytest.approx([s / seconds[0] for s in seconds])
    assert found.best is found.ranking[0]
    assert found.best.name == "mild"
    assert {option.theorem for option in found.ranking} == {"pasgd_iterations", "pasgd_compressed"}


def test_a_fast_network_needs_no_compression_and_a_slow_one_much():
    names = []
    for bytes_per_s in (1e10, 1e6, 1e4):
        runtime = RuntimeModel(Constant(1.0), communication=ParameterServer(0.0, bytes_per_s), m=8)
        names.append(plan(CANDIDATES, runtime=runtime, problem=PROBLEM, target=0.05, eta=0.02).best.name)
    assert names == ["dense", "mild", "strong"]


def test_stragglers_lengthen_the_planned_period():
    taus = []
    for step in (Constant(1.0), Exponential(1.0)):
        runtime = RuntimeModel(step, delay_s=0.5, m=8)
        taus.append(plan([CANDIDATES[0]], runtime=runtime, problem=PROBLEM, time_s=5000.0, eta=0.02).best.tau)
    assert taus[1] > taus[0]


@pytest.mark.parametrize(("latency_s", "tau", "u"), [(0.0, 9.283, 1.857), (5.0, 11.693, 1.654)])
def test_random_sparsifiers_lead_to_the_joint_optimum(latency_s, tau, u):
    ratios = np.geomspace(1, 6, 120)
    family = [Candidate(f"u={ratio:.4f}", Unbiased(ratio - 1), DENSE / ratio) for ratio in ratios]
    link = Ring(latency_s=latency_s / 14, bytes_per_s=1.75e6 / 20)  # a dense message takes 20 s among 8 workers
    runtime = RuntimeModel(Constant(1.0), communication=link, m=8)
    found = plan(family, runtime=runtime, problem=PROBLEM, time_s=2000.0, eta=0.05, dense_bits=DENSE)
    chosen = float(found.best.name.removeprefix("u="))
    assert found.joint.tau == pytest.approx(tau, rel=0.02)  # the whole rounds leave a little of the budget unused
    assert found.joint.u == pytest.approx(u, rel=0.02)
    assert found.best.tau == pytest.approx(tau, abs=1.1)
    assert chosen == pytest.approx(u, rel=0.1)
    ideal = compressed_optimum(
        gap=1, eta="0.05", L=1, sigma2=1, m=8, time_s=2000, step_s=1, message_s=20, latency_s=latency_s
    )
    assert ideal.value <= found.best.error <= 1.01 * ideal.value


def test_every_candidate_appears_and_the_impossible_ones_say_why():
    extra = (
        Candidate("sign", NoClaim("sign of a sum has no constant"), DENSE / 32),
        Candidate("topk", StrictlyContractive(0.99), DENSE / 50),
    )
    found = plan(CANDIDATES + extra, runtime=RUNTIME, problem=PROBLEM, target=0.05)
    assert len(found.ranking) == 5
    sign, topk = found.ranking[-2:]
    assert (sign.feasible, topk.feasible) == (False, False)
    assert "sign of a sum has no constant" in sign.reason
    assert "E|g|^2 <= G^2" in topk.reason
    assert sign.seconds == math.inf


def test_biased_compressors_are_planned_with_feedback_when_the_gradients_are_bounded():
    problem = Smooth(gap=1.0, L=1.0, sigma2=1.0, G=2.0)
    found = plan([Candidate("topk", Contractive(0.9), DENSE / 50)], runtime=RUNTIME, problem=problem, target=0.05)
    assert found.best.theorem == "qsparse"
    assert found.best.error <= 0.05


@pytest.mark.parametrize("d", [10**3, 1_300_000_000, 10**12])
def test_a_contraction_near_one_is_planned_as_its_own_algebra_says(d):
    gamma, m, target = Fraction(1, d), 8, 0.1
    problem = Smooth(gap=1.0, L=1.0, sigma2=1.0, G=10.0)
    candidate = Candidate("sign", Contractive(1 - 1 / d), DENSE)
    best = plan([candidate], runtime=RUNTIME, problem=problem, target=target).best
    eta = Fraction(str(best.eta))
    floor = 4 * eta / m + 8 * (4 * (1 - gamma**2) / gamma**2 + 1) * eta**2 * 100 * best.tau**2
    assert best.error <= target
    assert float(4 / (eta * best.steps) + floor) == pytest.approx(target, rel=1e-3)


def test_the_theorem_of_biased_compressors_never_favours_compression():
    problem = Smooth(gap=1.0, L=1.0, sigma2=1.0, G=2.0)
    family = [Candidate(f"{kept:.2f}", Contractive(1 - kept), DENSE * kept) for kept in (0.1, 0.3, 0.6, 0.9)]
    ranking = plan(family, runtime=RUNTIME, problem=problem, target=0.05).ranking
    assert [option.name for option in ranking] == ["0.90", "0.60", "0.30", "0.10"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"target": 0.05, "eta": 1.5}, r"pasgd_iterations needs .*L\*eta.* <= 1; got .*eta = 1.5"),
        ({"target": 0.001, "eta": 0.1}, "the target 0.001 is not above 0.0125, .* at eta = 0.1: lower eta"),
        ({"time_s": 10.0}, "one round takes 17 s on average, more than time_s = 10.0: raise the budget"),
    ],
)
def test_infeasible_names_the_assumption_that_failed(limits, reason):
    with pytest.raises(Infeasible, match=reason) as caught:
        plan([CANDIDATES[0]], runtime=RUNTIME, problem=PROBLEM, **limits)
    assert list(caught.value.reasons) == ["dense"]
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("target", [1e-300, 5e-324])
def test_a_target_beyond_all_counting_is_refused_in_words(target):
    problem = Smooth(gap=1e300, L=1e300, sigma2=1e300)
    with pytest.raises(Infeasible, match="needs more steps than a float can count: raise it"):
        plan([CANDIDATES[1]], runtime=RUNTIME, problem=problem, target=target)
    with pytest.raises(Infeasible, match="larger than a float can hold: choose milder"):
        plan([CANDIDATES[1]], runtime=RUNTIME, problem=problem, time_s=100.0)


@pytest.mark.parametrize(("eta", "sigma2", "m", "target"), [(0.59, 2.3, 1, 1.357), (0.43, 2.3, 4, 0.24725)])
def test_a_target_on_the_floor_is_refused_although_rounding_puts_it_above(eta, sigma2, m, target):
    assert Fraction(str(eta)) * Fraction(str(sigma2)) / m >= Fraction(target)
    assert eta * (sigma2 / m) < target
    runtime, problem = RuntimeModel(Constant(1.0), 1.0, m=m), Smooth(gap=1.0, L=1.0, sigma2=sigma2)
    with pytest.raises(Infeasible, match=f"the target {target} is not above .* lower eta"):
        plan([CANDIDATES[0]], runtime=runtime, problem=problem, target=target, eta=eta)


def test_a_decimal_learning_rate_may_sit_on_the_edge_of_the_condition():
    problem = Smooth(gap=1.0, L=10.0, sigma2=1.0)  # 0.1 * 10 is 1, though not in binary
    found = plan([CANDIDATES[0]], runtime=RUNTIME, problem=problem, target=3.0, eta=0.1)
    assert found.best.tau == 1


def test_known_condition_number_ranks_by_rate_times_seconds_and_starts_dense():
    found = plan(CANDIDATES, runtime=RUNTIME, problem=Conditioned(kappa=100.0, dense_bits=DENSE), target=0.1)
    for option in found.ranking:
        (candidate,) = (c for c in CANDIDATES if c.name == option.name)
        omega = candidate.claim.omega
        start = 1 + 4 * omega * (1 + omega) * 8 / (8 + 6 * omega) ** 2
        steps = math.ceil(max(100 * (1 + 6 * omega / 8), 2 * omega + 2) * math.log(start / 0.1))
        assert (option.steps, option.tau) == (steps, 1)
        assert option.bits == DENSE + (steps - 1) * candidate.bits
        assert option.seconds == pytest.approx(steps + 16 + (steps - 1) * 16 * candidate.bits / DENSE)
    assert found.best.name == "mild"


def test_the_uncompressed_start_may_travel_another_way():
    problem = Conditioned(dense_bits=DENSE, dense_s=1000.0)
    (slow,) = plan([CANDIDATES[1]], runtime=RUNTIME, problem=problem, target=0.1).ranking
    (usual,) = plan([CANDIDATES[1]], runtime=RUNTIME, problem=Conditioned(dense_bits=DENSE), target=0.1).ranking
    assert slow.seconds - usual.seconds == pytest.approx(1000 - 16)
    with pytest.raises(ValueError, match="diana_distance sends one uncompressed gradient"):
        plan([CANDIDATES[1]], runtime=RUNTIME, problem=Conditioned(), target=0.1)
    assert plan([CANDIDATES[0]], runtime=RUNTIME, problem=Conditioned(), target=0.1).best.bits > 0


def test_a_recalled_rate_must_be_allowed():
    problem = Conditioned(method="adiana")
    with pytest.raises(Infeasible, match="adiana is recalled, not proved"):
        plan(CANDIDATES, runtime=RUNTIME, problem=problem, target=0.1)
    assert (
        plan(CANDIDATES, runtime=RUNTIME, problem=problem, target=0.1, allow_recalled=True).best.status.value
        == "recalled"
    )


def test_a_biased_compressor_has_no_rate_in_the_condition_number():
    topk = Candidate("topk", Contractive(0.9), DENSE / 50)
    found = plan([*CANDIDATES, topk], runtime=RUNTIME, problem=Conditioned(dense_bits=DENSE), target=0.1)
    assert "needs an unbiased operator" in found.ranking[-1].reason


def test_planning_is_pure():
    arguments = {"runtime": RUNTIME, "problem": PROBLEM, "target": 0.05}
    assert plan(CANDIDATES, **arguments) == plan(CANDIDATES, **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_s": 5.0}, "give either target or time_s"),
        ({"target": None}, "give either target or time_s"),
        ({"target": -1.0}, "target must be finite and > 0; got target = -1.0"),
        ({"problem": Smooth(0.0, 1.0, 1.0)}, "gap > 0"),
        ({"problem": Smooth(1.0, math.inf, 1.0)}, "all finite; got Smooth.*L=inf"),
        ({"problem": Conditioned(), "eta": 0.1}, "neither time_s nor eta"),
        ({"problem": Conditioned(method="marina")}, "method must be one of .*diana.*; got 'marina'"),
        ({"runtime": RuntimeModel(Constant(0.0), 1.0, m=2)}, "mean step time > 0; got 0.0"),
        ({"runtime": RuntimeModel(Constant(1.0), 1.0)}, "give m here or to RuntimeModel"),
        ({"problem": Smooth(1.0, 1.0, 0.0), "dense_bits": DENSE}, "sigma2 > 0"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {"runtime": RUNTIME, "problem": PROBLEM, "target": 0.05} | change
    with pytest.raises(ValueError, match=message):
        plan(CANDIDATES, **arguments)
    with pytest.raises(ValueError, match="bits must be finite and >= 0; got bits = -1 for 'x'"):
        Candidate("x", Unbiased(0), -1)


def test_no_candidate_is_infeasible():
    with pytest.raises(Infeasible, match="none was given"):
        plan([], runtime=RUNTIME, problem=PROBLEM, target=0.05)


def test_random_rounds_are_planned_by_the_mean_of_their_inverse():
    """Exponential rounds (one worker, no averaging): N is Poisson, and E 1/max(N, 1) > 1/E N decides."""
    runtime, budget = RuntimeModel(Exponential(1.0), m=1), 30.0
    (option,) = plan([CANDIDATES[0]], runtime=runtime, problem=PROBLEM, time_s=budget, eta=0.5).ranking
    probabilities = np.array([math.exp(-budget + n * math.log(budget) - math.lgamma(n + 1)) for n in range(300)])
    inverse = float(probabilities @ (1 / np.maximum(np.arange(300), 1)))
    truth = 2 / 0.5 * inverse + 0.5
    assert (option.theorem, option.tau) == ("pasgd_wall_clock", 1)
    assert truth <= option.error <= truth * (1 + 1e-3)
    assert option.error > 2 / 0.5 / budget + 0.5
    assert option.rounds <= budget


def test_every_method_has_its_form_in_time():
    problem = Smooth(gap=1.0, L=1.0, sigma2=1.0, G=2.0)
    family = [*CANDIDATES, Candidate("topk", Contractive(0.5), DENSE / 50)]
    found = plan(family, runtime=RUNTIME, problem=problem, time_s=2e4)
    assert {option.theorem for option in found.ranking} == {
        "pasgd_wall_clock",
        "pasgd_compressed_wall_clock",
        "qsparse_wall_clock",
    }


@pytest.mark.parametrize("candidate", CANDIDATES[:2], ids=lambda c: c.name)
@pytest.mark.parametrize("problem", [PROBLEM, Conditioned(dense_bits=DENSE)], ids=["smooth", "conditioned"])
def test_a_setting_must_imply_what_the_theorem_needs_of_problem_and_gradients(problem, candidate):
    arguments = {"runtime": RUNTIME, "problem": problem, "target": 0.1}
    assumed = plan([candidate], **arguments).best
    needs = all_bounds()[assumed.theorem].setting.needs
    given = {one for one in needs if one.kind in ("problem", "noise")}
    assert plan([candidate], **arguments, setting=given).best == assumed
    said = {Property.SMOOTH, Property.STRONGLY_CONVEX, Property.BOUNDED_BELOW, Property.BOUNDED_VARIANCE}
    for one in given - said:
        with pytest.raises(Infeasible, match="not covered") as refused:
            plan([candidate], **arguments, setting=given - {one})
        assert one.words in str(refused.value)
    with pytest.raises(ValueError, match="named properties; got 'banana'"):
        plan([candidate], **arguments, setting=["banana"])


@pytest.mark.parametrize("goal", [{"time_s": 1e6}, {"target": 0.01}, {"time_s": 1e6, "eta": 1e-3}, {"time_s": 5e4}])
def test_few_periods_are_looked_at_and_none_is_better(goal, monkeypatch):
    runtime, omega = RuntimeModel(Exponential(0.08), delay_s=6000.0, m=16), 0.125
    seconds, asked = RuntimeModel.seconds_per_iteration, []

    def counted(self, **at):
        asked.append(at["tau"])
        return seconds(self, **at)

    monkeypatch.setattr(RuntimeModel, "seconds_per_iteration", counted)
    best = plan([Candidate("mild", Unbiased(omega), 1.0)], runtime=runtime, problem=PROBLEM, **goal).best
    assert len(asked) < 250  # of some 3000 before
    wanted = {"gap": 1.0, "L": 1.0, "sigma2": 1.0, "m": 16, "omega": omega}
    search = Search(
        Candidate("mild", Unbiased(omega), 1.0),
        pasgd_compressed,
        wanted,
        runtime,
        *(goal.get(name) for name in ("target", "time_s", "eta")),
    )
    near = range(max(1, best.tau - 40), best.tau + 40)
    costs = [search._cost(tau) for tau in (*near, *range(1, 4000, 53))]
    assert search._cost(best.tau) <= min(costs) * (1 + 1e-12)


@pytest.mark.parametrize("goal", [{"target": 0.1}, {"time_s": 6e5}])
@pytest.mark.parametrize("noise", [1.0, 0.0])
def test_a_period_whose_rounds_are_nearly_constant_is_found_with_few_values(goal, noise, monkeypatch):
    seconds, asked = RuntimeModel.seconds_per_iteration, []

    def counted(self, **at):
        asked.append(at["tau"])
        return seconds(self, **at)

    monkeypatch.setattr(RuntimeModel, "seconds_per_iteration", counted)
    runtime = RuntimeModel(Constant(1e-6), delay_s=1e4, m=10**6)
    problem = replace(PROBLEM, L=1.2, sigma2=noise, gap=1.0)
    best = plan([Candidate("dense", Unbiased(0), 1.0)], runtime=runtime, problem=problem, **goal).best
    assert best.tau > 0
    assert len(asked) < 4000


@pytest.mark.parametrize("theorem", BY_THE_CLOCK)
@pytest.mark.parametrize("omega", [0.0, 0.3, 70.0])
def test_coefficients_in_rates_per_round_are_monotone_from_two_steps_on(theorem, omega):
    values = {"gap": 1.3, "L": 0.7, "sigma2": 2.1, "m": 3, "omega": omega, "omega1": omega, "omega2": omega / 2}
    values |= {"alpha": omega / (1 + omega), "G": 4.0}
    tau = np.concatenate([np.arange(2, 2000), 2 ** np.arange(11, 40)])
    form = in_eta(all_bounds()[theorem], **values, tau=tau)
    for ratio in (form.first / tau, form.second / tau**2.0, form.eta_max * tau):
        steps, slack = np.diff(ratio), 1e-12 * np.abs(ratio).max()
        assert (steps <= slack).all() or (steps >= -slack).all()


@pytest.mark.parametrize("method", ["diana", "diana_distance"])
def test_two_shots_have_the_rate_of_two_stages(method):
    problem = Conditioned(kappa=100, method=method, dense_bits=DENSE)
    candidate = Candidate("shots", Unbiased(0.5), DENSE / 8, Unbiased(0.25))

    best = plan([candidate], runtime=RUNTIME, problem=problem, target=0.1).best

    theorem = all_bounds()[f"two_shot_{method}"]
    assert best.theorem == theorem.name
    assert best.rounds == math.ceil(theorem(kappa=100, m=8, epsilon=0.1, omega1=0.5, omega2=0.25))


def test_two_shots_without_a_second_error_cost_what_gathering_does():
    shots = Candidate("shots", Unbiased(0.25), DENSE / 8, Unbiased(0.0))
    gathered = Candidate("gathered", Unbiased(0.25), DENSE / 8)

    best = plan([shots, gathered], runtime=RUNTIME, problem=PROBLEM, target=0.05)

    assert {option.theorem for option in best.ranking} == {"pasgd_two_shot", "pasgd_compressed"}
    assert best.ranking[0].rounds == best.ranking[1].rounds


def test_a_biased_first_stage_has_no_theorem_in_two_shots():
    candidate = Candidate("shots", Contractive(0.5), DENSE / 8, Unbiased(0.25))
    for problem in (PROBLEM, Conditioned(kappa=100, method="diana")):
        with pytest.raises(Infeasible, match="unbiased operators at both stages"):
            plan([candidate], runtime=RUNTIME, problem=problem, target=0.1)


@pytest.mark.parametrize("goal", [{"target": 0.05}, {"time_s": 2e4}, {"time_s": 2e4, "eta": 0.05}])
def test_a_convex_problem_is_never_planned_worse(goal):
    convex = Smooth(gap=1.0, L=1.0, sigma2=1.0, convex=True)
    known, unknown = (
        {o.name: o for o in plan(CANDIDATES, runtime=RUNTIME, problem=p, **goal).ranking} for p in (convex, PROBLEM)
    )
    for name, option in known.items():
        cost = "seconds" if "target" in goal else "error"
        assert getattr(option, cost) <= getattr(unknown[name], cost)
    assert known["dense"].theorem.startswith("pasgd_convex_sharp")
    assert known["dense"].tau > unknown["dense"].tau
    assert getattr(known["dense"], cost) < 0.8 * getattr(unknown["dense"], cost)


def test_on_a_convex_problem_tau_is_that_of_the_sharper_bound():
    runtime = RuntimeModel(Constant(1.0), delay_s=10.0, m=4)
    (option,) = plan(
        CANDIDATES[:1], runtime=runtime, problem=Smooth(1.0, 1.0, 1.0, convex=True), time_s=1e4, eta=0.05
    ).ranking
    at = {"gap": 1, "delay_s": 10, "eta": 0.05, "L": 1, "sigma2": 1, "time_s": 10**4, "m": 4}
    assert option.tau == tau_convex(**at).integer == 13
    rounds = math.floor(1e4 / 23)
    by_hand = 2 / (0.05 * 13 * rounds) + 0.05 / 4 + 0.75 * 0.05**2 * 12 / 8
    assert option.error == pytest.approx(by_hand, rel=1e-12)


def test_of_two_theorems_the_better_one_is_taken():
    """A coarse operator meets the condition of the convex form at a smaller learning rate only."""
    quiet, noisy = (Smooth(1.0, 1.0, sigma2, convex=True) for sigma2 in (1e-6, 1.0))
    theorems = [
        plan([CANDIDATES[2]], runtime=RUNTIME, problem=problem, target=0.05).best.theorem for problem in (quiet, noisy)
    ]
    assert theorems == ["pasgd_compressed", "pasgd_compressed_convex"]


def test_without_noise_a_convex_run_is_one_round_long():
    """Local steps then cost nothing, whatever tau is; the budget has to hold a round."""
    convex = Smooth(gap=1.0, L=1.0, sigma2=0.0, convex=True)
    option = plan(CANDIDATES[:1], runtime=RUNTIME, problem=convex, time_s=1000.5).best
    assert (option.rounds, option.tau) == (1, 984)  # and 16 s for the one averaging


def test_convexity_counts_as_known_where_a_setting_is_given():
    needs = all_bounds()["pasgd_convex_sharp"].setting.needs
    given = {one for one in needs if one.kind in ("problem", "noise")} - {Property.CONVEX}
    arguments = {"runtime": RUNTIME, "problem": Smooth(1.0, 1.0, 1.0, convex=True), "target": 0.1, "setting": given}
    assert plan(CANDIDATES[:1], **arguments).best.theorem == "pasgd_convex_sharp"


def test_every_theorem_is_covered_or_says_why_not():
    from bounds import Status, all_bounds, theorems
    from bounds.plan import coverage

    rows = coverage()
    assert set(rows) == {name for name, bound in all_bounds().items() if getattr(theorems, name, None) is bound}
    assert rows["pasgd_iterations"] == rows["diana"] == "covered"
    for name in ("scaffold", "fednova", "slowmo", "locodl", "correlated_bit_error"):
        assert rows[name].startswith("recalled")
    for name in ("stale_sgd", "ef21_noise", "fedadam", "fedadagrad", "fedyogi"):
        assert rows[name] == "a plan offers no such method"
    assert all(all_bounds()[name].status is not Status.RECALLED for name, why in rows.items() if why == "covered")


def test_a_method_whose_steps_do_not_all_exchange_has_no_total_of_bits():
    from bounds.total_communication import methods

    assert "locodl" not in methods()
    assert "diana" in methods()
