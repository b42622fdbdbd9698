"""Wrong votes counted: of signs under attack, beside the exact mean, and of elections over all sign patterns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch

from operators import ElectionCoding, Key, MajorityVote, Message
from operators.aggregate.election_coding import minimal_allocation, tolerates
from operators.random import normal

from ...records.storage import Record
from .attacks import Attack, Rescale

NOISE, ATTACK, SEND = 0, 1, 2  # folds of a worker's key


def votes(workers: int, faulty: int, snr: float, coordinates: int, attack: Attack, seed: int = 0) -> Record:
    """Count the wrong coordinates of one vote on the gradient S in every coordinate; signs really packed."""
    rule, truth = MajorityVote("negative"), np.full(coordinates, snr, np.float32)  # a tie is wrong
    keys = [Key(seed, rank=i) for i in range(workers)]
    messages = []
    for i, key in enumerate(keys):
        x = (truth + normal(key.fold_in(NOISE), coordinates)).astype(np.float32)
        if i < faulty:
            x = attack.corrupt(x, truth=truth, key=key.fold_in(ATTACK))
        messages.append(rule.uplink.encode(x, key=key.fold_in(SEND)))
    elected = rule.downlink.decode(rule.merge(messages, d=coordinates, keys=keys), d=coordinates)
    bits = sum(m.bits for m in messages)
    wrong = int((elected < 0).sum())
    return {"workers": workers, "faulty": faulty, "snr": snr, "wrong": wrong, "trials": coordinates, "bits": bits}


def crowd(workers: int, snr: float, coordinates: int, seed: int = 0) -> Record:
    """Return the same noise twice: how often the vote of signs, and the sign of the exact mean, is wrong."""
    voted = votes(workers, 0, snr, coordinates, Rescale(), seed)
    mean = sum(snr + normal(Key(seed, rank=i).fold_in(NOISE), coordinates) for i in range(workers))
    return {**voted, "mean_wrong": int((np.asarray(mean) < 0).sum())}


def election(n: int, b: int) -> Record:
    """Return every sign pattern of n partitions as one coordinate each; all sets of b, and of b + 1, workers lie."""
    G = minimal_allocation(n, b)
    patterns = 1 - 2 * ((np.arange(1 << n) >> np.arange(n)[:, None]) & 1)
    truth = np.sign(patterns.sum(axis=0))
    gradients = [torch.from_numpy(row.astype(np.float32)) for row in patterns]
    rule, keys = ElectionCoding(b=b), [Key(0, rank=i) for i in range(n)]
    honest = [rule.local_vote(gradients, G[i], key=keys[i]) for i in range(n)]
    lie = rule.uplink.encode(torch.from_numpy(-truth.astype(np.float32)), key=keys[0])

    def worst(liars: int) -> int:
        return max(_wrong(rule, honest, lie, who, truth, keys) for who in combinations(range(n), liars))

    return {
        "partitions": int(G.sum()),
        "criterion": [tolerates(G, b), tolerates(G, b + 1)],
        "wrong": [worst(b), worst(b + 1)],
        "patterns": 1 << n,
    }


def _wrong(
    rule: ElectionCoding,
    honest: list[Message],
    lie: Message,
    who: tuple[int, ...],
    truth: np.ndarray,
    keys: list[Key],
) -> int:
    sent = [lie if i in who else message for i, message in enumerate(honest)]
    elected = rule.downlink.decode(rule.merge(sent, d=truth.size, keys=keys), d=truth.size)
    return int((elected.numpy() != truth).sum())
