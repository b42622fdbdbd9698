"""The line of a script that a plan prints: it runs, and it does what the choice says."""

import inspect
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ratedist as rd
from gpu_validation import Corrected, Nodes, PeriodicAveraging, TwoShot
from operators import ErrorFeedback, parse
from operators.ddp import register
from ratedist.plans.run import Rhythm
from ratedist.plans.script import script_line

WITHOUT_ROUNDS = replace(rd.Pilot.read("resnet20"), rounds=None)
NODES = {"nodes": 4, "inside": "nvlink4,3e-6", "between": "ethernet_1g,2e-5"}


def choices(pilot="resnet20", **cluster):
    plan = rd.plan(pilot=pilot, cluster=rd.Cluster(workers=16, step_s=0.02, **cluster))
    return plan, [choice for choice in plan.ranking if choice.feasible]


@pytest.mark.parametrize(
    ("operator", "exchange", "rhythm", "more", "line"),
    [
        ("binary32", "sum", Rhythm(), {}, "DistributedDataParallel(model)"),
        ("binary32", "sum", Rhythm(buckets=7), {}, "DistributedDataParallel(model)"),
        ("binary32", "sum", Rhythm(8), {}, "PeriodicAveraging(model, optimizer, schedule=8)"),
        ("qsgd:16", "gather", Rhythm(), {}, 'register(ddp_model, "qsgd:16")'),
        (
            "topk:0.01",
            "two_shot",
            Rhythm(),
            {"fed_back": True},
            'register(ddp_model, "topk:0.01", feedback=ErrorFeedback, exchange="two_shot")',
        ),
        (
            "scaled_sign",
            "node_gather",
            Rhythm(4),
            {"fed_back": True, "workers_per_node": 8},
            'PeriodicAveraging(model, optimizer, schedule=4, operator=ErrorFeedback(parse("scaled_sign")), '
            "membership=Nodes(8))",
        ),
        (
            "qsgd:16",
            "node_two_shot",
            Rhythm(8, 2, 2),
            {"workers_per_node": 2},
            'PeriodicAveraging(model, optimizer, schedule=8, exchange=TwoShot(parse("qsgd:16")), '
            "membership=Nodes(2), merge=Corrected(delay=2, fragments=2))",
        ),
    ],
)
def test_the_line_says_operator_exchange_and_rhythm(operator, exchange, rhythm, more, line):
    assert script_line(operator, exchange, rhythm, **more) == line


@pytest.mark.parametrize(("pilot", "is_sure"), [("transformer", True), (WITHOUT_ROUNDS, False)], ids=["tried", "not"])
def test_a_plan_prints_the_line_of_its_first_choice_or_the_surest_if_that_may_be_slower(pilot, is_sure):
    plan, _ = choices(pilot, bandwidth_bit_per_s=1e12)
    assert (plan.best.ratio_ends[1] <= 1) == is_sure
    answer = plan.answer()
    used = plan.best if is_sure else plan.surest
    assert answer.to_dict()["code"] == answer.code == plan.script_line(used)
    assert answer.follow_up == "in your script"
    assert plan.to_run == used
    assert used.name in plan.verdict
    assert (plan.best.name in answer.facts["why"]) == (used != plan.best)
    assert str(plan).endswith(answer.code) or answer.code.replace(" ", "") in "".join(str(plan).split())


def test_nodes_have_as_many_ranks_as_the_cluster_says():
    plan, found = choices(**NODES)
    lines = [plan.script_line(choice) for choice in found if choice.exchange.startswith("node_")]
    assert lines
    assert all("ranks_per_node=4" in line or "membership=Nodes(4)" in line for line in lines)


@pytest.mark.parametrize("cluster", [{"bandwidth_bit_per_s": 1e9}, NODES], ids=["flat", "nodes"])
def test_every_line_of_a_plan_runs(cluster, tmp_path):
    """Lines for nodes of several ranks are only bound to the signature: one process cannot fill a node."""
    plan, found = choices(**cluster)
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.FileStore(str(tmp_path / "store"), 1))
    try:
        for line in sorted({plan.script_line(choice) for choice in found}):
            model = torch.nn.Linear(8, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            alone = "ranks_per_node" not in line and "Nodes(" not in line
            names = {
                "model": model,
                "optimizer": optimizer,
                "parse": parse,
                "ErrorFeedback": ErrorFeedback,
                "DistributedDataParallel": DistributedDataParallel,
                "ddp_model": DistributedDataParallel(model) if line.startswith("register") else None,
                **{part.__name__: part for part in (TwoShot, Nodes, Corrected)},
                "register": register if alone else bound(register),
                "PeriodicAveraging": PeriodicAveraging if alone else bound(PeriodicAveraging),
            }
            made = eval(line, names)
            if isinstance(made, PeriodicAveraging):
                assert made.tau == int(line.partition("schedule=")[2].partition(",")[0].rstrip(")"))
    finally:
        dist.destroy_process_group()


def bound(call):
    return lambda *given, **named: inspect.signature(call).bind(*given, **named)
