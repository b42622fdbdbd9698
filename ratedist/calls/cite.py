"""What to cite for a number: the work that a theorem comes from, and this package, as BibTeX."""

from __future__ import annotations

from bounds.bibliography import cited

from ..plans.problem import catalogue_bound
from ..records.quantity import reference_of
from .arguments import Specifications
from .call import Call, Command


def cite(*theorems: str) -> str:
    """Return BibTeX entries: of each theorem's source, with the place in it, and of ratedist.

    Parameters
    ----------
    *theorems : str
        Names of the catalogue, such as worst_case_bits; none gives ratedist alone.  Also of what ``tau`` and
        ``runtime`` minimise or compute, such as "tau_star", and keys of sources, such as "wang2018".

    Raises
    ------
    ValueError
        For a name that is none of these.

    Examples
    --------
    >>> import ratedist as rd
    >>> "Optimal Gradient Compression" in rd.cite("worst_case_bits")
    True
    """
    return cited(reference_of(name) or catalogue_bound(name).reference for name in theorems)


def _run(theorems: list[str] | None = None) -> str:
    return cite(*theorems or ())


def _show(text: str) -> str:
    return text


CALL = Call(
    name="cite",
    summary="BibTeX of a theorem's source, and of ratedist",
    place=11,
    function=cite,
    command=Command(
        examples=("worst_case_bits pasgd_convex_sharp",), run=_run, kinds={"theorems": Specifications()}, show=_show
    ),
)
