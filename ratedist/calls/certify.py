"""The value of any theorem of the catalogue, with an interval that provably contains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, overload

from bounds import all_bounds

from ..numbers import Number, Numbers
from ..plans.problem import catalogue_bound, evaluate, require_setting
from ..records import Answer, Quantities, Quantity, Table
from .call import Call, Command, Route


@overload
def certify(theorem: str, *, setting: Iterable[str] | None = None, **at: Number) -> Quantity: ...
@overload
def certify(theorem: str, *, setting: Iterable[str] | None = None, **at: Numbers) -> Quantity | Quantities: ...
def certify(theorem: str, *, setting: Iterable[str] | None = None, **at: Any) -> Quantity | Quantities:
    """Return the value of any theorem of the catalogue at one exact point, with an interval that provably contains it.

    Parameters
    ----------
    theorem : str
        A name in ``bounds.all_bounds()``.
    setting : iterable of str or None, optional
        Names of what holds, such as ["strongly_convex"]; if given, it must imply what the theorem needs.
    **at
        Values of its symbols, floats at the decimal they print; arrays broadcast.

    Raises
    ------
    ValueError
        For an unknown name, missing or unknown symbols, points outside the assumptions, and a setting that does not
        imply the theorem's.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.certify("worst_case_bits", d=10**12, alpha="0.3")
    Quantity(8.68482797e+11 bits, certified in [868482797103.2346, 868482797103.2347], worst_case_bits)
    """
    bound = catalogue_bound(theorem)
    expected = {symbol.name for symbol in bound.parameters}
    if expected != set(at):
        missing, unknown = sorted(expected - set(at)), sorted(set(at) - expected)
        parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        raise ValueError(f"{theorem} takes {', '.join(sorted(expected))}; {'; '.join(parts)}: give exactly these")
    require_setting(bound, setting)
    return evaluate(bound, at)


def _run(theorem: str | None = None, *, list: bool = False, setting: Iterable[str] | None = None, **at: Any) -> Any:
    """Return the value of a theorem, or a list of all theorems.

    Parameters
    ----------
    theorem : str or None, optional
        A name of the catalogue.
    list : bool, optional
        Name every theorem and its symbols.
    """
    if list:
        return [
            {
                "theorem": name,
                "symbols": [symbol.name for symbol in bound.parameters],
                "status": bound.status.value,
                "says": bound.quantity,
                "about": bound.setting.about(),
                "needs": [hypothesis.name.lower() for hypothesis in bound.setting.ordered()],
            }
            for name, bound in all_bounds().items()
        ]
    if theorem is None:
        raise ValueError(
            "certify needs a theorem; got none: name one, as in ratedist certify worst_case_bits, or --list"
        )
    return certify(theorem, setting=setting, **at)


def _show(result: Any) -> Any:
    if not isinstance(result, list):
        return result.answer()
    rows = tuple((row["theorem"], row["status"], " ".join(row["symbols"])) for row in result)
    table = Table(("theorem", "status", "symbols"), rows, left=frozenset({"status", "symbols"}))
    says = {row["theorem"]: row["says"] for row in result}
    return Answer(f"{len(rows)} theorems; --explain says what each bounds.", tables=(table,), evidence=says)


def _answer(theorem: str, at: Mapping[str, Any], *, setting: Iterable[str] | None = None) -> Any:
    return certify(theorem, setting=setting, **at)


CALL = Call(
    name="certify",
    summary="the certified value of any theorem; options are its symbols",
    place=9,
    function=certify,
    command=Command(
        examples=(
            "worst_case_bits --d 1000000000000 --alpha 0.3",
            "sphere_bits --d 10 --alpha 0.3 --setting strictly_contractive self_delimiting",
            "--list",
        ),
        run=_run,
        show=_show,
        takes_symbols=True,
    ),
    route=Route(
        about="A theorem of the catalogue and the values of its symbols.",
        example={"theorem": "worst_case_bits", "at": {"d": 10**12, "alpha": "0.3"}},
        run=_answer,
    ),
)
