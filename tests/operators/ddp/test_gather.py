"""Messages between real processes: all arrive, in rank order, and one who has none does not stop the others."""

import pytest
import torch
import torch.distributed as dist

from gpu_validation.processes.launch import run_ranks
from operators import Message
from operators.ddp.collectives import HEADER_BYTES, Gather, Refusal, predicted_payload_bytes

pytestmark = pytest.mark.timeout(90)
LENGTHS = (0, 3, 1000, 17)  # bits, one a rank


def message_of(rank, bits):
    return Message(torch.full(((bits + 7) // 8,), 0x80 + rank, dtype=torch.uint8), bits)


def content(messages):
    return [(m.bits, m.payload.tolist()) for m in messages]


def reports(work, processes=4):
    def report(place, emit):
        emit((place.rank, work(place)))

    return [result for _, result in sorted(run_ranks(report, processes=processes, hang_timeout_s=30))]


def test_unequal_messages_arrive_in_rank_order_and_every_byte_is_counted():
    def work(place):
        gather = Gather(message_of(place.rank, LENGTHS[place.rank]))
        gather.send()
        return content(gather.wait()), gather.lengths, gather.payload_bytes

    found = reports(work)

    expected = content([message_of(rank, bits) for rank, bits in enumerate(LENGTHS)])
    assert [messages for messages, _, _ in found] == [expected] * 4
    assert [lengths for _, lengths, _ in found] == [LENGTHS] * 4
    assert [sent for *_, sent in found] == [3 * (HEADER_BYTES + len(payload)) for _, payload in expected]
    assert sum(sent for *_, sent in found) == predicted_payload_bytes(LENGTHS, 4)


def test_gathers_under_way_together_do_not_mix():
    def work(place):
        gathers = [Gather(message_of(place.rank, 8 * i + place.rank)) for i in range(5)]
        futures = []
        for gather in gathers:
            gather.send()
            futures.append(gather.then(content))
        return [future.wait() for future in futures]

    expected = [content([message_of(rank, 8 * i + rank) for rank in range(3)]) for i in range(5)]
    assert reports(work, processes=3) == [expected] * 3


def test_a_refusal_is_known_to_every_rank_with_its_reason():
    def work(place):
        gather = Gather(message_of(place.rank, 9) if place.rank != 2 else 41)
        with pytest.raises(Refusal, match="rank 2 had no message to send") as caught:
            gather.send()
        later = Gather(message_of(place.rank, 5))  # the group is still of use
        later.send()
        return caught.value.rank, caught.value.reason, len(later.wait())

    assert reports(work) == [(2, 41, 4)] * 4


def test_a_group_of_some_ranks_talks_alone():
    def work(place):
        group = dist.new_group([1, 3])
        if place.rank not in (1, 3):
            return None
        gather = Gather(message_of(place.rank, 8), group=group)
        gather.send()
        return gather.rank, content(gather.wait())

    expected = content([message_of(1, 8), message_of(3, 8)])
    assert reports(work) == [None, (0, expected), None, (1, expected)]


def test_what_the_callback_raises_is_raised_by_the_future():
    def work(place):
        def fail(messages):
            raise ValueError("the tensor is mauve")

        gather = Gather(message_of(place.rank, 8))
        gather.send()
        with pytest.raises(Exception, match="the tensor is mauve"):
            gather.then(fail).wait()

    assert reports(work, processes=2) == [None, None]


def test_prediction_by_hand():
    assert predicted_payload_bytes([9, 16], 2) == (8 + 2) + (8 + 2)
    assert predicted_payload_bytes([9, 16, 0], 3) == 2 * (10 + 10 + 8)


def test_one_collective_is_enough_where_all_know_the_lengths():
    exact = [16, 5, 27]

    def work(place):
        found = []
        for known in (exact, None):
            gather = Gather(message_of(place.rank, exact[place.rank]), exact=known)
            gather.send()
            counted = gather.payload_bytes, gather.received_bytes, gather.lengths
            found.append((content(gather.wait()), counted, content(gather.then(lambda messages: messages).wait())))
        return found

    for at_once, in_two in reports(work, processes=3):
        assert at_once == in_two
        assert at_once[0] == content([message_of(rank, bits) for rank, bits in enumerate(exact)])


def test_frames_tell_of_a_refusal_and_of_a_length_that_was_not_declared():
    def work(place):
        words = []
        for outgoing in (41, message_of(1, 70)):
            gather = Gather(outgoing if place.rank == 1 else message_of(place.rank, 9), exact=[9, 9, 9])
            with pytest.raises((Refusal, ValueError)) as caught:
                gather.send()
            words.append(str(caught.value))
        return words

    refusal = "rank 1 had no message to send; its reason has the number 41"
    wrong = "a message of rank 1 is not as long as its operator declares exactly: correct the operator's bits(d)"
    assert reports(work, processes=3) == [[refusal, wrong]] * 3
