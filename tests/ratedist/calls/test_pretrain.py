"""A training by how its workers average: the special cases of public calculators, and where those stop."""

import json
import math

import pytest

import ratedist as rd
from ratedist.interfaces.cli import main
from ratedist.plans.pretraining import LAWS
from ratedist.records import to_json

N, TOKENS = 8e9, 4096
RATE = 6 * N * TOKENS / 0.5  # half a second a step


def asked(m, **more):
    return {"parameters": N, "tokens": 1000 * m * TOKENS, "batch_tokens": m * TOKENS, "flop_per_s": RATE} | more


def cluster(m, **more):
    return rd.Cluster(**{"workers": m, "compute": "constant", "latency_s": 0, "bandwidth_bit_per_s": 1e10} | more)


def row(found, words):
    return next(row for row in found.rows if words in row["name"])


@pytest.mark.parametrize("m", [2, 8, 1024])
def test_averages_in_flight_cost_nothing_from_the_bandwidth_on_that_calculators_state(m):
    found = rd.pretrain(cluster(m), **asked(m), tau=37)
    least = 2 * (m - 1) / m * 16 * N / (37 * 0.5)
    assert row(found, "in flight")["bit_per_s"][-1] == pytest.approx(least, rel=1e-6)
    if m == 1024:
        assert round(row(found, "in flight")["bit_per_s"][-1] / 8e9, 2) == 1.73  # GB/s
    assert (found.steps, found.step_s) == (1000, pytest.approx(0.5))
    slower = rd.pretrain(cluster(m, bandwidth_bit_per_s=0.8 * least), **asked(m), tau=37)
    assert row(slower, "in flight")["utilisation"] == pytest.approx(0.8)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize(("words", "tau"), [("every step", 1), ("waiting", 30)])
def test_bandwidths_of_those_who_wait_solve_their_equation(share, words, tau):
    m, latency_s = 8, 0.001
    found = rd.pretrain(cluster(m, latency_s=latency_s), **asked(m), tau=30, utilisations=share)
    wait_s = tau * 0.5 * (1 / share - 1)  # a round computes tau steps of half a second in this share of its time
    moving_s = wait_s - 2 * (m - 1) * latency_s
    exact = 2 * (m - 1) / m * 16 * N / moving_s if moving_s > 0 else math.inf
    assert row(found, words)["bit_per_s"] == [pytest.approx(exact, rel=1e-6)]


def test_fragments_in_flight_ask_for_no_less_bandwidth_but_for_less_at_once():
    whole, parts = (row(rd.pretrain(cluster(8), **asked(8), tau=32, parts=p), "in flight") for p in (1, 4))
    assert parts["bit_per_s"][-1] == pytest.approx(whole["bit_per_s"][-1])
    late = row(rd.pretrain(cluster(8), **asked(8), tau=32, parts=4, in_flight=2), "in flight")
    assert late["bit_per_s"][-1] == pytest.approx(4 * whole["bit_per_s"][-1])


def test_where_calculators_of_flat_links_mislead():
    """A node's eight workers share its link; stragglers are waited for whatever the bandwidth; latency stays."""
    inside = rd.Link(1e15, 0.0)
    nodes = {"nodes": 8, "gpus_per_node": 8, "inside": inside, "compute": "constant"}
    for exchange, factor in (("sum", 2 * 7 / 8), ("gather", 7 * 8)):
        found = rd.pretrain(rd.Cluster(between=rd.Link(1e10, 0.0), **nodes), **asked(64), tau=37, exchange=exchange)
        assert row(found, "in flight")["bit_per_s"][-1] == pytest.approx(factor * 16 * N / 18.5, rel=1e-3)
    stragglers = rd.pretrain(cluster(8, compute="half_exponential"), **asked(8), tau=37)
    assert row(stragglers, "in flight")["bit_per_s"][-1] == math.inf
    assert row(stragglers, "every step")["bit_per_s"][1] == math.inf
    far = rd.pretrain(cluster(8, latency_s=2.0), **asked(8), tau=37)
    assert row(far, "in flight")["bit_per_s"][-1] == math.inf


def test_extremes():
    alone = rd.pretrain(cluster(1), **asked(1))
    assert all(row["utilisation"] == pytest.approx(1) for row in alone.rows)
    huge = rd.pretrain(cluster(1024), **asked(1024, parameters=1e12, bits_per_value=0.1))
    assert all(0 < row["utilisation"] <= 1 for row in huge.rows)
    assert json.dumps(to_json(huge), allow_nan=False)


def test_the_command_shows_four_ways_and_what_it_leaves_out(capsys):
    line = (
        "pretrain --workers 8 --compute half_exponential --parameters 8B --tokens 1.6e11 --batch_tokens 4M "
        "--flop_per_s 3e15"
    )
    assert main(line.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("backward pass", "in flight", "none", "what a step is worth", "days"):
        assert words in text
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["bit_per_s"][-1] is None
    assert found["step_s"] == pytest.approx(6 * 8e9 * 4e6 / 8 / 3e15)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tau": 30, "parts": 4}, "tau must be a multiple of parts"),
        ({"in_flight": 40}, "in_flight must be an integer from 0 to tau/parts = 32; got 40"),
        ({"tokens": 1}, "batch_tokens must satisfy batch_tokens <= tokens; got batch_tokens = "),
        ({"parameters": 1.5}, "parameters must satisfy"),
        ({"flop_per_s": 0}, "flop_per_s must satisfy 0 < flop_per_s, finite; got flop_per_s = 0"),
        ({"utilisations": 1.5}, "utilisations must satisfy 0 < utilisations <= 1; got utilisations = 1.5"),
        ({"utilisations": [0.5] * 17}, "utilisations must be at most 16 numbers; got 17: leave some out"),
        ({"exchange": "node_gather"}, "node_gather needs nodes"),
        ({"exchange": "pigeon"}, "exchange must be one of sum, gather, two_shot, .*; got 'pigeon'"),
    ],
)
def test_refusals_say_what_was_given(change, match):
    with pytest.raises(ValueError, match=match) as refusal:
        rd.pretrain(cluster(4), **asked(4) | change)
    assert "\n" not in str(refusal.value)


def test_a_law_with_a_mean_of_its_own_is_refused():
    from bounds.runtime import Exponential

    with pytest.raises(ValueError, match="pretrain computes the mean of a step"):
        rd.pretrain(rd.Cluster(workers=4, compute=Exponential(0.1)), **asked(4))


# -- settings of DiLoCo ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("m", [2, 8, 64])
@pytest.mark.parametrize(("bit_per_s", "latency_s"), [(1e10, 0.0), (1e10, 0.01), (1e12, 0.0)])
def test_settings_of_diloco_are_the_first_at_which_a_fragment_has_arrived(m, bit_per_s, latency_s):
    """Equal steps: a fragment has in_flight steps of half a second, and 1 % more, to travel once through the ring."""
    found = rd.pretrain(cluster(m, latency_s=latency_s, bandwidth_bit_per_s=bit_per_s), **asked(m))
    assert [setting["parts"] for setting in found.diloco] == [1, 2, 4, 8, 16]
    for setting in found.diloco:
        moved_bits, late_s = 2 * (m - 1) / m * 16 * N / setting["parts"], 2 * (m - 1) * latency_s
        steps = math.ceil((moved_bits / bit_per_s + late_s) / (0.5 * 1.01))
        assert (setting["in_flight"], setting["tau"]) == (steps, setting["parts"] * steps)
        enough = moved_bits / (1.01 * steps * 0.5 - late_s)
        assert setting["bit_per_s"] == pytest.approx(enough, rel=1e-6)
        assert 0.5 <= setting["step_s"] <= 0.505 * (1 + 1e-9)


def test_the_suggested_setting_has_fewest_steps_in_flight_within_tau_else_the_least_tau():
    for tau in (1, 44, 46, 48, 500):
        settings = rd.pretrain(cluster(8, bandwidth_bit_per_s=1e10), **asked(8), tau=tau).diloco
        [suggested] = [setting for setting in settings if setting["suggested"]]
        within = [setting for setting in settings if setting["tau"] <= tau]
        if within:
            fastest = min(setting["step_s"] for setting in within)
            near = [setting for setting in within if setting["step_s"] <= 1.01 * fastest]
            assert suggested["in_flight"] == min(setting["in_flight"] for setting in near)
            assert suggested["tau"] <= tau
        else:
            assert suggested["tau"] == min(setting["tau"] for setting in settings)


def test_limits_of_late_outer_steps_are_those_of_the_call_for_them():
    for setting in rd.pretrain(cluster(8), **asked(8)).diloco[1:]:
        delay = {"tau": setting["tau"], "delay": setting["in_flight"], "workers": 8}
        for merge, limit in setting["lr_below"].items():
            advice = rd.outer(eta=1, L=1, mu=1e-3, merge=merge, outer="0.7:0.9", momenta=0.9, **delay)
            [stated] = [row["lr"] for row in advice.limits if row["momentum"] == 0.9]
            assert stated == pytest.approx(limit, rel=1e-9)
            assert advice.diverges == (limit < 0.7)


def test_nobody_to_exchange_with_and_links_that_never_hide_have_no_setting():
    assert rd.pretrain(cluster(1), **asked(1)).diloco == ()
    assert rd.pretrain(cluster(8, latency_s=1e4), **asked(8)).diloco == ()


# -- what is only recalled -------------------------------------------------------------------------------------
def test_published_laws_are_recalled_with_their_sources_and_the_model_of_their_authors():
    """Chinchilla itself: 7e10 parameters after 1.4e12 tokens; 20 tokens a parameter."""
    found = rd.pretrain(cluster(8), **asked(8, parameters=7e10, tokens=1.4e12))
    assert [law["status"] for law in found.recalled] == ["recalled"] * 3
    assert [law["source"] for law in found.recalled] == ["hoffmann2022", "hoffmann2022", "besiroglu2024"]
    assert all(law["bibtex"].startswith(f"@article{{{law['source']},") for law in found.recalled)
    rule, first, again = found.recalled
    assert (rule["tokens"], rule["loss"]) == (1.4e12, None)
    assert first["loss"] == pytest.approx(1.9366, abs=1e-4)
    assert again["loss"] == pytest.approx(1.9739, abs=1e-4)
    assert found.outer == {
        "lr": 0.7, "momentum": 0.9, "nesterov": True, "status": "recalled", "source": "douillard2023",
    }  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("parameters", [1e8, 7e10, 1e13])
def test_no_other_split_of_the_same_operations_has_a_lower_fitted_loss(law, parameters):
    tokens = law.tokens_for(parameters)
    least = law.loss(parameters, tokens)
    assert all(law.loss(parameters * share, tokens / share) > least for share in (0.5, 0.99, 1.01, 2))


def test_recalled_numbers_change_nothing_that_is_computed(monkeypatch):
    before = rd.pretrain(cluster(8), **asked(8))
    monkeypatch.setattr("ratedist.calls.pretrain.recalled", lambda parameters, tokens: ())
    after = rd.pretrain(cluster(8), **asked(8))
    assert (before.rows, before.diloco, before.flop) == (after.rows, after.diloco, after.flop)


def test_the_command_says_what_is_recalled_and_json_has_no_infinite_rate(capsys):
    line = (
        "pretrain --workers 8 --compute constant --parameters 8B --tokens 1.6e11 --batch_tokens 4M --flop_per_s 3e15 "
        "--bandwidth_bit_per_s 1e9"
    )
    assert main(line.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "(* suggested)",
        "rate 0.7, Nesterov 0.9 (douillard2023, recalled, not checked)",
        "besiroglu2024",
        "hoffmann2022",
        "refused",
        "16 bits a value",
    ):
        assert words in text
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {law["status"] for law in found["recalled"]} == {found["outer"]["status"]} == {"recalled"}
    assert [setting["tau"] for setting in found["diloco"]] == sorted(setting["tau"] for setting in found["diloco"])


@pytest.mark.parametrize("compute", ["constant", "exponential", "half_exponential"])
@pytest.mark.parametrize("tau", [8, 100])
def test_no_suggested_rhythm_is_slower_than_the_one_asked_for(compute, tau):
    asked_for = {"parameters": "8B", "tokens": "160B", "batch_tokens": "4M", "flop_per_s": 4e14, "tau": tau}
    found = rd.pretrain(rd.Cluster(workers=64, compute=compute), **asked_for)
    [suggested] = [setting for setting in found.diloco if setting["suggested"]]
    if suggested["tau"] <= tau:
        assert suggested["step_s"] <= 1.01 * found.rows[-1]["step_s"]
        again = rd.pretrain(
            rd.Cluster(workers=64, compute=compute),
            **asked_for | {"tau": suggested["tau"]},
            parts=suggested["parts"],
            in_flight=suggested["in_flight"],
        )
        assert again.rows[-1]["step_s"] == pytest.approx(suggested["step_s"], rel=1e-9)
    assert compute in found.to_dict()["cluster"]


def test_overwriting_all_steps_is_refused_as_by_outer():
    settings = rd.pretrain(cluster(8), **asked(8)).diloco
    for setting in settings:
        assert (setting["lr_below"]["overwrite"] is None) == (setting["in_flight"] == setting["tau"])
        if setting["lr_below"]["overwrite"] is None:
            with pytest.raises(ValueError, match="overwrite throws all steps away"):
                rd.outer(eta=1, L=1, mu=1e-3, merge="overwrite", tau=setting["tau"], delay=setting["in_flight"])
