import numpy as np
import pytest
import torch
import torch.distributed as dist

from gpu_validation.processes import collectives as module
from gpu_validation.processes.collectives import PLACE_BITS, ProcessTransport
from gpu_validation.processes.launch import NCCL, run_ranks
from gpu_validation.processes.reduction import fold
from gpu_validation.processes.step_check import UnevenSteps
from operators import Key, Message
from operators.ddp.collectives import HEADER_BYTES, predicted_payload_bytes
from operators.random import normal

from ..ranks import in_ranks

LENGTHS = (0, 3, 1000, 17)  # bits, one a rank

pytestmark = pytest.mark.timeout(90)


def message_of(rank):
    bits = LENGTHS[rank]
    payload = torch.full(((bits + 7) // 8,), 0x80 + rank, dtype=torch.uint8)
    return Message(payload, bits)


def test_unequal_messages_arrive_in_rank_order_and_every_byte_is_counted():
    def work(place, emit):
        transport = ProcessTransport()
        received = transport.all_gather(message_of(place.rank))
        emit((place.rank, [(m.bits, m.payload.tolist()) for m in received], transport.payload_bytes))

    reports = sorted(run_ranks(work, processes=4, hang_timeout_s=30))

    expected = [(message_of(r).bits, message_of(r).payload.tolist()) for r in range(4)]
    assert all(received == expected for _, received, _ in reports)
    assert sum(sent for _, _, sent in reports) == predicted_payload_bytes(list(LENGTHS), 4)
    for rank, _, sent in reports:
        assert sent == 3 * (HEADER_BYTES + message_of(rank).nbytes)


# -- messages with a position, and whole vectors -----------------------------------------------------------
SIZES = (1, 4, 10, 11)  # entries of a vector; fewer than ranks, and not divisible by them


def vector(rank, n, dtype):
    return torch.from_numpy(normal(Key(0, rank=rank), n)).to(dtype)


def everything(place):
    """By name: what arrived, what was sent, what was predicted."""
    transport, found = ProcessTransport(), {}

    def record(name, value):
        found[name] = value, transport.payload_bytes, transport.predicted_bytes
        transport.payload_bytes = transport.predicted_bytes = 0

    sent = None if place.rank == 1 else message_of(place.rank)
    messages = transport.gather([sent], position=70_000)
    record("gather", {rank: (m.bits, m.payload.tolist()) for rank, m in messages.items()})
    try:
        transport.gather([sent], position=3 + (place.rank == 2))
    except UnevenSteps as error:
        record("uneven", str(error))
    record("numbers", transport.all_gather_floats([[place.rank, 0.1]]))
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for n in SIZES:
            own = vector(place.rank, n, dtype)  # whose memory may be used
            record(("whole", n, dtype), transport.means([own.clone()], range(4))[0])
            record(("shards", n, dtype), transport._mean_of_shards(own.clone(), range(4)))
            record(("members", n, dtype), transport.means([own], [1, 3])[0])
    round_losses = transport.receive([vector(place.rank, 5, torch.float32)], lambda rank: [0, 3][: rank % 3])
    record("receive", round_losses[0])
    return found


@pytest.fixture(scope="module")
def reports():
    return in_ranks(everything, processes=4)


def predicted_and_sent(reports, name):
    return reports[0][name][2], sum(report[name][1] for report in reports)


def test_a_rank_without_a_message_sends_an_empty_one_and_all_learn_who_is_how_far(reports):
    expected = {r: (0, []) if r == 1 else (message_of(r).bits, message_of(r).payload.tolist()) for r in range(4)}
    framed = [PLACE_BITS + (0 if r == 1 else LENGTHS[r]) for r in range(4)]

    assert all(report["gather"][0] == expected for report in reports)
    assert predicted_and_sent(reports, "gather") == (predicted_payload_bytes(framed, 4),) * 2
    for report in reports:
        assert (
            "the ranks have made [3, 3, 4, 3] local steps: every rank must make the same number" in report["uneven"][0]
        )


def test_numbers_keep_their_64_bits(reports):
    assert all(report["numbers"][0] == [[0, 0.1], [1, 0.1], [2, 0.1], [3, 0.1]] for report in reports)
    assert predicted_and_sent(reports, "numbers") == (4 * 3 * 16,) * 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", SIZES)
def test_mean_has_the_same_bits_however_it_is_computed(reports, n, dtype):
    owns = [vector(rank, n, dtype) for rank in range(4)]

    for report in reports:
        for name in ("whole", "shards"):
            np.testing.assert_array_equal(report[name, n, dtype][0], fold(owns).numpy())
        np.testing.assert_array_equal(report["members", n, dtype][0], fold([owns[1], owns[3]]).numpy())
    width, kept = owns[0].element_size(), fold(owns).element_size()
    longest = -(-n // 4)
    spread = 3 * n * kept  # every rank's shard of the mean, to three others
    assert predicted_and_sent(reports, ("whole", n, dtype)) == (4 * 3 * n * width,) * 2
    assert predicted_and_sent(reports, ("shards", n, dtype)) == (3 * n * width + spread,) * 2
    foreign = sum(n - max(0, min(longest, n - r * longest)) for r in (1, 3))
    assert predicted_and_sent(reports, ("members", n, dtype)) == (foreign * width + spread,) * 2


def test_neighbours_are_heard_point_to_point(reports):
    for rank, report in enumerate(reports):
        round_losses = report["receive"][0]
        assert list(round_losses) == [0, 3][: rank % 3]
        for source, arrived in round_losses.items():
            np.testing.assert_array_equal(arrived, vector(source, 5, torch.float32).numpy())
    assert predicted_and_sent(reports, "receive") == ((0 + 1 + 2 + 0) * 20,) * 2


def test_groups_count_their_own_ranks():
    def work(place):
        group = dist.new_group([0, 2, 3])
        if place.rank == 1:
            return None
        transport = ProcessTransport(group=group)
        start = torch.tensor([float(place.rank), 7.0])
        transport.broadcast([[start]])
        (mean,) = transport.means([torch.tensor([float(place.rank)])], range(3))
        ((left,),) = [
            round_losses.values() for round_losses in transport.receive([mean + place.rank], lambda r: [(r - 1) % 3])
        ]
        return transport.rank, transport.size, transport.all_gather_int([place.rank]), start, mean, left

    reports = in_ranks(work, processes=4)

    assert reports[1] is None
    for rank, (place, before) in enumerate(((0, 3), (2, 0), (3, 2))):
        number, size, places, start, mean, left = reports[place]
        assert (number, size, places, start.tolist()) == (rank, 3, [0, 2, 3], [0.0, 7.0])
        assert mean.tolist() == [np.float32(5 / 3)]
        assert left.tolist() == [np.float32(np.float32(5 / 3) + np.float32(before))]


@pytest.mark.parametrize(("config", "device"), [("cpu:gloo,cuda:gloo", "cpu"), (NCCL, "cuda"), ("cuda:nccl", "cuda")])
def test_vectors_stay_on_the_gpu_only_under_nccl(monkeypatch, config, device):
    monkeypatch.setattr(module.dist, "get_backend_config", lambda group: config)

    assert module._device_of(None).type == device


# -- two ranks ---------------------------------------------------------------------------------------------
def awkward(rank, dtype):
    """Numbers whose sums round, among them subnormal ones."""
    tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    odd = tiny * torch.arange(1, 200, 1 + rank, dtype=dtype)[:80]
    return torch.cat([torch.from_numpy(normal(Key(0, rank=rank), 400)).to(dtype), odd, -odd, torch.zeros(3)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mean_of_two_has_the_bits_of_the_fold_and_takes_the_vectors_place(dtype):
    def work(place):
        own, transport = awkward(place.rank, dtype), ProcessTransport()
        mean = transport.means([own], range(2))[0]
        return mean, own, transport.payload_bytes, transport.predicted_bytes

    expected = fold([awkward(rank, dtype) for rank in range(2)]).numpy()
    for mean, own, sent, predicted in in_ranks(work, processes=2):
        np.testing.assert_array_equal(mean.view(np.uint8), expected.view(np.uint8))
        np.testing.assert_array_equal(own, mean)
        assert predicted == 2 * sent == 2 * expected.nbytes
