"""The setting of a theorem as data: what the caller's situation must imply, and what the number is about.

A statement reads: in every situation with all of ``needs``, the quantity ``concludes`` is at most (at least, exactly)
the value.  A construction that attains something is a situation too ("the operator is Sparse Dithering"), and so is
the worst problem of a class; what they have beyond their name stands in ``properties.IMPLIED``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from .properties import IMPLIED, NEVER_ABOVE, Conclusion, Property

P = Property

NOISE = frozenset({P.UNBIASED_GRADIENTS, P.BOUNDED_VARIANCE, P.INDEPENDENT_NOISE})
SAME_DATA = NOISE | {P.SAME_F, P.SMOOTH, P.BOUNDED_BELOW}


@dataclass(frozen=True)
class Setting:
    """Where a statement holds and what it is about.

    Parameters
    ----------
    needs : frozenset of Property
        All that must hold, beside the relations between numbers in ``Bound.assuming``.
    concludes : Conclusion
        The bounded quantity.
    known_up_to : str, optional
        Empty, or what separates the value from a bound, in words.
    """

    needs: frozenset[Property]
    concludes: Conclusion
    known_up_to: str = ""

    def missing(self, given: Iterable[Property | str]) -> tuple[Property, ...]:
        """Return what is needed but not implied by the given properties, in the order of their definition.

        Parameters
        ----------
        given : iterable of Property or str
            What holds, as properties or their names.
        """
        lacking = self.needs - implied(properties(given))
        return tuple(item for item in Property if item in lacking)

    def ordered(self) -> tuple[Property, ...]:
        """Return every need, in the order of their definition."""
        return tuple(item for item in Property if item in self.needs)

    def hypotheses(self) -> tuple[str, ...]:
        """Return the words of every need, in that order."""
        return tuple(item.words for item in self.ordered())

    def about(self) -> str:
        """Return the bounded quantity in words, and how far it is known."""
        return self.concludes.words + (f", known up to {self.known_up_to}" if self.known_up_to else "")

    def text(self) -> str:
        """Return all of it as one text."""
        return "; ".join((self.about(), *self.hypotheses()))

    def meets(self, other: Setting) -> bool:
        """Return whether some situation is certainly in both settings: in each kind of property one contains the other.

        Parameters
        ----------
        other : Setting
            The setting of another bound.
        """
        ours, theirs = implied(self.needs), implied(other.needs)
        return all(
            _of_kind(other.needs, kind) <= ours or _of_kind(self.needs, kind) <= theirs
            for kind in {item.kind for item in self.needs | other.needs}
        )


def properties(given: Iterable[Property | str]) -> frozenset[Property]:
    """Return properties by themselves or by name, such as ``"strongly_convex"``.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    return frozenset(item if isinstance(item, Property) else _named(item) for item in given)


def _named(name: str) -> Property:
    from difflib import get_close_matches

    by_name = {item.name.lower(): item for item in Property}
    if name not in by_name:
        near = get_close_matches(str(name), by_name, 3, 0.4) or list(by_name)[:3]
        raise ValueError(f"a setting is made of named properties; got {name!r}: try {', '.join(near)}")
    return by_name[name]


@lru_cache(maxsize=1024)
def implied(given: frozenset[Property]) -> frozenset[Property]:
    """Return the given properties and all that follow from them."""
    closure, before = given, frozenset[Property]()
    while closure != before:
        before = closure
        for premises, conclusions in IMPLIED:
            if premises <= closure:
                closure |= conclusions
    return closure


@lru_cache(maxsize=1024)
def never_above(small: Conclusion, large: Conclusion) -> bool:
    """Return whether the first quantity is never larger than the second, in one and the same situation."""
    return small is large or any(never_above(step, large) for step in NEVER_ABOVE.get(small, ()))


def _of_kind(needs: Collection[Property], kind: str) -> set[Property]:
    return {item for item in needs if item.kind == kind}
