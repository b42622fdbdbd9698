"""Wrong operators: what they send or claim is put into the small run, or given to the conformance kit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased
from gpu_validation.judging.verdict import Comparison, Verdict
from operators import Key, Message, Operator, RandomisedSparseDithering, ScaledSign, Size, TopK
from operators.laws import Budget, check
from tests.gpu_validation.mutations.mutation import Mutation

KIT_LAWS = ("unbiasedness", "key-separation")
BIASED = "a smaller output has a smaller squared error: only the conformance kit looks at the mean"


@dataclass(frozen=True)
class HalfOmega(RandomisedSparseDithering):
    """Claims half of the omega that it has."""

    name = "half_omega"

    def claim(self, d: int) -> Unbiased:
        """Return too small."""
        return Unbiased(super().claim(d).omega / 2)


@dataclass(frozen=True)
class Halved(RandomisedSparseDithering):
    """Forgets to enlarge what it keeps."""

    name = "halved"

    def decode(self, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        """Return half of what it should be."""
        return super().decode(message, d=d, key=key) / 2


@dataclass(frozen=True)
class Doubled(ScaledSign):
    """Sends a scale twice too large."""

    name = "doubled"

    def decode(self, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        """Return twice of what it should be."""
        return 2 * super().decode(message, d=d, key=key)


@dataclass(frozen=True)
class Silent(TopK):
    """Decodes to nothing."""

    name = "silent"

    def decode(self, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        """Return zeros."""
        return torch.zeros(d)


@dataclass(frozen=True)
class TwiceAsGood(TopK):
    """Claims to lose as little as if it kept twice as much."""

    name = "twice_as_good"

    def claim(self, d: int) -> StrictlyContractive:
        """Return too small."""
        return StrictlyContractive(1 - 2 * (1 - super().claim(d).alpha))


@dataclass(frozen=True)
class ForgottenByte(ScaledSign):
    """Declares eight bits fewer than it sends."""

    name = "forgotten_byte"

    def bits(self, d: int) -> Size:
        """Return too few."""
        exact = super().bits(d).exact
        assert exact is not None  # one scale, d signs
        return Size(exact=exact - 8)


@dataclass(frozen=True)
class OneDraw(RandomisedSparseDithering):
    """Draws the same coordinates in every message."""

    name = "one_draw"

    def encode(self, x: torch.Tensor | np.ndarray, *, key: Key) -> Message:
        """Encode with a key of its own."""
        return super().encode(x, key=Key(1))

    def decode(self, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        """Decode with the same."""
        return super().decode(message, d=d, key=Key(1))


def _kit(operator: Operator) -> list[Comparison]:
    """Return one VIOLATED row for every law that fails."""
    report = check(operator, budget=Budget.quick().untimed(), seed=0, laws=KIT_LAWS)
    return [
        Comparison(
            operator=operator.name,
            quantity=f"conformance kit: {verdict.law}",
            measured=1.0,
            interval=(1.0, 1.0),
            bound=0.0,
            side="upper",
            verdict=Verdict.VIOLATED,
        )
        for verdict in report.failures
    ]


def _run(name: str, operator: Operator, survives: str = "") -> Mutation:
    return Mutation(name, "operator", lambda bench: bench.with_probe(operator), survives=survives)


ONE = 1.0
WRONG_OPERATORS = (
    _run("operator claims half of its omega", HalfOmega(omega=ONE)),
    _run("operator forgets to enlarge what it keeps", Halved(omega=ONE), BIASED),
    Mutation("the same, given to the conformance kit", "operator", lambda _: _kit(Halved(omega=ONE))),
    _run("scale of the signs sent twice too large", Doubled()),
    _run("top-k that decodes to zeros", Silent(fraction=0.1)),
    _run("top-k that claims alpha of twice its k", TwiceAsGood(fraction=0.1)),
    _run("declared length 8 bits short", ForgottenByte()),
    _run("the same draw in every message", OneDraw(omega=ONE), "each message errs as it may; its errors are not fresh"),
    Mutation("the same draw, given to the conformance kit", "operator", lambda _: _kit(OneDraw(omega=ONE))),
)
