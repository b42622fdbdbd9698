"""What to cite for a number: the work that a theorem comes from, and this package, as BibTeX."""

from __future__ import annotations

from typing import Any

from bounds.bibliography import cited

from ..model.evaluation import catalogue_bound
from .call import Argument, Call, Command, Specifications


def cite(*theorems: str) -> str:
    """Return BibTeX entries: of each theorem's source, with the place in it, and of ratedist.

    Parameters
    ----------
    *theorems : str
        Names of the catalogue, such as "worst_case_bits"; none gives ratedist alone.

    Raises
    ------
    ValueError
        For a name that is not in the catalogue.

    Examples
    --------
    >>> import ratedist as rd
    >>> "Optimal Gradient Compression" in rd.cite("worst_case_bits")
    True
    """
    return cited(catalogue_bound(name).reference for name in theorems)


def _run(theorems: list[str] | None) -> str:
    return cite(*theorems or ())


def _show(text: str) -> Any:
    from rich.text import Text

    return Text(text.rstrip(), overflow="ignore", no_wrap=True)


CALL = Call(
    name="cite",
    summary="BibTeX of a theorem's source, and of ratedist",
    place=11,
    function=cite,
    command=Command(
        arguments=(Argument("theorems", Specifications(), help="names of the catalogue", positional=True),),
        examples=("worst_case_bits pasgd_convex_sharp",),
        run=_run,
        show=_show,
    ),
)
