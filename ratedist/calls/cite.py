"""What to cite for a number or a compressor: the work that it comes from, and this package, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterator

from bounds.bibliography import cited, entries
from bounds.catalogue import all_bounds
from bounds.provenance import Reference

from ..cluster.other_names import near_names
from ..records.quantity import MODELS, reference_of
from .arguments import Names
from .call import Call, Command


def cite(*names: str) -> str:
    """Return BibTeX entries: of the source of each name, with the place in it, and of ratedist.

    Parameters
    ----------
    *names : str
        Names of bounds (unbiased_bits), of theorems of tau (tau_star), of compressors, feedback and aggregation
        methods (scaled_sign, ef), and keys of sources (wang2018); none gives ratedist alone.  A name that is both a
        bound and a method gives the source of the bound.

    Raises
    ------
    ValueError
        For a name that is none of these, and for a method whose class names no published source.

    Examples
    --------
    >>> import ratedist as rd
    >>> "Optimal Gradient Compression" in rd.cite("worst_case_bits")
    True
    >>> "Error Feedback Fixes" in rd.cite("scaled_sign")
    True
    """
    return cited((name, reference) for name in names for reference in _references(name))


def _references(name: str) -> Iterator[Reference]:
    reference = reference_of(name)
    return iter([reference]) if reference is not None else map(Reference, _sources(name))


def _sources(name: str) -> tuple[str, ...]:
    """Return the keys of a method's sources; "qsgd:4" is read as qsgd."""
    from operators import (
        Aggregate,
        Feedback,
        Operator,
        all_aggregates,
        all_feedbacks,
        all_operators,
        all_summed,
        outside,
    )
    from operators.summed import Summed

    methods: dict[str, type[Operator | Feedback | Aggregate | Summed]]
    methods = {**all_operators(), **all_feedbacks(), **all_aggregates(), **all_summed()}
    named = str(name).partition(":")[0].strip()
    if named not in methods:
        if outside.split(str(name)) is not None:
            raise ValueError(
                f"a name must have a published source to be cited; {name} is an object of your own: cite its paper, "
                "and ratedist by ratedist cite; for the limit that it is compared with, ratedist cite unbiased_bits"
            )
        near = near_names(named, [*all_bounds(), *MODELS, *methods, *entries()])
        remedy = f"try {' or '.join(near)}, or see" if near else "see"
        raise ValueError(
            f"a name must be a bound, a theorem of tau, a compressor or the key of a source; got {name!r}: {remedy} "
            "ratedist certify --list and ratedist operators"
        )
    sources = methods[named].sources
    if not sources:
        raise ValueError(
            f"a method must name a published source to be cited; {named} names none: cite ratedist alone, by "
            "ratedist cite"
        )
    return sources


def _run(names: list[str] | None = None) -> str:
    return cite(*names or ())


def _show(text: str) -> str:
    return text


CALL = Call(
    name="cite",
    summary="BibTeX of the source of a theorem or a compressor, and of ratedist",
    place=11,
    function=cite,
    command=Command(
        examples=("unbiased_bits tau_star", "scaled_sign karimireddy2019"),
        run=_run,
        kinds={"names": Names()},
        show=_show,
    ),
)
