"""An exchange of vectors that lie on a device: the same bits as on the CPU, and no copy but the codec's own."""

import pytest
import torch

from gpu_validation.processes.launch import run_ranks
from operators import EDEN, TCDQ, ErrorFeedback, Key, NaturalDithering, ScaledSign, SignSGD, TernGrad
from operators.exchange import Channel, mean_of_ranks
from operators.exchange.channel import TO_OWNER

from ...spy_device import Spy

D, M, KEY = 1000, 3, Key(4, step=2)
STAYS = [ScaledSign(), SignSGD(), TernGrad()]
HOST = [NaturalDithering(), TCDQ(omega=0.5), EDEN(bits_per_coordinate=2)]
HEADERS = 64  # bytes: a norm or a count that the host reads


def in_a_process(work):
    def report(place, emit):
        emit(work())

    (result,) = run_ranks(report, processes=1, hang_timeout_s=60)
    return result


def vectors():
    draw = torch.Generator().manual_seed(3)
    return [torch.randn(D, generator=draw) for _ in range(M)]


def copies(method, exchange):
    """Bytes of each copy to the host, and of each to the device; the means have been compared."""
    expected = mean_of_ranks(vectors(), method, exchange=exchange, key=KEY).mean

    def work():
        with Spy() as spy:
            there = [x.to("spy") for x in vectors()]
            spy.to_device.clear()
            mean = mean_of_ranks(there, method, exchange=exchange, key=KEY).mean
            copied = list(spy.to_host), list(spy.to_device)
            return mean.device.type, mean.cpu().tolist(), *copied

    device, mean, to_host, to_device = in_a_process(work)
    assert device == "spy"
    assert mean == expected.tolist()
    return to_host, to_device


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
@pytest.mark.parametrize("method", STAYS, ids=repr)
def test_operators_with_kernels_leave_vectors_where_they_lie(method, exchange):
    to_host, to_device = copies(method, exchange)
    assert not [n for n in [*to_host, *to_device] if n >= 4 * D // M], "a vector has been copied"


@pytest.mark.parametrize("method", HOST, ids=repr)
def test_operators_of_the_host_copy_each_vector_and_each_message_once(method):
    to_host, to_device = copies(method, "gather")
    assert [n for n in to_host if n == 4 * D] == [4 * D] * M, "to be encoded"
    assert [n for n in to_device if n == 4 * D] == [4 * D] * M, "once decoded"
    assert len([n for n in to_host if n > HEADERS]) == len([n for n in to_device if n > HEADERS]) == 2 * M


def test_a_memory_follows_its_vectors_at_the_first_message_and_stays():
    def channel(receives):
        feedback = ErrorFeedback(ScaledSign())
        return Channel(feedback, KEY, stage=TO_OWNER, rank=0, shard=0, d=D, receives=receives)

    def decoded(device, spy=None):
        sender, receiver, copied = channel(False), channel(True), []
        for step, x in enumerate(vectors()):
            there = x.to(device)
            if spy:
                spy.to_device.clear()
            mean = receiver.decode(sender.encode(there, step), step)
            if spy:
                copied.append([n for n in spy.to_device if n > HEADERS])
        return mean.cpu().tolist(), sender.state["residual"].cpu().tolist(), copied

    def work():
        with Spy() as spy:
            return *decoded("spy", spy), [n for n in spy.to_host if n < 4 * D]

    mean, residual, copied, headers = in_a_process(work)
    expected, owed, _ = decoded("cpu")
    assert mean == expected
    assert residual == owed
    assert copied == [[4 * D], [], []], "the zeros that it begins with"
    assert not headers
