"""What every call prints: short, unbroken, with what was assumed; the rest behind --explain."""

import json
import re
import shlex
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import ratedist as rd
from bounds.theorems import pasgd_iterations
from ratedist.interfaces.cli import main
from ratedist.plans.ranking import exchange_text, operator_text, turns
from ratedist.records import Answer, Table

from .pilots.test_pilot_plan import asked_of, flat, noisy, pilot_on, problem

CALLS = (
    "bits --d 1e9 --omega 1",
    "bits --d 25600000 --alpha 0.1 0.01",
    "bits --d 1 --omega 1e-300",
    "solve --d 1e6 --bits 2e6",
    "solve --d 1e6 --bits 2e6 --alpha",
    "solve --bits 2e6 --omega 1",
    "runtime --workers 16 --step-s 0.08 --tau 1 4 16 --bits 8.192e8",
    "runtime --workers 1024 --tau 8 --d 1e9 --topology tree",
    "error --workers 16 --L 1 --sigma2 1 --eta 0.05 --gap 1 --tau 8 --time-s 3600 --d 25600000",
    "error --workers 16 --eta 0.05 --tau 1 8 --time-s 3600 --d 25600000",
    "error --workers 4 --eta 0.05 --gap 1:0.5:2 --tau 8 --time-s 3600 --bits 0 --curvature convex --omega 1",
    "tau --workers 16 --step-s 0.08 --bits 8.192e8 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time-s 600",
    "tau --workers 64 --eta 0.01 --time-s 600 --d 1.3e9",
    "tau --workers 4 --step-s 1 --latency-s 1 --bits 0 --L 1 --sigma2 1 --eta 0.05 --gap 1 --time-s 1e4 "
    "--curvature convex",
    "tau --workers 8 --compute constant --bits 1e9 --L 1 --sigma2 1 --eta 0.01 --gap 0.5:0.1:2 --time-s 600",
    "tau --workers 1 --eta 0.01 --time-s 600 --L 1 --sigma2 1 --gap 1 --curvature convex",
    "tau --workers 4 --bits 0 --eta 2 --time-s 600 --L 1 --sigma2 1 --gap 1",
    "plan --d 25600000 --workers 16 --operators tcdq:omega=1 qsgd:4 topk:0.01 --target 0.1 --codec free",
    "plan --d 1e6 --workers 4 --operators identity tcdq:omega=1 topk:0.01 --target 0.1 --L 1 --sigma2 1 --gap 1 "
    "--codec free",
    "plan --d 1e6 --workers 4 --operators identity tcdq:omega=1 --time-s 600 --L 1 --sigma2 1 --gap 1:0.5:2 "
    "--codec 1e-10,1e-11",
    "plan --d 10 --workers 2 --operators signsgd --target 0.1",
    "plan --d 7e9 --workers 64 --nodes 8 --inside nvlink4,3e-6 --target 0.1 --codec free "
    "--operators identity tcdq:omega=1 qsgd:4096",
    "plan --pilot pilot.json --workers 64",
    "plan --pilot pilot.json --workers 64 --nodes 8 --inside nvlink4,3e-6 --between ethernet_100g,2e-5",
    "predict pilot.json --workers 64 --operator qsgd:4 --level .9",
    "predict pilot.json --workers 64 --tau 4 --overlap --parts 2",
    "pilot pilot.json",
    "certify_tau --time-s 1e4 --delay-s 10 --gap 1 --eta 0.05 --sigma2 1 --workers 4 --taus 4 8 12 16",
    "certify_tau --time-s 1e4 --delay-s 10 --gap 1 --eta 0.05 --sigma2 1 --workers 4 --taus 4 8 --curvature 1",
    "pretrain --workers 16 --compute constant --parameters 8B --tokens 160B --batch-tokens 4M --flop-per-s 3.2e15 "
    "--tau 32 --parts 4",
    "pretrain --workers 64 --parameters 1.3B --tokens 26B --batch-tokens 1M --flop-per-s 4e14",
    "outer --eta 1 --tau 10 --L 1 --mu 0.001 --outer 0.7:0.9",
    "outer --eta 0.1 --tau 30 --L 1 --mu 0.001 --delay 10 --merge corrected",
    "allreduce --d 25600000 --m 64 --operator tcdq:omega=0.1",
    "allreduce --d 1e6 --m 8 --operator shared_scale:12,block=256",
    "allreduce --d 1e6 --m 64 --operator qsgd:4",
    "certify worst_case_bits --d 1000000000000 --alpha 0.3",
    "certify --list",
    "operators --d 1e4",
    "check scaled_sign --budget quick --seed 1",
    "check mine_to_answer:half --budget quick --seed 1",
    "check mine_to_answer:half --omega 0.1 --budget quick --seed 1",
    "measure gradient.npy --operators tcdq:omega=1 qsgd:4 topk:0.01",
    "measure gradient.npy --operators composition:outer=(qsgd:4),inner=(randomk:0.25) eden --draws 1",
    "compare mine_to_answer:half gradient.npy --bits 1 2",
    "compare eden gradient.npy --against qsgd topk --source",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a gradient, a compressor and a pilot in it."""
    made = tmp_path_factory.mktemp("answers")
    np.save(made / "gradient.npy", np.random.default_rng(0).standard_normal(1000).astype(np.float32))
    (made / "mine_to_answer.py").write_text("def half(x):\n    return x / 2\n\nhalf.bits = 32\n")
    (made / "pilot.json").write_text(json.dumps(noisy(8).to_dict()))
    return made


@pytest.fixture
def printed(folder, monkeypatch, capsys):
    """A function from a command line to what it prints."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(line):
        main(shlex.split(line))
        out, err = capsys.readouterr()
        assert not err
        return out

    return run


def parts(text):
    """The lines beside tables and code, and those of the tables, which stand between empty lines."""
    beside, tables, in_table = [], [], False
    for line in text.partition("\n-> in your script")[0].splitlines():
        if not line:
            in_table = not in_table if not tables or not in_table else False
            in_table = in_table or not re.match(r"not modelled: |assumed: |-> ", "")
        (tables if in_table and line.startswith("  ") else beside).append(line)
    return [line for line in beside if line], [line for line in tables if line]


@pytest.mark.every(4)
@pytest.mark.parametrize("line", CALLS)
def test_an_answer_is_at_most_12_lines_of_80_columns_beside_its_table(line, printed):
    text = printed(line)
    beside, _ = parts(text)
    assert 1 <= len(beside) <= 12
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\bNone\b|\bnan\b", text)


@pytest.mark.every(4)
@pytest.mark.parametrize("line", CALLS)
def test_explain_has_all_of_the_answer_and_each_hypothesis_once(line, printed):
    short, long = printed(line).splitlines(), printed(f"{line} --explain")
    lines = long.splitlines()
    assert short[0] == lines[0]
    assert len(lines) >= len(short)
    if "needs" in lines:
        needs = lines[lines.index("needs") + 1 : lines.index("assuming")]
        starts = [each for each in needs if each and not each.startswith("    ")]
        assert starts
        assert len(starts) == len(set(starts))


CLUSTER_WORDS = {
    "--bandwidth-bit-per-s 1e10": "10 Gbit/s per link",
    "--latency-s 50e-6": "50 us per hop",
    "--topology ring": "ring topology",
    "--step-s 0.1": "steps of 0.1 s",
    "--compute exponential": "exponential step times",
}
CONSTANTS = {f"--{name} 1": f"{name} = 1 (0.1 to 10)" for name in ("L", "sigma2", "gap")}
ON_A_CLUSTER = {
    "runtime --tau 8 --d 1e9": {},
    "error --eta 0.05 --tau 8 --time-s 3600 --d 1e6": {
        f"--{n} 1": f"{n} = 1 (0.1 to 10)" for n in ("L", "sigma2", "gap")
    },
    "tau --eta 0.01 --time-s 600 --d 1e6": CONSTANTS,
    "plan --d 1e4 --target 0.1 --operators identity": {
        "--condition 100": "condition number 100",
        "--codec free": "codecs as fast as on this machine",
    },
}
LENGTH = "32 bits per parameter"


def assumed(text):
    found = re.search(r"^assumed: (.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return re.split(r", (?![^(]*\))", " ".join(found[1].split())) if found else []


@pytest.mark.parametrize("command", ON_A_CLUSTER)
def test_exactly_what_was_not_said_is_assumed(command, printed):
    words = CLUSTER_WORDS | ON_A_CLUSTER[command]
    always = assumed(printed(f"{command} --workers 4 {' '.join(words)}"))
    assert not set(words.values()) & set(always)
    for left_out in words:
        line = " ".join(option for option in words if option != left_out)
        assert set(assumed(printed(f"{command} --workers 4 {line}"))) - set(always) == {words[left_out]}
    assert set(assumed(printed(f"{command} --workers 4"))) == {*words.values(), *always}


@pytest.mark.parametrize("command", ["runtime --tau 8", "tau --eta 0.01 --time-s 600"])
def test_a_message_given_by_its_parameters_assumes_their_bits(command, printed):
    assert LENGTH in assumed(printed(f"{command} --workers 4 --d 1e6"))
    assert LENGTH not in assumed(printed(f"{command} --workers 4 --bits 32e6"))


def test_python_knows_what_was_not_said_of_a_cluster_too():
    assert rd.Cluster(workers=4).assumed() == (
        *("steps of 0.1 s", "exponential step times", "ring topology", "10 Gbit/s per link", "50 us per hop"),
    )
    stated = rd.Cluster(workers=4, bandwidth_bit_per_s=1e10, latency_s=50e-6, topology="ring", compute="exponential")
    assert stated.assumed() == ("steps of 0.1 s",)
    assert stated.with_parts(step_s=0.1).assumed() == ()
    assert rd.Cluster(workers=1, step_s=1).assumed() == ()
    assert stated == rd.Cluster(workers=4)


def test_what_a_command_prints_is_what_the_record_prints(printed):
    cluster = rd.Cluster(workers=4, step_s=1)
    problem = {"L": 1, "sigma2": 1, "eta": 0.05, "gap": 1, "time_s": 1e4}
    pairs = {
        "outer --eta 1 --tau 10 --L 1 --mu 0.001": rd.outer(eta=1, tau=10, L=1, mu=0.001),
        "allreduce --d 1e6 --m 8 --operator qsgd:16": rd.allreduce(d=10**6, m=8, operator="qsgd:16"),
        "operators --d 100": rd.operators(d=100),
        "bits --d 1e3 --omega 2": rd.bits_lower_bound(d=1e3, omega=2).answer(),
        "tau --workers 4 --step-s 1 --bits 1e9 --L 1 --sigma2 1 --eta 0.05 --gap 1 --time-s 1e4": rd.tau_star(
            **problem, cluster=cluster, bits=1e9
        ).answer(),
        "plan --d 1e6 --workers 4 --step-s 1 --target 0.1 --operators identity qsgd:16 --codec free": rd.plan(
            d=10**6, cluster=cluster, target=0.1, operators=["identity", "qsgd:16"], codec="free"
        ),
    }
    for line, record in pairs.items():
        assert printed(line) == f"{record}\n"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_columns_sets_the_width(columns, printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = printed("tau --workers 64 --eta 0.01 --time-s 600 --d 1.3e9")
    assert columns - 20 < max(map(len, text.splitlines())) <= columns


def test_a_name_is_never_broken():
    names = ["short", "n" * 50, "m" * 75]
    lines = Table(("compressor", "bits", "claim"), tuple((n, "1.0", "unbiased") for n in names)).lines(60)
    assert all(any(name in line for line in lines) for name in names)
    assert all(len(line) <= 60 or line.strip() in names for line in lines)


def test_facts_that_do_not_fit_stand_in_explain():
    answer = Answer("Do it.", {f"fact {k}": "word " * 30 for k in range(9)}, assumed=("a", "b"), left_out="c")
    assert len(str(answer).splitlines()) <= 12
    assert str(answer).splitlines()[-1] == "assumed: a, b"
    assert all(f"fact {k}" in answer.explain() for k in range(9))


def test_compressors_are_sorted_by_error_at_equal_bits():
    x = np.random.default_rng(1).standard_normal(1000)
    (table,) = rd.compare(["qsgd", "eden", "topk", "drive"], x, bits=(2, 1)).answer().tables
    bits, errors = ([float(row[place]) for row in table.rows] for place in (1, 2))
    groups = [round(each) for each in bits]
    assert groups == sorted(groups)
    assert list(zip(groups, errors, strict=True)) == sorted(zip(groups, errors, strict=True))


@pytest.mark.parametrize("compute", ["constant", "exponential", "half_exponential"])
def test_the_headline_counts_stragglers_where_steps_are_random(compute):
    asked = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600, "bits": 8.192e8}
    best = rd.tau_star(**asked, cluster=rd.Cluster(workers=16, step_s=0.08, compute=compute))
    assert best.recommended == (best.safe if compute == "constant" else best.sharp)
    assert best.answer().verdict.startswith(f"Average every {best.recommended} local steps")
    assert best.to_dict()["recommended"] == best.recommended


def gbit_per_s(text):
    return float(re.search(r"([\d.e+]+) Gbit/s", text)[1]) * 1e9


@pytest.mark.parametrize("d", [3e5, 1e6, 3e7])
@pytest.mark.parametrize("compute", ["constant", "exponential"])
def test_every_step_is_best_above_the_bandwidth_that_is_said(d, compute):
    asked = {"L": 1, "sigma2": 10, "eta": 0.1, "gap": 1, "time_s": 600, "d": d}

    def best(bandwidth):
        cluster = rd.Cluster(workers=4, step_s=0.1, compute=compute, bandwidth_bit_per_s=bandwidth, latency_s=1e-6)
        return rd.tau_star(**asked, cluster=cluster)

    here = best(1e8)
    turn = here.answer().facts["changes with"]
    if "instant links" in turn:
        assert best(1e15).recommended == int(re.search(r"every (\d+) steps$", turn)[1]) > 1
        return
    at = gbit_per_s(turn)
    assert "above" in turn if here.recommended > 1 else "below" in turn
    assert best(1.02 * at).recommended == 1
    assert best(at / 1.02).recommended > 1


@pytest.mark.parametrize("goal", [{"target": 0.1}, {"target": 0.1, "L": 1, "sigma2": 1, "gap": 1}])
@pytest.mark.parametrize("bandwidth", [1e8, 1e10])
def test_a_plan_turns_at_the_bandwidth_that_is_said(goal, bandwidth):
    def plan(bit_per_s):
        cluster = rd.Cluster(workers=8, step_s=0.1, bandwidth_bit_per_s=bit_per_s)
        asked = {"operators": ["identity", "tcdq:omega=0.1"], "codec": rd.Codec(1e-9, 1e-9)}
        return rd.plan(d=10**7, cluster=cluster, **asked, **goal)

    here = plan(bandwidth)
    (turn,) = here.turns
    outside, inside = (1.02, 1 / 1.02) if turn["side"] == "above" else (1 / 1.02, 1.02)
    assert plan(outside * turn["bit_per_s"]).best.operator == turn["rival"] != here.best.operator
    assert plan(inside * turn["bit_per_s"]).best.operator == here.best.operator


@pytest.mark.parametrize("bandwidth", [1e7, 1e9])
def test_a_plan_by_a_pilot_turns_where_the_predicted_times_are_equal(bandwidth):
    pilot, cluster = pilot_on(problem("even")), flat(bandwidth)
    plan = rd.plan(pilot=pilot, cluster=cluster)
    assert plan.turns

    def time_of(choice, bit_per_s):
        way = "gather" if choice.exchange == "sum" else choice.exchange
        operator = None if choice.operator == "binary32" else choice.operator
        found = pilot.predict(flat(bit_per_s), operator=operator, exchange=way, **asked_of(choice))
        return found.seconds_per_step.value / found.progress_per_step.value

    for turn in plan.turns:
        rival = next(choice for choice in plan.shown if choice.operator == turn["rival"])
        outside, inside = (1.02, 1 / 1.02) if turn["side"] == "above" else (1 / 1.02, 1.02)
        at = turn["bit_per_s"]
        assert time_of(rival, outside * at) < time_of(plan.best, outside * at)
        assert time_of(plan.best, inside * at) <= time_of(rival, inside * at)


def test_the_rescaling_of_the_rate_is_that_of_theorem_1():
    def best_rate(m, tau):
        rates = np.geomspace(1e-6, 5e-4, 6001)
        at = {"K": 1e9, "L": 1.0, "gap": 1.0, "sigma2": 1.0, "m": m, "tau": tau}
        return rates[np.argmin(pasgd_iterations(eta=rates, **at))]

    assert best_rate(16, 1) / best_rate(4, 1) == pytest.approx(2, rel=0.01)
    assert best_rate(10**9, 1001) / best_rate(10**9, 126) == pytest.approx(0.5, rel=0.01)


def test_a_limit_is_said_at_half_and_at_twice_its_constant():
    said = rd.bits_lower_bound(d=1, omega=1).answer().facts["changes with"]
    rates = re.findall(r"([\d.]+)(?: bits per coordinate)? at omega = ([\d.]+)", said)
    assert len(rates) == 2
    for rate, level in rates:
        assert float(rate) == pytest.approx(np.log2(1 + 1 / float(level)) / 2, rel=5e-3)
    assert (
        rd.bits_lower_bound(d=1, alpha=0.9).answer().facts["changes with"]
        == "0.576 bits per coordinate at alpha = 0.45"
    )


SHELL = re.compile(r"ratedist (measure x\.npy --operators [^\n]*)")


@pytest.mark.parametrize("line", ["bits --d 1000 --omega 2", "bits --d 9 --alpha 0.1 0.5", "solve --d 1e6 --bits 2e6"])
def test_advice_for_the_shell_can_be_run(line, printed, folder):
    np.save(folder / "x.npy", np.arange(1.0, 65.0, dtype=np.float32))
    advised = SHELL.search(" ".join(printed(line).split()))[1]
    assert "bits" in printed(advised)


def pasted(text):
    """The arguments that a POSIX shell hands to the command at the end of an answer, its line breaks included."""
    command = text[text.index("ratedist ", text.index("-> ")) :]
    shell = f"ratedist() {{ printf '%s\\0' \"$@\"; }}\n{command}"
    words = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=10, check=True).stdout
    return shlex.join(words.rstrip("\0").split("\0"))


@pytest.mark.parametrize(
    "line",
    [
        "--workers 16 --step-s 0.08 --eta 0.05 --tau 8 --time-s 3600 --d 25600000",
        "--workers 64 --nodes 8 --inside nvlink4,3e-6 --between 4e11,5e-6 --eta 0.05 --tau 8 --time-s 36 --bits 1e6",
        "--workers 4 --topology tree --compute constant --eta 0.1 --tau 64 --time-s 1e3 --bits 0 --curvature convex",
        "--workers 4 --eta 0.001 --tau 1 --time-s 5 --bits 0 --omega 1/2",  # says nothing: more time
    ],
)
def test_the_command_that_an_error_advises_can_be_pasted_and_lowers_it(line, printed):
    line = f"error --L 1 --sigma2 1 --gap 1 {line}"
    advised = pasted(printed(line))
    assert advised.startswith("error ")
    before, after = (json.loads(printed(f"{each} --json"))["value"] for each in (line, advised))
    assert after < before


def shares_said(facts):
    return [float(share) for share in re.findall(r"(\d+)% ", facts["a round"].partition(";")[0])]


@pytest.mark.parametrize("compute", ["constant", "exponential"])
def test_the_shares_of_a_round_are_all_named(compute):
    cluster = rd.Cluster(workers=8, step_s=0.1, compute=compute, bandwidth_bit_per_s=1e9)
    by_theorem = rd.plan(d=10**7, cluster=cluster, operators=["identity"], target=0.1)
    for plan in (by_theorem, rd.plan(pilot="resnet20", cluster=cluster)):
        assert sum(shares_said(plan.answer().facts)) == pytest.approx(100, abs=4)


def test_a_plan_that_is_not_decided_says_try():
    plans = [rd.plan(pilot=pilot, cluster=flat(1e9)) for pilot in (pilot_on(problem("even")), noisy(8))]
    for plan in plans:
        assert plan.verdict.startswith("Try " if plan.alike or plan.to_run != plan.best else "Use ")
        assert bool(plan.answer().facts["not decided"]) == bool(plan.alike)
    assert any(plan.alike for plan in plans)


@pytest.mark.parametrize("is_tried", [True, False])
@pytest.mark.parametrize("name", ["resnet20", "transformer"])
def test_the_table_of_a_pilot_is_in_the_order_of_the_ranking_and_has_the_surest(name, is_tried):
    pilot = rd.Pilot.read(name)
    pilot = pilot if is_tried else replace(pilot, rounds=None)
    plan = rd.plan(pilot=pilot, cluster=rd.Cluster(workers=64, step_s=0.5))
    answer = plan.answer()
    (table,) = answer.tables
    assert table.rows[0][:3] == (
        operator_text(plan.best.operator),
        exchange_text(plan.best.exchange),
        str(plan.best.tau),
    )
    numbers = [row[5].rpartition(" to ")[2] if is_tried else row[4] for row in table.rows if row[4] != "unknown"]
    assert len(numbers) > 3
    assert list(map(float, numbers)) == sorted(map(float, numbers))
    low, high = plan.surest.ratio_ends
    assert f"{low:.3g} to {high:.3g}" in {row[5] for row in table.rows}
    assert (plan.surest == plan.best) == is_tried
    assert answer.verdict.startswith(("Try " + plan.to_run.name, "Use " + plan.to_run.name))
    assert answer.code == plan.script_line(plan.to_run)
    assert answer.facts["why"].startswith("no choice has a smaller")
    named = answer.facts["surest"].partition(":")[0]
    assert named.startswith(plan.surest.name) if plan.surest != plan.to_run else named == ""


def test_messages_that_are_not_compressed_have_one_name():
    cluster = rd.Cluster(workers=64, step_s=0.5, bandwidth_bit_per_s=1e12)
    asked = {"operators": ["identity", "tcdq:omega=1"], "codec": "free"}
    for plan in (rd.plan(pilot="resnet20", cluster=cluster), rd.plan(d=10**6, cluster=cluster, target=0.1, **asked)):
        text = str(plan)
        assert "uncompressed" in text
        assert not re.search(r"binary32|identity", text)


def test_no_bandwidth_changes_the_choice_where_it_is_said():
    asked = {"operators": ["tcdq:omega=1", "qsgd:4"], "target": 0.1, "codec": "free"}

    def best(bandwidth):
        return rd.plan(d=10**6, cluster=rd.Cluster(workers=64, bandwidth_bit_per_s=bandwidth), **asked)

    assert best(1e10).answer().facts["other links"].startswith("the same choice at 1/1000")
    assert len({best(bandwidth).best.operator for bandwidth in (1e7, 1e10, 1e13)}) == 1


def test_the_nearest_bandwidth_at_which_the_choice_changes_is_said_first():
    links = {"inside": rd.Link(3.6e12, 3e-6), "between": rd.Link(1e9, 2e-5)}
    plan = rd.plan(pilot="resnet20", cluster=rd.Cluster(nodes=8, gpus_per_node=8, **links))
    away = [abs(np.log(turn["bit_per_s"] / 1e9)) for turn in plan.turns]
    assert len(away) > 1
    assert away == sorted(away)
    assert plan.answer().facts["other links"] == plan.turns[0]["words"]


def test_a_rival_with_less_time_that_is_ranked_behind_turns_nothing():
    plan = rd.plan(pilot="resnet20", cluster=rd.Cluster(workers=16, step_s=0.02, bandwidth_bit_per_s=1e9))
    behind = {choice.operator for choice in plan.shown if choice.ratio < plan.best.ratio}
    assert behind
    rivals = {choice.operator: choice for choice in plan.shown[1:]}
    assert not behind & {turn["rival"] for turn in turns(plan.best, rivals, plan.time_of, plan.cluster)}


def test_an_excess_below_0_is_explained(printed, folder):
    np.save(folder / "steep.npy", 0.9 ** np.arange(1000, dtype=np.float32))
    assert "below 0: the limit holds for the mean over Gaussian vectors" in " ".join(
        printed("compare topk steep.npy --against qsgd --bits 2").split()
    )
    assert "below 0" not in printed("compare tcdq gradient.npy --against qsgd --bits 2")
