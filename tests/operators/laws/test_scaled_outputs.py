"""No operator is in the catalogue without a law that judges its mean: its output, a few per cent off, is accused."""

from dataclasses import fields, replace

import pytest

from operators import QSGD, Operator, TopK, all_operators
from operators.laws import Budget, check

EXAMPLES = [op for cls in all_operators().values() for op in cls.examples()]
FIRST = {type(op): op for op in reversed(EXAMPLES)}
LAWS = ("sure-contraction", "projection", "unbiasedness", "distortion", "constant-reached")
STANDARD, DEEP = (replace(budget, shrinking=0).untimed() for budget in (Budget(), Budget.deep()))
HARD = ("QUICFL(bits_per_coordinate=1)", "TCDQ(omega=9.0", "RandomisedSparseDithering(omega=4.0)", "Kashin(k=2")


def scaled(op: Operator, factor: float, beyond: int = 0) -> Operator:
    """The operator with its decoded output multiplied, at dimensions above ``beyond``."""
    cls = type(op)

    def decode(self, message, *, d, key=None):
        y = cls.decode(self, message, d=d, key=key)
        return y * factor if d > beyond else y

    wrong = type(f"Scaled{cls.__name__}", (cls,), {"decode": decode})
    return wrong(**{field.name: getattr(op, field.name) for field in fields(op) if field.init})


def tier(op):
    """Quick for one unbiased operator and one contraction; nightly for all but one example of every class."""
    if repr(op).startswith(HARD) or op != FIRST[type(op)]:
        return [pytest.mark.slow]
    return [] if isinstance(op, (QSGD, TopK)) else [pytest.mark.thorough]


@pytest.mark.parametrize("op", [pytest.param(op, id=repr(op), marks=tier(op)) for op in EXAMPLES])
def test_output_five_per_cent_short_is_accused_with_the_standard_budget(op):
    """Power 99 % a run is asked for; the seed is fixed."""
    report = check(scaled(op, 0.95), budget=STANDARD, seed=1, laws=LAWS)

    assert report.failures, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("op", EXAMPLES, ids=repr)
def test_output_one_per_cent_short_is_accused_with_the_deep_budget(op):
    """As above."""
    report = check(scaled(op, 0.99), budget=DEEP, seed=1, laws=LAWS)

    assert report.failures, str(report)
