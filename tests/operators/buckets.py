"""Runs of equal length as layers, for tests of layers at any d."""

from dataclasses import dataclass

from operators import QSGD, Operator, ScaledSign
from operators.combinators.scope import LayerWise


@dataclass(frozen=True)
class Bucketed(LayerWise):
    """The operator applied to runs of ``bucket`` entries; the last one may be shorter."""

    operator: Operator
    sizes: tuple[int, ...] = (1,)
    bucket: int = 64

    name = "bucketed"

    def parts(self, d):
        whole, rest = divmod(d, self.bucket)
        return [self.bucket] * whole + [rest] * (rest > 0)

    @classmethod
    def examples(cls):
        return cls(ScaledSign(), bucket=64), cls(QSGD(levels=4), bucket=100)
