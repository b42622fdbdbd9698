"""How much a check may spend: chance of a false alarm, draws, seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf


@dataclass(frozen=True)
class Budget:
    """What one call of ``check`` may spend.

    false_alarm : bound on the probability that an honest subject is accused, over all laws and examples.
    draws : random draws per example in the statistical laws; evaluations : of one exact enumeration.
    seconds : after this time the statistical laws draw no more (their tests stay valid whenever they stop); as long
    again for the trials of enumerations beyond the least number.
    sizes : dimensions of the exact laws; drawn_sizes : of the statistical ones.
    drawn : random vectors per size in the exact laws; large : dimension of the index law.
    search : steps of the adversarial search.
    Raises ValueError unless 0 < false_alarm < 1 and the counts are positive.
    """

    false_alarm: float = 1e-6
    draws: int = 2000
    evaluations: int = 2048
    seconds: float = 1.5
    sizes: tuple[int, ...] = (1, 2, 7, 8, 9, 64, 1000, 4097)
    drawn_sizes: tuple[int, ...] = (1, 2, 7, 8, 65)
    drawn: int = 6
    large: int = (1 << 16) + 3
    search: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm < 1:
            raise ValueError(f"false_alarm must satisfy 0 < false_alarm < 1; got {self.false_alarm}")
        if min(self.draws, self.evaluations, self.drawn, self.search, *self.sizes, *self.drawn_sizes) < 1:
            raise ValueError(f"draws, evaluations, sizes and counts must be at least 1; got {self}")

    @classmethod
    def quick(cls) -> Budget:
        """About a second: a smoke test while writing an operator."""
        return cls(draws=300, evaluations=512, seconds=0.5, sizes=(1, 2, 9, 65), drawn_sizes=(2, 8), drawn=2, search=15)

    @classmethod
    def deep(cls) -> Budget:
        """Minutes, by hand: more draws and an index beyond the integers of binary32."""
        return cls(draws=60_000, evaluations=65_536, seconds=300.0, drawn=40, large=(1 << 24) + 1, search=1000)

    def untimed(self) -> Budget:
        """The same without the limit in seconds: the result depends on the seed alone."""
        return replace(self, seconds=inf)
