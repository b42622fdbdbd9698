"""The tests of two shots, tried on wrong ones: every mistake is caught, and by which tests is written down."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from operators import QSGD, CorruptMessage, ErrorFeedback, ScaledSign, TopK
from operators.exchange import Channel, TwoShot, channel, two_shot
from operators.exchange.channel import FROM_OWNER, TO_OWNER

from . import test_two_shot as tests

QSGD4 = QSGD(levels=4)
TESTS = {
    "definition": lambda: [tests.test_mean_is_that_of_the_definition(QSGD4, None, m, d) for m, d in ((3, 10), (4, 64))],
    "same bits": lambda: tests.test_all_ranks_hold_the_same_bits(3),
    "streams": tests.test_every_message_of_a_run_has_a_stream_of_its_own,
    "stages": tests.test_the_two_stages_err_independently,
    "conserved": lambda: tests.test_with_feedback_at_both_ends_nothing_is_lost(ScaledSign()),
    "restored": lambda: tests.test_a_restored_state_continues_exactly(ErrorFeedback(TopK(fraction=0.3))),
    "members": tests.test_only_members_count_and_ranks_that_are_none_still_own_shards,
    "damaged": tests.test_a_damaged_message_names_who_sent_it,
}
right_key, right_encode, right_stage_key = Channel._key, Channel.encode, channel.stage_key
right_from_owners, right_merge, right_mean = two_shot.from_owners, two_shot.merge, TwoShot.mean


def stage_of(end):
    return end._address[1]


def divided_twice(patch):
    """The mean of a mean."""
    patch.setattr(two_shot, "from_owners", lambda ends, *rest: right_from_owners(ends, *rest) / len(ends))


def not_divided(patch):
    """The sum."""
    patch.setattr(two_shot, "from_owners", lambda ends, *rest: right_from_owners(ends, *rest) * len(ends))


def stale_owner_key(patch):
    """The owners draw the numbers of step 0 in every step."""
    patch.setattr(Channel, "_key", lambda end, step: right_key(end, 0 if stage_of(end) == FROM_OWNER else step))


def deterministic_second_stage(patch):
    """The owners draw the same numbers whatever the key."""

    def key(end, step):
        of_message = right_key(end, step)
        return replace(of_message, seed=0, path=()) if stage_of(end) == FROM_OWNER else of_message

    patch.setattr(Channel, "_key", key)


def owner_keeps_exact_mean(patch):
    """The owner goes on with what it has before it is encoded."""

    def merge(ends, out, messages, members, step):
        out.exact = torch.stack([ends[rank].decode(messages[rank], step) for rank in members]).mean(dim=0)
        return right_merge(ends, out, messages, members, step)

    def mean(rank, messages, step):
        parts = list(right_mean(rank, messages, step).split([end.d for end in rank.means]))
        owner = rank.owner._address[3]
        parts[owner] = rank.owner.exact
        return torch.cat(parts)

    patch.setattr(two_shot, "merge", merge)
    patch.setattr(TwoShot, "mean", mean)


def wrong_fold_order(patch):
    """First the shard, then the stage."""

    def stage_key(key, stage, shard, *, step, rank):
        return (
            right_stage_key(key, shard, stage, step=step, rank=rank)
            if stage
            else right_stage_key(key, stage, shard, step=step, rank=rank)
        )

    patch.setattr(channel, "stage_key", stage_key)


def stage_not_folded(patch):
    """Both stages draw the same numbers."""

    def stage_key(key, stage, shard, *, step, rank):
        return replace(key, step=step, rank=rank).fold_in(0).fold_in(shard)

    patch.setattr(channel, "stage_key", stage_key)
    patch.setattr(tests, "stage_key", stage_key)


def shard_not_folded(patch):
    """All shards of a rank draw the same numbers."""

    def stage_key(key, stage, shard, *, step, rank):
        return right_stage_key(key, stage, 0, step=step, rank=rank)

    patch.setattr(channel, "stage_key", stage_key)
    patch.setattr(tests, "stage_key", stage_key)


def rank_not_in_key(patch):
    """All ranks draw the same numbers."""

    def stage_key(key, stage, shard, *, step, rank):
        return right_stage_key(key, stage, shard, step=step, rank=0)

    patch.setattr(channel, "stage_key", stage_key)
    patch.setattr(tests, "stage_key", stage_key)


def _forget(patch, stage):
    def encode(end, x, step):
        state, message = end.state, right_encode(end, x, step)
        if stage_of(end) == stage:
            end.state = state
        return message

    patch.setattr(Channel, "encode", encode)


def worker_forgets(patch):
    """The workers' residuals are dropped."""
    _forget(patch, TO_OWNER)


def owner_forgets(patch):
    """The owners' residuals are dropped."""
    _forget(patch, FROM_OWNER)


def scale_of_another_shard(patch):
    """Every shard comes back as long as the first."""

    def from_owners(ends, messages, step):
        parts = right_from_owners(ends, messages, step).split([end.d for end in ends])
        return torch.cat([part * parts[0].norm() / part.norm() for part in parts])

    patch.setattr(two_shot, "from_owners", from_owners)


def padding_leaked(patch):
    """Shards are padded to one length, and what is behind is cut off at the end."""

    def from_owners(ends, messages, step):
        parts = right_from_owners(ends, messages, step).split([end.d for end in ends])
        longest = max(part.numel() for part in parts)
        padded = torch.cat([torch.nn.functional.pad(part, (0, longest - part.numel())) for part in parts])
        return padded[: sum(part.numel() for part in parts)]

    patch.setattr(two_shot, "from_owners", from_owners)


def shards_in_another_order(patch):
    """The first shard goes to the last owner."""

    def from_owners(ends, messages, step):
        parts = right_from_owners(ends, messages, step).split([end.d for end in ends])
        return torch.cat(parts[::-1])

    patch.setattr(two_shot, "from_owners", from_owners)


def summed_in_binary32(patch):
    """The owner adds in float32."""

    def merge(ends, out, messages, members, step):
        total, ranks = np.zeros(out.d, np.float32), list(members)
        for rank in ranks:
            total += ends[rank].decode(messages[rank], step).numpy()
        return out.encode(torch.from_numpy(total / np.float32(len(ranks))), step)

    patch.setattr(two_shot, "merge", merge)


def divided_by_all_ranks(patch):
    """Also where only some are members."""

    def merge(ends, out, messages, members, step):
        ranks = list(members)
        encode = out.encode
        patch.setattr(out, "encode", lambda x, step: encode(x * len(ranks) / len(ends), step))
        return right_merge(ends, out, messages, ranks, step)

    patch.setattr(two_shot, "merge", merge)


def last_rank_left_out(patch):
    """The loop ends one too early, and so does the divisor."""

    def merge(ends, out, messages, members, step):
        return right_merge(ends, out, messages, list(members)[:-1] or [0], step)

    patch.setattr(two_shot, "merge", merge)


def damage_is_passed_over(patch):
    """A shard that cannot be decoded counts as zeros."""
    decode = Channel.decode

    def lenient(end, message, step):
        try:
            return decode(end, message, step)
        except CorruptMessage:
            return torch.zeros(end.d)

    patch.setattr(Channel, "decode", lenient)


def memory_not_restored(patch):
    """The state of a checkpoint is read and thrown away."""
    patch.setattr(TwoShot, "state", property(TwoShot.state.fget, lambda rank, states: None))


MUTANTS = {
    divided_twice: {"conserved", "definition", "members"},
    not_divided: {"conserved", "definition", "members"},
    stale_owner_key: {"definition"},
    deterministic_second_stage: {"definition"},
    owner_keeps_exact_mean: {"conserved", "damaged", "definition", "same bits"},
    wrong_fold_order: {"definition", "stages"},
    stage_not_folded: {"definition", "stages", "streams"},
    shard_not_folded: {"definition", "streams"},
    rank_not_in_key: {"definition", "streams"},
    worker_forgets: {"conserved"},
    owner_forgets: {"conserved"},
    scale_of_another_shard: {"conserved", "definition", "members"},
    padding_leaked: {"conserved", "definition"},
    shards_in_another_order: {"conserved", "definition", "members"},
    summed_in_binary32: {"damaged", "definition"},
    divided_by_all_ranks: {"members"},
    last_rank_left_out: {"conserved", "damaged", "definition", "members"},
    damage_is_passed_over: {"damaged"},
    memory_not_restored: {"restored"},
}


def caught_by():
    """The names of the tests that fail."""
    names = set()
    for name, test in TESTS.items():
        try:
            test()
        except (AssertionError, CorruptMessage, pytest.fail.Exception):
            names.add(name)
    return names


def test_nothing_is_accused_where_nothing_is_wrong():
    assert caught_by() == set()


@pytest.mark.parametrize(("mutant", "names"), MUTANTS.items(), ids=lambda part: getattr(part, "__name__", ""))
def test_every_mistake_is_caught_by_these_tests(mutant, names, monkeypatch):
    mutant(monkeypatch)

    assert caught_by() == names
