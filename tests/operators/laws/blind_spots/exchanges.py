"""Exchanges that are wrong at some lengths, some remainders modulo m, or some numbers of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from bounds.claims import UnbiasedMean

M = 4
Rows = Sequence[torch.Tensor]


@dataclass(frozen=True)
class WrongExchange:
    what: str
    function: Callable[[Rows], torch.Tensor]
    claim: object


def half(rows: Rows) -> torch.Tensor:
    """Every coordinate of the mean is doubled or dropped."""
    x = torch.stack(list(rows)).double().mean(dim=0).float()
    return 2 * x * (torch.rand(x.shape) < 0.5)


def changed(change: Callable[[torch.Tensor, int], torch.Tensor]) -> Callable[[Rows], torch.Tensor]:
    def exchange(rows: Rows) -> torch.Tensor:
        return change(half(rows), len(rows))

    return exchange


def tail(factor: float, least: int, remainders: range) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """The rest of d divided by m is scaled."""

    def change(y: torch.Tensor, m: int) -> torch.Tensor:
        rest = y.numel() % m
        if y.numel() >= least and rest in remainders:
            y[y.numel() - rest :] *= factor
        return y

    return change


def scaled(factor: float, least: int, most: int = 1 << 40) -> Callable[[torch.Tensor, int], torch.Tensor]:
    return lambda y, m: y * (factor if least <= y.numel() < most else 1.0)


def shard_lost(y: torch.Tensor, m: int) -> torch.Tensor:
    if y.numel() >= 200:
        y[-(y.numel() // m) :] = 0
    return y


def wrapped(y: torch.Tensor, m: int) -> torch.Tensor:
    """Places are kept in 12 bits."""
    if y.numel() > 1 << 12:
        y[1 << 12 :] = 0
    return y


def joint(d: int, m: int) -> UnbiasedMean:
    return UnbiasedMean(0.0, 1.0)


def power_of_two(y: torch.Tensor, m: int) -> torch.Tensor:
    """Divided by the next power of two."""
    return y * (m / (1 << (m - 1).bit_length())) if m > 1 else y


CHANGES = {
    "tails lost from 20 on": tail(0.0, 20, range(1, 4)),
    "tails doubled from 100 on": tail(2.0, 100, range(1, 4)),
    "shrunk by 40 % from 500 on": scaled(0.6, 500),
    "stretched by 30 % between 2000 and 20 000": scaled(1.3, 2000, 20_000),
    "the last shard is lost from 200 on": shard_lost,
    "places of 12 bits": wrapped,
    "halved from 2^13 on": scaled(0.5, 1 << 13),
}
WRONG = [
    *(WrongExchange(what, changed(change), UnbiasedMean(0.0, 1.0)) for what, change in CHANGES.items()),
    WrongExchange("divided by the next power of two", changed(power_of_two), joint),
]
HONEST = [WrongExchange("half", half, UnbiasedMean(0.0, 1.0)), WrongExchange("half", half, joint)]
