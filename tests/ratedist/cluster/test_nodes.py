"""Clusters of nodes: their shape, the way of their messages, what limits a run on them, and steps that overlap."""

from dataclasses import replace

import pytest

import ratedist as rd
from bounds.runtime import Constant, GatherNodes, Ring, SumNodes, TwoShotNodes
from operators import parse
from ratedist.cluster.travel import gathered_by_nodes, in_two_shots_of_nodes, travel
from ratedist.plans.run import faster_links

INSIDE, BETWEEN = rd.Link(1e12, 3e-6), rd.Link(1e11, 2e-5)
FREE = {"codec": "free", "target": 0.1}


def cluster(nodes=4, gpus_per_node=8, **keywords):
    links = {"inside": INSIDE, "between": BETWEEN}
    return rd.Cluster(**{"nodes": nodes, "gpus_per_node": gpus_per_node, "step_s": 0.1} | links | keywords)


def test_workers_nodes_and_gpus_fit_together():
    found = cluster()
    assert (found.workers, found.bandwidth_bit_per_s, found.latency_s) == (32, 1e11, 2e-5)
    assert rd.Cluster(workers="32", nodes="4", inside="1e12,3e-6").gpus_per_node == 8
    assert replace(found, step_s=0.2).links == found.links


def test_dense_messages_are_summed_in_the_nodes_first():
    expected = Ring(3e-6, 1.25e11).seconds(m=8, bits=8e9) + Ring(2e-5, 1.25e10).seconds(m=4, bits=8e9)
    assert cluster().averaging_s(8e9).midpoint == pytest.approx(expected)
    assert isinstance(cluster().communication(), SumNodes)


def test_a_node_with_a_single_gpu_is_a_worker_of_a_flat_ring():
    flat = rd.Cluster(workers=4, bandwidth_bit_per_s=1e11, latency_s=2e-5)
    single = rd.Cluster(nodes=4, gpus_per_node=1, between=BETWEEN, inside=INSIDE)
    for exchange in ("sum", "gather"):
        assert single.averaging_s(8e9, exchange).midpoint == pytest.approx(flat.averaging_s(8e9, exchange).midpoint)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"workers": 7, "nodes": 2, "inside": INSIDE}, "nodes must divide workers; got nodes = 2, workers = 7"),
        ({"workers": 9, "nodes": 2, "gpus_per_node": 4, "inside": INSIDE}, "workers must equal nodes . gpus_per_node"),
        ({"workers": 8, "inside": INSIDE}, "inside goes with nodes"),
        ({"nodes": 2, "gpus_per_node": 4}, "nodes of 4 workers need inside"),
        ({"nodes": 2, "gpus_per_node": 4, "inside": INSIDE, "topology": "tree"}, "nodes need topology ring"),
        (
            {"nodes": 2, "gpus_per_node": 4, "inside": INSIDE, "between": BETWEEN, "latency_s": 1},
            "between stands for latency_s; got both",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(keywords, words):
    with pytest.raises(ValueError, match=words):
        rd.Cluster(**keywords)


def test_messages_of_nodes_need_nodes():
    with pytest.raises(ValueError, match="node_two_shot needs nodes"):
        rd.Cluster(workers=8).communication("node_two_shot")
    with pytest.raises(ValueError, match="messages of nodes need 2 nodes"):
        gathered_by_nodes(parse("randomk:0.25"), 10**4, cluster(nodes=1))


def test_the_error_of_messages_of_nodes_is_that_of_so_many_workers():
    """Each of n messages errs by omega; as m workers' it is p omega, so that both average to omega/n."""
    d, operator = 32 * 10**4, parse("randomk:0.25")
    gathered = gathered_by_nodes(operator, d, cluster())
    shots = in_two_shots_of_nodes(operator, parse("randomk:0.5"), d, cluster())
    assert gathered.claim.omega / 32 == pytest.approx(operator.claim(d // 8).omega / 4)
    assert shots.claim.omega / 32 == pytest.approx(operator.claim(d // 32).omega / 4)
    assert shots.second.omega == pytest.approx(parse("randomk:0.5").claim(d // 32).omega)


def test_messages_of_nodes_travel_after_exact_sums():
    d, first, second = 32 * 10**4, parse("randomk:0.25"), parse("randomk:0.5")
    gathered, shots = gathered_by_nodes(first, d, cluster()), in_two_shots_of_nodes(first, second, d, cluster())
    link, dense = {"latency_s": 2e-5, "bytes_per_s": 1.25e10}, {"node_workers": 8, "inside": Ring(3e-6, 1.25e11)}
    bits = [8 * operator.bits(d // 8).exact for operator in (first, second)]
    assert gathered.communicate_s(cluster()) == pytest.approx(
        GatherNodes(**link, **dense, dense_bits=32 * d).seconds(m=32, bits=bits[0]), rel=1e-3
    )
    expected = TwoShotNodes(**link, **dense, dense_bits=32 * d, result_bits=bits[1]).seconds(m=32, bits=bits[0])
    assert shots.communicate_s(cluster()) == pytest.approx(expected, rel=1e-3)
    assert (gathered.encoded, gathered.decoded) == (1 / 8, 4 / 8)
    assert (shots.encoded, shots.decoded) == (1 / 8 + 1 / 32, 2 / 8)


def test_casts_are_not_summed_in_binary32_across_nodes():
    operator = parse("cast:bf16,rounding=stochastic")
    found = travel(operator, operator.claim(10**6), 16e6, 10**6, cluster())
    assert found.exchange == "gather"


def test_a_slow_link_between_makes_the_plan_compress_once_a_node():
    found = rd.plan(d=10**8, cluster=cluster(between=rd.Link(1e9, 1e-4)), operators=["tcdq:omega=0.1"], **FREE)
    assert found.best.exchange == "node_two_shot"
    assert found.best.name.endswith("in two shots between nodes")
    flat = rd.plan(
        d=10**8, cluster=cluster(between=rd.Link(1e9, 1e-4)), operators=["tcdq:omega=0.1"], exchange="two_shot", **FREE
    )
    assert flat.best.communicate_s > 7 * found.best.communicate_s


@pytest.mark.parametrize(
    ("keywords", "limit", "part"),
    [
        ({"compute": "constant"}, "compute", "steps"),
        ({"compute": "constant", "step_s": 1e-6}, "bandwidth", "bandwidth of the links between nodes"),
        ({"step_s": 1e-9, "between": rd.Link(1e15, 1.0)}, "latency", "latency of the links between nodes"),
        ({"between": rd.Link(1e15, 1e-9)}, "stragglers", "steps"),
    ],
)
def test_what_is_slow_is_named_and_first_to_change(keywords, limit, part):
    limits = rd.plan(d=10**8, cluster=cluster(**keywords), operators="identity", **FREE).best.limits
    assert (limits.limit, limits.changes[0].part) == (limit, part)
    assert sum(limits.shares.values()) == pytest.approx(1)
    assert limits.limit in limits.in_words()


@pytest.mark.parametrize("asked", ["identity", "tcdq:omega=0.1"])
@pytest.mark.parametrize("made", [cluster(), rd.Cluster(workers=16, bandwidth_bit_per_s=1e9)])
def test_what_a_faster_link_saves_is_the_difference_of_two_plans(asked, made):
    """The rounds of an operator are those of its theorem: a plan on the faster cluster differs by the saved seconds."""
    best = rd.plan(d=10**7, cluster=made, operators=asked, **FREE).best
    changes = {change.part: change for change in best.limits.changes}
    for part, faster in faster_links(made):
        planned = (
            rd.plan(d=10**7, cluster=faster, operators=asked, exchange=best.exchange, **FREE).best
            if (best.exchange != "sum")
            else rd.plan(d=10**7, cluster=faster, operators=asked, **FREE).best
        )
        saved_s = best.seconds - planned.seconds
        assert changes[part].saved_s == pytest.approx(saved_s, rel=1e-6, abs=1e-9 * best.seconds)
        assert changes[part].saved_share == pytest.approx(saved_s / best.seconds, rel=1e-6, abs=1e-9)


def test_what_faster_steps_and_codecs_save_is_the_difference_of_two_plans():
    def planned(step_s, codec):
        made = cluster(compute="constant", step_s=step_s)
        asked = {"operators": "tcdq:omega=0.1", "exchange": "node_two_shot", "target": 0.1}
        return rd.plan(d=10**7, cluster=made, codec=codec, **asked).best

    codec, faster = rd.Codec(2e-9, 1e-9), rd.Codec(1e-9, 5e-10)
    best = planned(0.1, codec)
    changes = {change.part: change.saved_s for change in best.limits.changes}
    assert changes["steps"] == pytest.approx(best.seconds - planned(0.05, codec).seconds, rel=1e-6)
    assert changes["codecs"] == pytest.approx(best.seconds - planned(0.1, faster).seconds, rel=1e-6)


def test_the_limits_stand_in_the_answer():
    found = rd.plan(d=10**7, cluster=cluster(), operators="identity", **FREE)
    fields = found.to_dict()["ranking"][0]["limits"]
    assert fields["limit"] == found.best.limits.limit
    assert fields["changes"][0]["part"] in found.explain()


def test_fragments_in_flight_take_the_longer_of_steps_and_messages():
    """One average of 2 (1 - 1/4) 1e9 bits/1e9 bit/s = 1.5 s beside steps of .1 s."""
    made = rd.Cluster(workers=4, bandwidth_bit_per_s=1e9, latency_s=0, compute=Constant(0.1))
    late = rd.step_in_flight_s(made, tau=20, bits=1e9, in_flight=5)
    assert late == pytest.approx((15 * 0.1 + 1.5) / 20)
    assert rd.step_in_flight_s(made, tau=20, bits=1e9, in_flight=5, parts=2) == pytest.approx((5 * 0.1 + 0.75) / 10)
    assert rd.step_in_flight_s(made, tau=20, bits=1e9) == pytest.approx(0.1)


def test_fragments_of_nodes_are_dense_fragments_inside():
    made = cluster(compute="constant")
    whole = rd.step_in_flight_s(
        made, tau=8, bits=1e10, exchange="node_two_shot", in_flight=0, dense_bits=1e11, result_bits=1e10
    )
    parts = rd.step_in_flight_s(
        made, tau=8, bits=1e10, exchange="node_two_shot", in_flight=0, parts=4, dense_bits=1e11, result_bits=1e10
    )
    averaging_s = made.averaging_s(1e10, "node_two_shot", dense_bits=1e11, result_bits=1e10).midpoint
    latency_s = made.averaging_s(0, "node_two_shot").midpoint
    assert whole == pytest.approx(0.1 + averaging_s / 8)
    assert parts == pytest.approx(0.1 + (averaging_s + 3 * latency_s) / 8)


def test_a_backward_pass_hides_what_fits_into_it():
    made = rd.Cluster(workers=4, bandwidth_bit_per_s=1e9, latency_s=0, compute=Constant(0.3))
    assert rd.step_overlapped_s(made, bits=1e8, backward_fraction=0.5) == pytest.approx(0.3)
    assert rd.step_overlapped_s(made, bits=2e8, backward_fraction=0.5) == pytest.approx(0.15 + 0.3)
