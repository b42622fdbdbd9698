"""Fields of frozen dataclasses are read by their annotations, whoever writes the class."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from bounds.fields import Fields, shown, whole

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Part(Fields):
    """A part."""

    size: int = 1


@dataclass(frozen=True)
class Whole(Fields):
    """Every kind of annotation."""

    rate: float = 0.5
    count: int | None = None
    kind: Literal["a", "b"] = "a"
    part: Part | None = None
    pair: tuple[int, float] = (1, 0.5)
    is_on: bool = False
    rule: Callable[[int], float] | float | None = None
    where: Path | None = None

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ValueError("rate must be >= 0")


@dataclass(frozen=True)
class Derived(Whole):
    """A class with a check of its own, which calls that of its base."""

    more: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.more < 1:
            raise ValueError("more must be >= 1")


class Size(enum.IntEnum):
    """A number with a name."""

    TWO = 2


def test_values_become_plain_ones():
    made = Whole(
        np.float32(0.5), np.int8(3), np.str_("b"), Part(np.array(2)), [np.int64(1), 2], np.True_, np.float64(2)
    )
    assert repr(made.pair) == "(1, 2)"
    assert [type(v) for v in (made.rate, made.count, made.kind, made.part.size, made.is_on, made.rule)] == [
        float, int, str, int, bool, float,
    ]  # fmt: skip
    assert type(Whole(count=Size.TWO).count) is int


def test_a_function_and_an_unknown_annotation_stay_as_they_are():
    assert Whole(rule=len).rule is len
    assert Whole(where="anything").where == "anything"
    with pytest.raises(ValueError, match="rule of Whole must be a function or a number or None; got rule = '3'"):
        Whole(rule="3")


def test_the_check_of_the_class_comes_after_the_types_and_before_infinity():
    with pytest.raises(ValueError, match="rate of Whole must be a number"):
        Whole(rate="-1")
    with pytest.raises(ValueError, match="rate must be >= 0"):
        Whole(rate=float("-inf"))
    with pytest.raises(ValueError, match="rate of Whole must be finite"):
        Whole(rate=float("inf"))
    with pytest.raises(ValueError, match="more must be >= 1"):
        Derived(more=np.float64(0.5))
    with pytest.raises(ValueError, match="part of Derived must be a Part or None"):
        replace(Derived(), part=Whole())


def test_a_value_is_shown_in_one_short_line():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    assert shown(Odd()) == "a Odd"
    assert len(shown(np.zeros(10_000))) <= 60
    assert "\n" not in shown("a\nb" * 50)
    assert whole("n", np.int32(3)) == 3
