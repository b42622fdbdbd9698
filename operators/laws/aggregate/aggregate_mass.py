"""Law: a merger with memory loses nothing: residuals and result add up to the inputs."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..kit.examples import Example
from ..kit.groups import AggregateLaw, group, keys_of, workers_of
from ..kit.law import Context, NotApplicable, Violation
from ..kit.subject import Subject

ROUNDS = 3
ROUNDING = 2.0**-21  # binary32 additions of one round and node


class AggregateMass(AggregateLaw):
    """sum of new residuals + result = sum of old residuals + sum of inputs, for mergers with ``exchange``.

    A merger whose published rule loses mass says so with ``conserves_mass = False``.
    """

    name = "aggregate-mass"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Several rounds for several numbers of workers."""
        target = subject.target
        if not hasattr(target, "exchange"):
            raise NotApplicable("it has no memory")
        if not getattr(target, "conserves_mass", True):
            raise NotApplicable("it is declared to lose mass")
        for n in workers_of(target):
            key = context.key(f"{self.name} {example.name}")
            residuals = [torch.zeros(example.d) for _ in range(n)]
            for t in range(ROUNDS):
                vectors = group(example, n, context, f"{self.name} {t}")
                before = _sum(residuals) + _sum(vectors)
                largest = float(torch.stack([*residuals, *vectors]).abs().max())
                keys = keys_of(replace(key, step=key.step + t), n)
                residuals, result = target.exchange(residuals, vectors, keys=keys)
                lost = float((before - _sum(residuals) - result.double()).abs().max())
                if lost > ROUNDING * 4 * n * largest:
                    raise Violation(f"in round {t} of {n} workers {lost:.6g} of a coordinate is lost")


def _sum(vectors: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([v.double() for v in vectors]).sum(dim=0)
