"""Another message for every rank, in real processes: all arrive, and one who has none does not stop the others."""

import pytest
import torch

from operators import Message
from operators.ddp.collectives import Refusal, Scatter, predicted_scatter_bytes

from .test_gather import content, reports

pytestmark = pytest.mark.timeout(90)


def message(rank, owner):
    bits = 7 * rank + 11 * owner
    return Message(torch.full(((bits + 7) // 8,), 16 * rank + owner, dtype=torch.uint8), bits)


def test_messages_arrive_by_sender_and_every_byte_is_counted():
    def work(place):
        shots = Scatter([message(place.rank, owner) for owner in range(3)], note=70_000 + place.rank)
        shots.send()
        return content(shots.wait()), shots.notes, shots.lengths, shots.payload_bytes, shots.sent_bytes

    found = reports(work, processes=3)

    for owner, (messages, notes, lengths, *_) in enumerate(found):
        assert messages == content([message(rank, owner) for rank in range(3)])
        assert notes == (70_000, 70_001, 70_002)
        assert lengths == tuple(sum(message(rank, j).bits for j in range(3)) for rank in range(3))
    for rank, (*_, sent, _) in enumerate(found):
        assert sent == 2 * 32 + sum(message(rank, owner).nbytes for owner in range(3) if owner != rank)
    assert sum(sent for *_, sent, _ in found) == predicted_scatter_bytes(found[0][-1], 3)


def test_a_refusal_is_known_to_every_rank_with_its_reason():
    def work(place):
        shots = Scatter([message(place.rank, owner) for owner in range(3)] if place.rank != 1 else 41)
        with pytest.raises(Refusal, match="rank 1 had no message to send") as caught:
            shots.send()
        later = Scatter([message(place.rank, owner) for owner in range(3)])  # the group is still of use
        later.send()
        return caught.value.reason, len(later.wait())

    assert reports(work, processes=3) == [(41, 3)] * 3


EXACT = [16, 5, 27]


def exact_message(rank, owner):
    return Message(torch.full(((EXACT[owner] + 7) // 8,), 16 * rank + owner, dtype=torch.uint8), EXACT[owner])


def test_one_collective_is_enough_where_all_know_the_lengths():
    """The same messages, numbers and bytes as in two."""

    def work(place):
        found = []
        for exact in (EXACT, None):
            shots = Scatter([exact_message(place.rank, owner) for owner in range(3)], note=place.rank, exact=exact)
            shots.send()
            counted = shots.payload_bytes, shots.received_bytes
            found.append((content(shots.wait()), shots.notes, shots.lengths, shots.sent_bytes, counted))
        return found

    for owner, (at_once, in_two) in enumerate(reports(work, processes=3)):
        assert at_once == in_two
        assert at_once[0] == content([exact_message(rank, owner) for rank in range(3)])


def test_frames_tell_of_a_refusal_and_of_lengths_that_were_not_declared():
    def work(place):
        messages, words = [exact_message(place.rank, owner) for owner in range(3)], []
        wrong = [messages[0], Message(torch.zeros(9, dtype=torch.uint8), 70), messages[2]]
        for outgoing in (41, wrong):
            shots = Scatter(outgoing if place.rank == 1 else messages, exact=EXACT)
            with pytest.raises((Refusal, ValueError)) as caught:
                shots.send()
            words.append(str(caught.value))
        return words

    refusal = "rank 1 had no message to send; its reason has the number 41"
    wrong = "a message of rank 1 is not as long as its operator declares exactly: correct the operator's bits(d)"
    assert reports(work, processes=3) == [[refusal, wrong]] * 3
