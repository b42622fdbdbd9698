"""Gradients that lie on a device stay there; their messages go to the transport and come back once."""

import torch

from gpu_validation.averaging.exchange.movements import Payload, Receiver, Sender
from gpu_validation.processes.launch import run_ranks
from operators import Key, Message, ScaledSign
from operators.ddp.bucket import Layout
from operators.ddp.collectives import Gather, Scatter
from operators.ddp.ends import GatherEnds, TwoShotEnds
from operators.feedback.memoryless import Memoryless
from tests.spy_device import Spy

SIZES, KEY = {"a": 300, "b": 1000}, Key(3)
VECTOR = 4 * min(SIZES.values()) // 2  # bytes of the shortest shard


def gradients():
    draw = torch.Generator().manual_seed(5)
    return [torch.randn(size, generator=draw) for size in SIZES.values()]


def reports(work, processes):
    def report(place, emit):
        emit((place.rank, work(place)))

    return [result for _, result in sorted(run_ranks(report, processes=processes, hang_timeout_s=60))]


def layout(layerwise):
    method = Memoryless(ScaledSign())
    return Layout(method, lambda name: method, layerwise, dict(zip(SIZES, range(2), strict=True)), KEY)


def gathered(device, layerwise):
    ends = [GatherEnds(layout(layerwise), SIZES, rank=rank, m=2) for rank in range(2)]
    messages = [end.encode([*SIZES], [g.to(device) for g in gradients()], 0) for end in ends]
    return ends[0].mean(messages, [*SIZES], 0)


def in_two_shots(device, layerwise):
    ends = [TwoShotEnds(layout(layerwise), layout(layerwise), SIZES, rank=rank, m=2) for rank in range(2)]
    sent = [end.encode([*SIZES], [g.to(device) for g in gradients()], 0) for end in ends]
    means = [end.merge([messages[owner] for messages in sent], [*SIZES], 0) for owner, end in enumerate(ends)]
    return ends[0].mean(means, [*SIZES], 0)


def test_the_ends_of_a_bucket_copy_no_vector_and_have_the_same_bits():
    def work(place):
        found = []
        for exchange in (gathered, in_two_shots):
            for layerwise in (False, True):
                with Spy() as spy:
                    means = exchange("spy", layerwise)
                    to_host = [n for n in spy.to_host if n >= VECTOR]
                    found.append((to_host, [mean.cpu().tolist() for mean in means]))
        return found

    expected = [exchange("cpu", layerwise) for exchange in (gathered, in_two_shots) for layerwise in (False, True)]
    for (to_host, means), wanted in zip(reports(work, 1)[0], expected, strict=True):
        assert not to_host
        assert means == [mean.tolist() for mean in wanted]


def test_messages_go_to_the_transport_and_come_back_once():
    def work(place):
        with Spy() as spy:
            payload = torch.full((800,), place.rank, dtype=torch.uint8)
            message = Message(payload.to("spy"), 6400)
            spy.to_device.clear()
            gather = Gather(message)
            gather.send()
            messages = gather.wait()
            scatter = Scatter([message, message])
            scatter.send()
            arrived = scatter.wait()
            devices = {m.payload.device.type for m in [*messages, *arrived]}
            copies = [n for n in spy.to_host if n >= 800], [n for n in spy.to_device if n >= 800]
            return devices, copies, [int(m.payload[0]) for m in [*messages, *arrived]]

    assert reports(work, 2) == [({"spy"}, ([800, 800], [800, 800]), [0, 1, 0, 1])] * 2


def test_movements_of_a_round_stay_on_the_device_with_their_numbers():
    def work(place):
        with Spy() as spy:
            x, keys = torch.cat(gradients()), KEY.of_ranks(range(2), step=0)
            payload = Payload(2, 2)
            message = Sender(ScaledSign(), d=1300).encode(x.to("spy"), keys[0])
            row, opened = payload.detach(payload.attach([1.5, 2.5], message))
            receiver = Receiver(ScaledSign(), m=2, d=1300)
            mean, _ = receiver.mean(dict.fromkeys(range(2), opened), range(2), keys, ())
            return row, mean.device.type, [n for n in spy.to_host if n >= VECTOR], mean.cpu().tolist()

    row, device, to_host, mean = reports(work, 1)[0]
    assert (row, device, to_host) == ([1.5, 2.5], "spy", [])
    assert mean == ScaledSign()(torch.cat(gradients()), key=KEY).double().tolist()
