"""What a call of the calculator is: one record, from which the command line and the HTTP API are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from .arguments import Argument, Control, Kind, Measured, Workers, arguments_of, described

if TYPE_CHECKING:
    from ..records import Answer


MOST_BYTES = 1 << 16  # of a request


def the_function(**_: Any) -> Any:
    """Stand for the function of the call, which takes this place in the call's record."""
    raise TypeError("a call needs a function, or a run of its own: name one of them")


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What the command line and HTTP have in common.

    Parameters
    ----------
    run : callable, optional
        From the arguments by keyword to a result; the call's function unless given.  What it takes with ** are the
        arguments of that function.
    kinds : mapping of str to Kind or None, optional
        What arguments hold whose annotation does not say; None: the interface does not take it.
    arguments : tuple of Argument, optional
        Read from the signature and the docstring by the call.
    """

    run: Callable[..., Any] = the_function
    kinds: Mapping[str, Kind | None] = field(default_factory=dict)
    arguments: tuple[Argument, ...] = ()

    def of(self, call: Call) -> Self:
        """Return the interface with what runs it and its arguments; as it is, if it has them.

        Parameters
        ----------
        call : Call
            Whose function and fields of the page are taken.
        """
        if self.arguments:
            return self
        run = call.function if self.run is the_function and call.function else self.run
        words = described(call.function or run) | described(run)
        arguments = arguments_of(run, words, self.kinds, call.controls, call.function)
        return replace(self, run=run, arguments=arguments)


@dataclass(frozen=True, kw_only=True)
class Command(Interface):
    """A call on the command line.

    Parameters
    ----------
    examples : tuple of str
        What may follow the name of the command; --help shows them, and the tests run them.
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
    show: Callable[[Any], Answer | str | None] = lambda result: result.answer()
    record: Callable[[Any], Any] = lambda result: result
    ok: Callable[[Any], bool] = lambda result: True
    takes_symbols: bool = False


@dataclass(frozen=True, kw_only=True)
class Route(Interface):
    """A call over HTTP, at /v1/ and its name.

    Parameters
    ----------
    about : str
        What a request says, in a sentence.
    example : mapping, optional
        A request; the tests send it.  Without one the call is read with GET.
    stated : bool, optional
        Whether the answer is a number with its theorem.
    is_closed_form : callable, optional
        Whether the answer to such a request takes well below a millisecond, so that no other process computes it.
    most_bytes : int, bytes, optional
        Of a request.
    """

    about: str
    example: Mapping[str, Any] = field(default_factory=dict)
    stated: bool = True
    is_closed_form: Callable[[Mapping[str, Any]], bool] = lambda request: False
    most_bytes: int = MOST_BYTES

    def answer(self, request: Mapping[str, Any]) -> Any:
        """Return the record that answers a checked request."""
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
        for name, interface in (("command", self.command), ("route", self.route)):
            if interface is not None:
                object.__setattr__(self, name, interface.of(self))
