"""What a call of the calculator is: one record, from which the command line and the HTTP API are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .arguments import MOST_BYTES, Argument, Control, Kind, Measured, Workers, arguments_of, described

if TYPE_CHECKING:
    from ..records import Answer


@dataclass(frozen=True, kw_only=True)
class Command:
    """A call on the command line.

    Parameters
    ----------
    examples : tuple of str
        What may follow the name of the command; --help shows them, and the tests run them.
    run : callable, optional
        From the arguments by keyword to a result, if not the call's function; what it takes with ** are the function's.
    kinds : mapping of str to Kind or None, optional
        What arguments hold whose annotation does not say; None: the command does not take it.
    arguments : tuple of Argument, optional
        Filled in by the call.
    show : callable, optional
        From the result to an answer, a text that is printed as it is, or None.
    record : callable, optional
        From the result to what --json prints.
    ok : callable, optional
        Whether the exit status is 0 for the result, not 1.
    takes_symbols : bool, optional
        Whether further options are symbols of a theorem; ``run`` gets them too.
    """

    examples: tuple[str, ...]
    run: Callable[..., Any] | None = None
    kinds: Mapping[str, Kind | None] = field(default_factory=dict)
    arguments: tuple[Argument, ...] = ()
    show: Callable[[Any], Answer | str | None] = lambda result: result.answer()
    record: Callable[[Any], Any] = lambda result: result
    ok: Callable[[Any], bool] = lambda result: True
    takes_symbols: bool = False


@dataclass(frozen=True, kw_only=True)
class Route:
    """A call over HTTP, at /v1/ and its name.

    Parameters
    ----------
    about : str
        What a request says, in a sentence.
    example : mapping, optional
        A request; the tests send it.  Without one the call is read with GET.
    run : callable, optional
        From the arguments by keyword to a record, if not the call's function; what it takes with ** are the function's.
    kinds : mapping of str to Kind or None, optional
        What arguments hold whose annotation does not say; None: a request does not take it.
    arguments : tuple of Argument, optional
        Filled in by the call.
    stated : bool, optional
        Whether the answer is a number with its theorem.
    is_closed_form : callable, optional
        Whether the answer to such a request takes well below a millisecond, so that no other process computes it.
    most_bytes : int, bytes, optional
        Of a request.
    """

    about: str
    example: Mapping[str, Any] = field(default_factory=dict)
    run: Callable[..., Any] | None = None
    kinds: Mapping[str, Kind | None] = field(default_factory=dict)
    arguments: tuple[Argument, ...] = ()
    stated: bool = True
    is_closed_form: Callable[[Mapping[str, Any]], bool] = lambda request: False
    most_bytes: int = MOST_BYTES

    def answer(self, request: Mapping[str, Any]) -> Any:
        """Return the record that answers a checked request."""
        assert self.run is not None
        return self.run(**{name: self._argument(name, value) for name, value in request.items()})

    def _argument(self, name: str, value: Any) -> Any:
        kind = next((argument.kind for argument in self.arguments if argument.name == name), None)
        if isinstance(kind, Workers):
            from ..cluster.cluster import Cluster

            return Cluster(**value)
        if isinstance(kind, Measured) and value is not None:
            from ..pilots.pilot import Pilot, recorded_pilot

            return recorded_pilot(value) if isinstance(value, str) else Pilot.from_dict(value)
        return value


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of the calculator.  A file of this folder that has a ``CALL`` is all that one needs.

    Arguments of the command and fields of the request are read from the signature and the docstring of the function.

    Parameters
    ----------
    name : str
        Of the command and of the route.
    summary : str
        What it does, in the words of --help.
    place : int, optional
        Where --help and the OpenAPI description list it; calls of one place are in the order of their names.
    function : callable or None, optional
        The call in Python, ``ratedist.`` and its name.
    command : Command or None, optional
        The call on the command line.
    route : Route or None, optional
        The call over HTTP.
    controls : mapping of str to Control, optional
        Fields of the page, by argument.
    """

    name: str
    summary: str
    place: int = 100
    function: Callable[..., Any] | None = None
    command: Command | None = None
    route: Route | None = None
    controls: Mapping[str, Control] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("command", "route"):
            part = getattr(self, name)
            if part is not None and not part.arguments:
                object.__setattr__(self, name, self._complete(part))

    def _complete(self, part: Any) -> Any:
        """Return the command or the route with what runs it and its arguments."""
        run = part.run or self.function
        if run is None:
            raise TypeError(f"a call needs a function, or a run; got neither in {self.name}: name one of them")
        words = (described(self.function) if self.function else {}) | described(run)
        rest = None if getattr(part, "takes_symbols", False) else self.function
        return replace(part, run=run, arguments=arguments_of(run, words, part.kinds, self.controls, rest))
