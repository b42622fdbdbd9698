"""Plans from a pilot against the exact enumeration of quadratics: choice, gain, limits, what is not distinguished."""

import itertools
import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest

import ratedist as rd
from bounds.dynamics import Quadratic
from ratedist.interfaces.cli import main
from ratedist.pilots.plan import moments_needed
from ratedist.plans.run import PlannedRun, Rhythm
from ratedist.records import to_json

from .quadratic_pilot import SPECTRA, exact_share, measured, path, pilot_of, problem

D, STEP_S, LOOKED_AT = 10**6, 0.5, tuple(range(1, 9))
CODEC = rd.Codec(3e-8, 2e-8)
MESSAGES = {  # bits per coordinate and relative squared error, as this pilot has seen them
    "qsgd:levels=4": (3.0, 1.0),
    "tcdq:omega=0.1": (6.0, 0.1),
    "randomk:fraction=0.03125": (1.0, 30.0),
}


def trial(name, bits, omega, residuals=(), moments=2):
    return rd.OperatorTrial(name, (bits,) * moments, (omega,) * moments, residuals, CODEC)


def pilot_on(quadratic, messages=MESSAGES, d=D, taus=LOOKED_AT):
    trials = [trial(name, bits, omega) for name, (bits, omega) in messages.items()]
    return pilot_of(path(quadratic, taus=taus), trials, d)


def flat(bandwidth_bit_per_s, latency_s=1e-3, workers=4):
    return rd.Cluster(
        workers=workers, compute="constant", step_s=STEP_S, bandwidth_bit_per_s=bandwidth_bit_per_s, latency_s=latency_s
    )


CLUSTERS = [flat(1e6), flat(3e7), flat(1e8), flat(1e9), flat(1e12), flat(1e9, latency_s=0.2), flat(1e8, workers=32)]


# -- an oracle -----------------------------------------------------------------------------------------------
def exchange_s(cluster, exchange, bits):
    """Seconds of the links and of coding, written out for a ring."""
    m, hop_s, bit_per_s = cluster.workers, cluster.latency_s, cluster.bandwidth_bit_per_s
    encode, decode = CODEC.encode_s_per_coordinate, CODEC.decode_s_per_coordinate
    if exchange == "sum":
        return 2 * (m - 1) * (hop_s + bits * D / m / bit_per_s), 0.0
    if exchange == "gather":
        return (m - 1) * (hop_s + bits * D / bit_per_s), D * (encode + m * decode)
    return 2 * (m - 1) * (hop_s + bits * D / m / bit_per_s), D * (encode * (1 + 1 / m) + 2 * decode)


def in_buckets_s(message_s, buckets):
    """Seconds of a step whose gradient leaves in equal buckets, one after the other, as the backward pass goes on."""
    free_s = 0.0
    for k in range(1, buckets + 1):
        ready_s = STEP_S / 3 + 2 / 3 * STEP_S * k / buckets
        free_s = max(free_s, ready_s) + message_s
    return free_s


def in_fragments_s(message_s, tau, parts, in_flight):
    """Seconds of a round in which every fragment leaves so many steps before it is merged, and who is early waits."""
    now_s = 0.0
    for _ in range(parts):
        sent_s = now_s + (tau // parts - in_flight) * STEP_S
        now_s = max(sent_s + in_flight * STEP_S, sent_s + message_s)
    return now_s


def rhythms():
    """(tau, in_flight, parts, buckets) of everything that is looked at, with gradients of at most eight steps' age."""
    yield 1, 0, 1, 2
    for tau in (1, 2, 4, 8):
        yield tau, 0, 1, 1
        for parts, in_flight in itertools.product((1, 2, 4, 8), repeat=2):
            if parts * in_flight <= tau and tau + in_flight <= 8:
                yield tau, in_flight, parts, 1


def round_s(cluster, exchange, bits, rhythm):
    tau, in_flight, parts, buckets = rhythm
    message_s, coding_s = (
        exchange_s(cluster, exchange, bits / parts / buckets)[0],
        exchange_s(cluster, exchange, bits)[1],
    )
    if buckets > 1:
        return in_buckets_s(message_s, buckets) + coding_s
    return in_fragments_s(message_s, tau, parts, in_flight) + coding_s


def enumerated(quadratic, cluster, messages=MESSAGES):
    """Exact time to a loss of every choice, over synchronous training's, which may use the backward pass too."""
    synchronous_s = min(round_s(cluster, "sum", 32, rhythm) for rhythm in ((1, 0, 1, 1), (1, 0, 1, 2)))
    ways = [("binary32", "sum"), *itertools.product(messages, ("gather", "two_shot"))]
    times, shares = {}, {}
    for (name, exchange), rhythm in itertools.product(ways, rhythms()):
        bits, omega = messages.get(name, (32, 0.0))
        tau, back = rhythm[0], omega if exchange == "two_shot" else 0.0
        if (omega, back, tau) not in shares:
            shares[omega, back, tau] = exact_share(quadratic, tau=tau, m=cluster.workers, omega=omega, omega2=back)
        share, taken_s = shares[omega, back, tau], round_s(cluster, exchange, bits, rhythm) / tau
        times[name, exchange, *rhythm] = taken_s / synchronous_s / share if share > 0 else math.inf
    return times


def asked_of(choice):
    """What ``Pilot.predict`` is asked for the same rhythm."""
    flight = {"overlap": True, "parts": choice.parts, "in_flight": choice.in_flight} if choice.overlap else {}
    return {"tau": choice.tau, "buckets": choice.buckets, **flight}


def key(choice):
    return choice.operator, choice.exchange, choice.tau, choice.in_flight, choice.parts, choice.buckets


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.in_words()[-40:])
@pytest.mark.parametrize("name", SPECTRA)
def test_the_choice_is_the_best_of_the_exact_enumeration(name, cluster):
    quadratic = problem(name)
    exact = enumerated(quadratic, cluster)
    plan = rd.plan(pilot=pilot_on(quadratic), cluster=cluster)
    assert {key(choice) for choice in plan.ranking} == set(exact)
    for choice in plan.ranking:
        if choice.tau <= 4:  # of longer rounds the path would have to be twice as long
            assert choice.ratio == pytest.approx(exact[key(choice)], rel=1e-9), choice.name
    assert exact[key(plan.best)] <= min(exact.values()) * (1 + 1e-9)
    ratios = [choice.ratio for choice in plan.ranking]
    assert ratios == sorted(ratios)


def test_no_choice_is_best_everywhere():
    best = {key(rd.plan(pilot=pilot_on(problem("even")), cluster=cluster).best) for cluster in CLUSTERS}
    assert len({operator for operator, *_ in best}) >= 2
    assert len({tau for _, _, tau, *_ in best}) >= 2
    assert {in_flight > 0 for *_, in_flight, _, _ in best} == {False, True}


def test_during_the_backward_pass_where_nothing_older_was_looked_at():
    pilot = pilot_on(problem("even"), taus=(1,))
    best = {key(rd.plan(pilot=pilot, cluster=cluster).best) for cluster in CLUSTERS}
    assert {tau for _, _, tau, *_ in best} == {1}
    assert {buckets for *_, buckets in best} == {1, 2}


def half_the_saving(monkeypatch):
    """Half of what the backward pass, or steps in flight, hide is paid for all the same."""
    seconds = PlannedRun.seconds.fget

    def paid(run):
        waiting = replace(run, rhythm=Rhythm(run.tau, 0, run.rhythm.parts, 1), link_scale=run.rhythm.buckets)
        return (
            (seconds(run) + seconds(waiting)) / 2 if run.rhythm.messages > 1 or run.rhythm.in_flight else seconds(run)
        )

    monkeypatch.setattr(PlannedRun, "seconds", property(paid))


def no_latency_of_fragments(monkeypatch):
    """A message of a part takes its share of what one of the whole takes."""
    of_whole = property(
        lambda run: run.way.cut(1 / run.rhythm.messages).communicate_s(run.cluster) / run.rhythm.messages
    )
    monkeypatch.setattr(PlannedRun, "message_s", of_whole)


def no_last_bucket(monkeypatch):
    monkeypatch.setattr(PlannedRun, "_after_s", lambda run: 0.0 if run.rhythm.buckets > 1 else run.message_s)


@pytest.mark.parametrize("wrong", [half_the_saving, no_latency_of_fragments, no_last_bucket])
def test_wrong_seconds_of_overlap_would_be_seen(wrong, monkeypatch):
    quadratic = problem("even")
    wrong(monkeypatch)
    misses = []
    for cluster in CLUSTERS:
        exact = enumerated(quadratic, cluster)
        plan = rd.plan(pilot=pilot_on(quadratic), cluster=cluster)
        misses += [abs(c.ratio / exact[key(c)] - 1) for c in plan.ranking if c.tau <= 4 and c.ratio < math.inf]
    assert max(misses) > 0.02


@pytest.mark.parametrize("wrong", ["half the error", "no latency"])
def test_a_wrong_model_would_be_seen(wrong):
    quadratic, losses = problem("even"), []
    for cluster in CLUSTERS:
        exact = enumerated(quadratic, cluster)
        errors = {name: (bits, 0.5 * omega) for name, (bits, omega) in MESSAGES.items()}
        if wrong == "half the error":
            plan = rd.plan(pilot=pilot_on(quadratic, errors), cluster=cluster)
        else:
            plan = rd.plan(pilot=pilot_on(quadratic), cluster=replace(cluster, latency_s=0))
        losses.append(exact[key(plan.best)] / min(exact.values()))
        misses = [abs(c.ratio / exact[key(c)] - 1) for c in plan.ranking if c.tau <= 4 and c.ratio < math.inf]
        assert max(misses) > 1e-3
    assert max(losses) > 1.01


def test_rows_are_the_predictions():
    pilot = pilot_on(problem("even"))
    plan = rd.plan(pilot=pilot, cluster=CLUSTERS[2])
    for choice in plan.ranking[::5]:
        way = "gather" if choice.exchange == "sum" else choice.exchange
        operator = None if choice.operator == "binary32" else choice.operator
        each = pilot.predict(CLUSTERS[2], operator=operator, exchange=way, **asked_of(choice))
        assert (choice.time_ratio, choice.progress_per_step) == (each.time_ratio, each.progress_per_step)
        assert (choice.seconds_per_step, choice.limits) == (each.seconds_per_step, each.limits)


def test_on_nodes_all_ways_are_searched():
    inside, between = rd.Link(1e12, 3e-6), rd.Link(1e9, 2e-5)
    cluster = rd.Cluster(nodes=4, gpus_per_node=8, inside=inside, between=between, step_s=STEP_S, compute="constant")
    plan = rd.plan(pilot=pilot_on(problem("even")), cluster=cluster)
    ways = {"sum", "gather", "two_shot", "node_gather", "node_two_shot"}
    assert {choice.exchange for choice in plan.ranking} == ways
    only = rd.plan(pilot=pilot_on(problem("even")), cluster=cluster, exchange="node_gather", operators="qsgd:4")
    assert {choice.exchange for choice in only.ranking} == {"sum", "node_gather"}
    assert {choice.operator for choice in only.ranking} == {"binary32", "qsgd:levels=4"}


# -- edges ---------------------------------------------------------------------------------------------------
def test_one_worker_has_nothing_to_send():
    plan = rd.plan(pilot=pilot_on(problem("even")), cluster=flat(1e8, workers=1))
    assert key(plan.best) == ("binary32", "sum", 1, 0, 1, 1)
    assert plan.best.ratio == 1
    assert plan.surest == plan.best
    assert {choice.exchange for choice in plan.ranking} == {"sum", "gather"}
    assert "time to a loss 1 (exactly)" in plan.explain()


def test_a_single_coordinate_is_gathered():
    messages = {"qsgd:levels=4": (3.0, 0.5)}
    plan = rd.plan(pilot=pilot_on(problem("one"), messages, d=1), cluster=flat(1e8))
    assert {choice.exchange for choice in plan.ranking} == {"sum", "gather"}
    assert plan.best.ratio <= 1


def test_many_workers_take_two_shots():
    plan = rd.plan(pilot=pilot_on(problem("even")), cluster=flat(1e9, workers=1024, latency_s=1e-7))
    gathered = min(c.ratio for c in plan.ranking if c.operator == "qsgd:levels=4" and c.exchange == "gather")
    shots = min(c.ratio for c in plan.ranking if c.operator == "qsgd:levels=4" and c.exchange == "two_shot")
    assert shots < 0.5 * gathered
    assert plan.best.exchange != "gather"


def test_an_operator_without_a_model_comes_last_with_the_reason():
    pilot = pilot_on(problem("even"))
    pilot = replace(pilot, operators=(*pilot.operators, trial("topk:fraction=0.01", 0.4, 0.9)))
    last = rd.plan(pilot=pilot, cluster=CLUSTERS[2]).ranking[-1]
    assert (last.operator, last.feasible, last.ratio) == ("topk:fraction=0.01", False, math.inf)
    assert "error feedback that the pilot has tried" in last.reason


def test_the_identity_is_the_uncompressed_sum():
    pilot = pilot_on(problem("even"), {"identity": (32.0, 0.0)})
    assert {choice.operator for choice in rd.plan(pilot=pilot, cluster=CLUSTERS[2]).ranking} == {"binary32"}


# -- what is distinguished -----------------------------------------------------------------------------------
def noisy(moments, seed=0, noise=0.1):
    values = np.logspace(-1, 0, 40)
    quadratic = Quadratic(values, np.ones(40), np.full(40, noise))
    local = measured(quadratic, moments, np.random.default_rng(seed))
    trials = [trial(name, bits, omega, moments=moments) for name, (bits, omega) in MESSAGES.items()]
    return pilot_of(local, trials, D)


def test_choices_whose_intervals_overlap_are_not_distinguished():
    plan = rd.plan(pilot=noisy(32), cluster=CLUSTERS[0])
    best = plan.best.time_ratio.interval
    others = [choice for choice in plan.ranking[1:] if choice.feasible]
    overlapping = [choice for choice in others if choice.time_ratio.interval.lo <= best.hi]
    assert list(plan.alike) == overlapping
    assert 0 < len(overlapping) < len(others)
    assert f"{len(overlapping)} of {len(others)} other choices cannot be distinguished from it" in plan.explain()


def test_the_surest_choice_has_the_least_upper_end():
    plans = [rd.plan(pilot=pilot_on(problem("even")), cluster=cluster) for cluster in CLUSTERS]
    for plan in plans:
        assert plan.surest.ratio_ends[1] == min(choice.ratio_ends[1] for choice in plan.ranking)
        assert plan.surest == plan.best or f"Surest is {plan.surest.name}: time to a loss" in plan.explain()
    assert any(plan.surest != plan.best for plan in plans)


def test_a_choice_far_ahead_is_told_apart():
    messages = {"tcdq:omega=0.1": (0.01, 0.001)}
    plan = rd.plan(pilot=pilot_on(problem("one"), messages, taus=(1,)), cluster=flat(1e4))
    assert not plan.alike
    assert plan.best == plan.surest
    assert "no other choice has an interval that overlaps its own" in plan.explain().lower()


def test_a_pilot_that_is_too_short_says_how_many_moments_are_missing():
    pilot, cluster = noisy(4, noise=2.0), CLUSTERS[0]
    plan = rd.plan(pilot=pilot, cluster=cluster)
    assert plan.best.progress_per_step.interval.lo <= 0
    assert plan.to_run == plan.surest != plan.best
    assert plan.answer().facts["why"].endswith("may never reach the loss: let a pilot try rounds of it")
    way = "gather" if plan.best.exchange == "sum" else plan.best.exchange
    needed = moments_needed(pilot, cluster, plan.best, way)
    assert f"at least about {needed - 4} more like these would bring its lower end to half" in plan.too_short[0]
    assert plan.too_short[0].lower() in plan.explain().lower()
    operator = None if plan.best.operator == "binary32" else plan.best.operator
    asked = {"operator": operator, "exchange": way, **asked_of(plan.best)}
    many, enough, too_few = (
        float(pilot.repeated(times).predict(cluster, **asked).progress_per_step.interval.lo)
        for times in (1024, needed // 4, needed // 4 - 1)
    )
    assert many > 0
    assert too_few < many / 2 <= enough


def test_a_pilot_that_is_long_enough_says_nothing_of_that():
    assert rd.plan(pilot=pilot_on(problem("even")), cluster=CLUSTERS[0]).too_short == ()


def test_repeated_moments_keep_every_mean():
    pilot = replace(noisy(4), ranks=2)
    ranks = {name: getattr(pilot, name) * 2 for name in ("small_norms2", "large_norms2")}
    pilot = replace(pilot, **ranks)
    longer = pilot.repeated(3)
    assert longer.noise().trace.value == pytest.approx(pilot.noise().trace.value)
    few, many = (each.predict(CLUSTERS[0], operator="qsgd:4", tau=2).progress_per_step for each in (pilot, longer))
    assert many.value == pytest.approx(few.value, rel=1e-12)
    assert many.interval.width < few.interval.width
    assert pilot.repeated(1) == pilot


def test_noise_that_hides_the_gradient_is_said():
    pilot = pilot_on(problem("even"))
    hidden = replace(pilot, falls=tuple(tuple(-fall for fall in row) for row in pilot.falls))
    plan = rd.plan(pilot=hidden, cluster=CLUSTERS[0])
    assert plan.best.operator == "binary32"
    assert any("noise hides the progress; take more moments" in each and "qsgd" in each for each in plan.too_short)


# -- gain, limits, what to change ----------------------------------------------------------------------------
def test_the_gain_stands_beside_the_certified_worst_case():
    messages = {"tcdq:omega=0.1": (6.0, 0.1)}
    plan = rd.plan(pilot=pilot_on(problem("even"), messages, taus=(1,)), cluster=flat(1e7))
    asked = {"operator": "tcdq:omega=0.1", "exchange": plan.best.exchange}
    assert plan.best.tau == 1
    pilot = pilot_on(problem("even"), messages, taus=(1,))
    assert plan.at_every_step == pilot.predict(flat(1e7), **asked)
    assert plan.prediction == pilot.predict(flat(1e7), **asked, **asked_of(plan.best))
    assert plan.prediction.certified_time_ratio == plan.at_every_step.certified_time_ratio
    text = plan.explain()
    assert f": {plan.prediction.certified_time_ratio:.3g} times the seconds guaranteed without compression" in text
    assert "Beside it, and no bound of it, certified worst case, by two_shot_diana_distance" in text
    local = rd.plan(pilot=pilot_on(problem("even"), messages), cluster=flat(1e6))
    assert local.best.tau > 1
    assert "No worst case: theorems for local steps need" in local.explain()
    assert local.prediction.certified_time_ratio is None


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.in_words()[-40:])
@pytest.mark.parametrize("operators", [None, ["randomk:0.03125"]])
def test_what_a_better_part_saves_is_what_the_same_choice_takes_less(cluster, operators):
    pilot = pilot_on(problem("even"))
    plan = rd.plan(pilot=pilot, cluster=cluster, operators=operators)
    best = plan.best
    way = "gather" if best.exchange == "sum" else best.exchange
    operator = None if best.operator == "binary32" else best.operator
    asked = {"operator": operator, "exchange": way, **asked_of(best)}
    codec = rd.Codec(CODEC.encode_s_per_coordinate / 2, CODEC.decode_s_per_coordinate / 2)
    faster = replace(pilot, operators=tuple(replace(each, codec=codec) for each in pilot.operators))
    exact = replace(
        pilot, operators=tuple(replace(each, nmse=tuple(e / 2 for e in each.nmse)) for each in pilot.operators)
    )
    better = {
        "steps": pilot.predict(replace(cluster, step_s=STEP_S / 2), **asked),
        "bandwidth of the links": pilot.predict(
            replace(cluster, bandwidth_bit_per_s=2 * cluster.bandwidth_bit_per_s), **asked
        ),
        "latency of the links": pilot.predict(replace(cluster, latency_s=cluster.latency_s / 2), **asked),
        "codecs": faster.predict(cluster, **asked),
        "accuracy of the messages": exact.predict(cluster, **asked),
    }

    def time_of(prediction):
        return prediction.seconds_per_step.value / prediction.progress_per_step.value

    saved = {change.part: change.saved_share for change in plan.limits.changes}
    assert set(saved) <= set(better)
    now = time_of(pilot.predict(cluster, **asked))
    for part, prediction in better.items():
        assert saved.get(part, 0) == pytest.approx(1 - time_of(prediction) / now, abs=1e-9), part
    assert list(saved.values()) == sorted(saved.values(), reverse=True)
    assert sum(plan.limits.shares.values()) == pytest.approx(1)


def test_in_flight_the_longer_of_both_limits():
    pilot = pilot_on(problem("even"), {}, taus=(1, 2))
    for bandwidth_bit_per_s, latency_s, limit in ((1e12, 0, "compute"), (1e6, 0, "bandwidth"), (1e12, 10, "latency")):
        plan = rd.plan(pilot=pilot, cluster=flat(bandwidth_bit_per_s, latency_s))
        shares = plan.limits.shares
        assert (plan.limits.limit, plan.prediction.limits) == (limit, limit)
        assert not plan.best.overlap or shares[limit] == pytest.approx(1)


# -- answers -------------------------------------------------------------------------------------------------
def test_it_is_a_record():
    pandas = pytest.importorskip("pandas")
    plan = rd.plan(pilot=pilot_on(problem("even")), cluster=CLUSTERS[2])
    stated = json.loads(json.dumps(to_json(plan)))
    assert stated["ranking"][0]["time_ratio"]["value"] == plan.best.ratio
    assert stated["explanation"] == plan.explain()
    assert stated["prediction"]["unknown"] == list(plan.prediction.unknown)
    assert stated["limits"]["changes"][0]["part"] == plan.limits.changes[0].part
    table = plan.to_frame()
    assert isinstance(table, pandas.DataFrame)
    assert len(table) == len(plan.ranking)
    assert table["time_ratio"].tolist() == [choice.ratio for choice in plan.ranking]
    assert table["time_ratio_high"][3] == plan.ranking[3].ratio_ends[1]
    assert plan.shown[0].operator == plan.best.operator
    assert len(plan.shown) == len({choice.operator for choice in plan.ranking})
    assert plan.best.name in repr(plan)
    assert plan.best.operator in plan._repr_html_()


def test_the_plan_names_the_local_steps_of_both_bounds():
    """Those that ``tau_star`` gives for the constants of the pilot, without and with a Lipschitz Hessian."""
    measured = replace(
        pilot_on(problem("even")), second_secants=(0.1, 0.2), noise_norms2=(1.0, 2.0), learning_rate=0.02, steps=2000
    )
    cluster = flat(1e7)
    bits, Q, kurtosis = 32 * D, measured.hessian_lipschitz(), measured.kurtosis()
    time_s = 2000 * cluster.step_seconds_value(1, bits)[0]
    about = {"L": measured.curvature(), "sigma2": measured.noise().trace.value, "gap": 1.0, "eta": 0.02}
    about |= {"time_s": time_s, "cluster": cluster, "bits": bits}
    second = rd.tau_star(**about).safe
    third = rd.tau_star(**about, hessian_lipschitz=Q, kurtosis=kurtosis).tau
    plan = rd.plan(pilot=measured, cluster=cluster)
    assert plan.local_steps == (second, third)
    assert second < third
    assert f"estimates by bounds for SGD: {second}, with third order {third}" in str(plan)
    assert plan.to_dict()["local_steps"] == [second, third]


@pytest.mark.parametrize(
    "without",
    [{"second_secants": ()}, {"noise_norms2": ()}, {"learning_rate": 0.0}, {"steps": 0}, {"learning_rate": 2}],
)
def test_without_a_constant_the_plan_names_no_local_steps_by_bounds(without):
    known = {"second_secants": (0.2,), "noise_norms2": (1.0, 2.0), "learning_rate": 0.02, "steps": 2000}
    plan = rd.plan(pilot=replace(pilot_on(problem("even")), **known | without), cluster=CLUSTERS[2])
    assert plan.local_steps is None
    assert "by bounds for SGD" not in str(plan)


def test_the_plot_has_a_bar_an_operator_with_its_interval():
    pytest.importorskip("matplotlib").use("agg")
    plan = rd.plan(pilot=noisy(32), cluster=CLUSTERS[0])
    ax = plan.plot()
    assert len(ax.patches) == len(plan.shown)
    assert ax.get_xlabel() == "time to a loss over synchronous training's"
    assert sum(bars.errorbar is not None for bars in ax.containers if hasattr(bars, "errorbar")) == 1


def test_the_command_is_the_call(tmp_path, capsys):
    pilot = pilot_on(problem("even"))
    file = tmp_path / "pilot.json"
    file.write_text(json.dumps(pilot.to_dict()))
    cluster = pilot.cluster(workers=4, bandwidth_bit_per_s=1e8, latency_s=1e-3)
    line = ["plan", "--pilot", str(file), "--workers", "4", "--bandwidth_bit_per_s", "1e8", "--latency_s", "1e-3"]
    assert main([*line, "--json"]) == 0
    plan = rd.plan(pilot=str(file), cluster=cluster)
    record = json.loads(capsys.readouterr().out)
    assert record.pop("turns") == json.loads(json.dumps(plan.turns))
    assert record == json.loads(json.dumps(to_json(plan)))
    assert main(line) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert plan.best.name.split(",")[0] in shown
    best = plan.best
    assert best.in_flight == 4
    assert f" {best.tau} 4 steps {best.ratio:.3g} " in shown
    assert main([*line, "--step_s", "2"]) == 2
    assert "step_s comes from the pilot; got step_s = 2.0 beside it: leave it out" in capsys.readouterr().err
    assert main([*line, "--codec", "free"]) == 0
    assert capsys.readouterr().out != shown
    assert main([*line, "--codec", "natural=1e-9,1e-9"]) == 2
    assert "codec must name operators that the pilot has tried; got natural" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"target": 0.1}, "target goes with a plan by theorems; got target = 0.1 beside a pilot"),
        ({"L": 1, "sigma2": 1, "gap": 1}, "L goes with a plan by theorems; got L = 1 beside a pilot"),
        ({"d": 10}, "d beside a pilot of your own must be the pilot's, "),
        ({"codec": {"natural": "free"}}, "codec must name operators that the pilot has tried; got natural"),
        ({"curvature": "convex"}, "curvature goes with a plan by theorems"),
        ({"cluster": None}, "cluster must be a ratedist.Cluster; got None"),
        ({"operators": ["natural"]}, "operator must be one that the pilot has tried; got natural:rounding=stochastic"),
        ({"operators": []}, "operators must name 1 to 64 compressors; got 0"),
        ({"exchange": "pigeon"}, "exchange must be one of auto, gather, two_shot, node_gather, node_two_shot"),
        ({"pilot": "nowhere.json"}, "nowhere.json is no file"),
        ({"pilot": None}, "a plan needs d or a pilot; got neither"),
    ],
)
def test_refusals(given, match):
    with pytest.raises(ValueError, match=match) as refusal:
        rd.plan(**{"pilot": pilot_on(problem("even")), "cluster": CLUSTERS[0]} | given)
    assert "\n" not in str(refusal.value)


def test_a_plan_on_64_gpus_takes_less_than_two_seconds():
    names = ["qsgd:4", "qsgd:16", "natural", "randomk:0.1", "randomk:0.03125", "terngrad", "topk:0.01", "scaled_sign"]
    rng = np.random.default_rng(0)
    pilot = pilot_on(problem("even"), {}, d=10**8, taus=(1, 2, 4, 8, 16, 32))
    trials = [trial(names[k], 1.0 + k, 0.5 * k + 0.1, (0.5, 0.7) if k > 5 else ()) for k in range(8)]
    specified = [replace(each, operator=rd.measure(each.operator, np.ones(64)).operator) for each in trials]
    pilot = replace(pilot, operators=tuple(specified), step_s=(tuple(0.5 + 0.05 * rng.standard_exponential(100)),))
    inside, between = rd.Link(3.6e12, 3e-6), rd.Link(1e10, 2e-5)
    cluster = pilot.cluster(nodes=8, gpus_per_node=8, inside=inside, between=between)
    start = time.process_time()
    plan = rd.plan(pilot=pilot, cluster=cluster)
    assert time.process_time() - start < 2
    assert len(plan.ranking) > 250


def test_a_step_time_whose_interval_reaches_0_is_named_with_the_remedy():
    even = noisy(8)
    unsteady = replace(even, step_s=((1e-6, 1.0), (2.0, 3.0)), ranks=2)
    words = "its interval reaches 0, so no time is certain: measure more steps"
    assert words in unsteady.answer().facts["a step"]
    assert words in rd.plan(pilot=unsteady, cluster=CLUSTERS[0]).answer().facts["pilot"]
    assert not even.uncertain_step()
    assert "reaches 0" not in rd.plan(pilot=even, cluster=CLUSTERS[0]).answer().facts["pilot"]
