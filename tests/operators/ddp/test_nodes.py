"""Exact sums inside nodes and compressed exchanges between them: gradients by the definition, bytes of either link."""

import itertools

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from operators import EF21, QSGD, ErrorFeedback, Identity, Message, ScaledSign, TopK
from operators.ddp import register
from operators.ddp.bucket import Layout
from operators.ddp.ends import GatherEnds, TwoShotEnds
from operators.exchange.channel import with_memory
from operators.exchange.choice import lengths
from operators.summed import SharedScale

from .test_hook import KEY, OddShapes, assert_same, gradients_of, reports, wanted

pytestmark = pytest.mark.timeout(200)
NAMES, STEPS = ["scale", "kernel", "matrix"], 3
SIZES = {"scale": 1, "kernel": 30, "matrix": 2100}
METHODS = [QSGD(levels=4), ErrorFeedback(ScaledSign()), EF21(TopK(fraction=0.1))]


def exchange_gradients(place, method, steps=STEPS, settings=None, restarted=False, **hook_settings):
    def made(later):
        model = DistributedDataParallel(OddShapes(), **(settings or {} if later else {}))
        return model, register(model, method, key=KEY, **hook_settings)

    model, hook = made(False)
    found = []
    for step in range(steps):
        if restarted and step == 2:
            state = hook.state_dict()
            model, hook = made(True)
            hook.load_state_dict(state)
        model.zero_grad()
        model(wanted(place.rank, step)).backward()
        found.append(gradients_of(model))
    inside = hook.inside.payload_bytes, hook.inside.predicted_bytes
    return found, (hook.payload_bytes, hook.predicted_bytes), inside


def by_hand(method, exchange, scope, nodes, per_node):
    """Node by node: its mean in binary32, a shard of which every place exchanges as one of the nodes."""
    method, cuts = with_memory(method), {name: lengths(size, per_node) for name, size in SIZES.items()}

    def ends_of(place):
        numbers = dict(zip(NAMES, range(3), strict=True))
        layout = Layout(method, lambda name: method, scope == "layer", numbers, KEY.fold_in(place))
        shard = {name: cut[place] for name, cut in cuts.items()}
        if exchange == "gather":
            return [GatherEnds(layout, shard, rank=node, m=nodes) for node in range(nodes)]
        return [TwoShotEnds(layout, layout, shard, rank=node, m=nodes) for node in range(nodes)]

    def shard_of(node, place, step):
        of_ranks = [wanted(node * per_node + rank, step) for rank in range(per_node)]
        means = {name: sum(g[name].double() for g in of_ranks).reshape(-1) / per_node for name in NAMES}
        return [means[name].float().split(cuts[name])[place] for name in NAMES]

    ends, found = [ends_of(place) for place in range(per_node)], []
    for step in range(STEPS):
        pieces = []
        for place, of_nodes in enumerate(ends):
            sent = [end.encode(NAMES, shard_of(node, place, step), step) for node, end in enumerate(of_nodes)]
            if exchange == "two_shot":
                sent = [end.merge([m[owner] for m in sent], NAMES, step) for owner, end in enumerate(of_nodes)]
            means = [end.mean(sent, NAMES, step) for end in of_nodes]  # all of them remember
            pieces.append(means[0])
        wholes = {name: torch.cat([piece[i].float() for piece in pieces]) for i, name in enumerate(NAMES)}
        shapes = {name: wanted(0, 0)[name].shape for name in NAMES}
        found.append({name: whole.reshape(shapes[name]).double().numpy() for name, whole in wholes.items()})
    return found


@pytest.mark.every(4)
@pytest.mark.parametrize("scope", ["bucket", "layer"])
@pytest.mark.parametrize(("ranks", "per_node"), [(4, 2), (6, 3)])
def test_gradients_are_those_of_the_definition_and_every_byte_of_either_link_is_predicted(ranks, per_node, scope):
    cases = list(itertools.product(METHODS, ("gather", "two_shot")))

    def work(place):
        settings = {"ranks_per_node": per_node, "scope": scope}
        return [exchange_gradients(place, method, exchange=exchange, **settings) for method, exchange in cases]

    results = reports(work, ranks)
    raw = sum(4 * (d - lengths(d, per_node)[0]) for d in SIZES.values())  # bytes of the shards of the other places
    for i, (method, exchange) in enumerate(cases):
        expected = by_hand(method, exchange, scope, ranks // per_node, per_node)
        for result in results:
            assert_same(result[i][0], expected)
        places, nodes = range(per_node), range(0, ranks, per_node)
        for link, groups in ((1, places), (2, nodes)):
            assert sum(result[i][link][0] for result in results) == sum(results[r][i][link][1] for r in groups)
        own = sum(4 * lengths(d, per_node)[0] for d in SIZES.values())
        assert results[0][i][2][0] == STEPS * (raw + (per_node - 1) * (own + 32 + 8))


def test_whole_numbers_come_through_exactly():
    def work(place):
        return exchange_gradients(place, Identity(), steps=1, ranks_per_node=2, exchange="two_shot")[0]

    means = {name: sum(wanted(rank, 0)[name].double().numpy() for rank in range(4)) / 4 for name in NAMES}
    for found in reports(work, 4):
        assert_same(found, [means])


def test_a_restart_goes_on_bit_for_bit_in_other_buckets():
    def work(place):
        settings = {"ranks_per_node": 2, "exchange": "two_shot", "scope": "layer"}
        method = ErrorFeedback(ScaledSign())
        straight = exchange_gradients(place, method, **settings)
        buckets = {"bucket_cap_mb": 0.001}
        return straight[0], exchange_gradients(place, method, settings=buckets, restarted=True, **settings)[0]

    for straight, broken in reports(work, 4):
        assert_same(broken, straight)


def test_a_gradient_that_is_not_finite_is_one_sentence_on_every_rank_of_every_node():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        register(model, QSGD(levels=4), ranks_per_node=2, exchange="two_shot")
        gradients = wanted(place.rank, 0)
        if place.rank == 1:
            gradients["kernel"][1, 0, 2] = float("nan")
        with pytest.raises(ValueError, match="is not finite") as caught:
            model(gradients).backward()
        return str(caught.value)

    words = (
        "the gradient of kernel on rank 1 is not finite in binary32: entry 12 at step 0; look for an overflow in the "
        "loss, or clip"
    )
    assert reports(work, 4) == [words] * 4


def test_what_fails_between_nodes_is_told_inside_them():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        hook = register(model, ScaledSign(), exchange="two_shot", ranks_per_node=2)
        if place.rank == 3:
            merge = hook._ends.merge
            hook._ends.merge = lambda messages, names, step: merge(
                [Message(messages[0].payload[:3], 24), *messages[1:]], names, step
            )
        with pytest.raises(ValueError, match="rank 3 could not form the mean of its shard at step 0") as caught:
            model(wanted(place.rank, 0)).backward()
        return str(caught.value)

    words = reports(work, 4)
    assert words[:3] == ["rank 3 could not form the mean of its shard at step 0; its error says why"] * 3
    assert "the shard that rank 0 sent is damaged" in words[3]


@pytest.mark.parametrize("per_node", [0, 3, 4])
def test_nodes_that_the_ranks_do_not_fill_are_refused(per_node):
    def work(place):
        with pytest.raises(ValueError, match="ranks_per_node must be 1, or divide") as caught:
            register(DistributedDataParallel(OddShapes()), QSGD(levels=4), ranks_per_node=per_node)
        with pytest.raises(ValueError, match="ranks_per_node out"):
            register(DistributedDataParallel(OddShapes()), SharedScale(), ranks_per_node=2)
        return str(caught.value)

    assert len(set(reports(work, 4))) == 1


def test_each_rank_of_a_node_sends_its_shard_alone_over_the_slow_link():
    def work(place):
        return exchange_gradients(place, ScaledSign(), steps=1, ranks_per_node=2, exchange="two_shot")[1][0]

    def message(place, node):
        """Bytes of a scale and the signs of what a node owns of a place's shard."""
        return (32 + sum(lengths(lengths(d, 2)[place], 2)[node] for d in SIZES.values()) + 7) // 8

    nodes_and_places = itertools.product(range(2), repeat=2)
    assert reports(work, 4) == [
        32 + message(place, 1 - node) + 8 + message(place, node) for node, place in nodes_and_places
    ]
