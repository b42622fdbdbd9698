"""What a call of the calculator is: one record, from which the command line and the HTTP API are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..records import Answer

REQUIRED: Any = object()  # the default of an argument that must be given
MOST_BYTES = 1 << 16  # of a request


class _Absent:
    """The default of an argument that was not named."""

    def __repr__(self) -> str:
        return "not given"


ABSENT: Any = _Absent()


@dataclass(frozen=True)
class Kind:
    """What an argument holds; the command line and the HTTP API each know how to read it."""


@dataclass(frozen=True)
class Number(Kind):
    """A number, or a text that states one exactly."""


@dataclass(frozen=True)
class Numbers(Kind):
    """One number or several."""


@dataclass(frozen=True)
class Sought(Kind):
    """Numbers, or none at all (an option without a value, ``null``): then it is what is sought."""


@dataclass(frozen=True)
class Text(Kind):
    """A text.

    Parameters
    ----------
    longest : int, optional
        Characters that a request may hold.
    """

    longest: int = 64


@dataclass(frozen=True)
class Whole(Kind):
    """An integer.

    Parameters
    ----------
    least : int, optional
        The smallest that a request may hold.
    most : int, optional
        The largest that a request may hold.
    """

    least: int = 0
    most: int = 2**63 - 1


@dataclass(frozen=True)
class Real(Kind):
    """A float."""


@dataclass(frozen=True)
class Flag(Kind):
    """An option without a value."""


@dataclass(frozen=True)
class Names(Kind):
    """Properties that hold, by name."""


@dataclass(frozen=True)
class Hosts(Kind):
    """Names of hosts."""


@dataclass(frozen=True)
class Specification(Kind):
    """A compressor of the catalogue, such as "qsgd:4"."""


@dataclass(frozen=True)
class Specifications(Kind):
    """Several of them."""


@dataclass(frozen=True)
class Coordinates(Kind):
    """A short vector."""


@dataclass(frozen=True)
class Point(Kind):
    """Numbers by the name of their symbol."""


@dataclass(frozen=True)
class Coding(Kind):
    """Seconds of encoding and decoding: a word, a pair, or pairs by specification.

    Parameters
    ----------
    parts : tuple of Argument
        Of a pair.
    """

    parts: tuple[Argument, ...]


@dataclass(frozen=True)
class Workers(Kind):
    """A cluster: a group of options, an object in a request, and a ``Cluster`` for the function.

    Parameters
    ----------
    parts : tuple of Argument
        Of the cluster.
    """

    parts: tuple[Argument, ...]


@dataclass(frozen=True)
class Measured(Kind):
    """What a pilot has measured: an object in a request, and a ``Pilot`` for the function."""


@dataclass(frozen=True)
class Control:
    """The field of an argument on the page.

    Parameters
    ----------
    label : str
        What it is, in words.
    symbol : str, optional
        Its letter.
    unit : str, optional
        Of the number.
    decades : tuple of float, optional
        Powers of ten between which a slider moves it; without them there is no slider.
    start : str, optional
        What it holds at first; if empty, what the example of the route says.
    whole : bool, optional
        Whether the slider stops at whole numbers.
    assumed : bool, optional
        Whether it may be left empty, and something is assumed then.
    choices : tuple of pairs of str, optional
        What may be chosen, and how it is called; without them it is typed.
    field : str, optional
        Name of the field, where another call's argument has that of this one.
    """

    label: str
    symbol: str = ""
    unit: str = ""
    decades: tuple[float, float] | None = None
    start: str = ""
    whole: bool = False
    assumed: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    field: str = ""


@dataclass(frozen=True)
class Argument:
    """One argument of a call.

    Parameters
    ----------
    name : str
        The keyword of the function; options may write - for _.
    kind : Kind
        What it holds.
    default : object, optional
        What stands where it is left out; REQUIRED where it must be given.
    help : str, optional
        What --help says of it.
    positional : bool, optional
        Whether the command line takes it without its name.
    control : Control or None, optional
        Its field on the page.
    """

    name: str
    kind: Kind
    default: Any = None
    help: str = ""
    positional: bool = False
    control: Control | None = None


@dataclass(frozen=True, kw_only=True)
class Command:
    """A call on the command line.

    Parameters
    ----------
    arguments : tuple of Argument
        In the order of --help.
    examples : tuple of str
        What may follow the name of the command; --help shows them, and the tests run them.
    run : callable
        From the arguments by keyword to a result; imports what computes it when it is called.
    show : callable, optional
        From the result to an answer, a text that is printed as it is, or None.
    record : callable, optional
        From the result to what --json prints.
    ok : callable, optional
        Whether the exit status is 0 for the result, not 1.
    takes_symbols : bool, optional
        Whether further options are symbols of a theorem; ``run`` gets them too.
    """

    arguments: tuple[Argument, ...]
    examples: tuple[str, ...]
    run: Callable[..., Any]
    show: Callable[[Any], Answer | str | None] = lambda result: result.answer()
    record: Callable[[Any], Any] = lambda result: result
    ok: Callable[[Any], bool] = lambda result: True
    takes_symbols: bool = False


@dataclass(frozen=True, kw_only=True)
class Route:
    """A call over HTTP, at /v1/ and its name.

    Parameters
    ----------
    run : callable
        From the arguments by keyword to a record; imports what computes it when it is called.
    about : str
        What a request says, in a sentence.
    arguments : tuple of Argument, optional
        In the order of the request.
    model : str, optional
        Name of the request in the OpenAPI description; without one the call is read with GET.
    title : str, optional
        What the call answers, in the OpenAPI description.
    example : mapping, optional
        A request; the tests send it.
    stated : bool, optional
        Whether the answer is a number with its theorem.
    is_closed_form : callable, optional
        Whether the answer to such a request takes well below a millisecond, so that no other process computes it.
    most_bytes : int, bytes, optional
        Of a request.
    """

    run: Callable[..., Any]
    about: str
    arguments: tuple[Argument, ...] = ()
    model: str = ""
    title: str = ""
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
    """

    name: str
    summary: str
    place: int = 100
    function: Callable[..., Any] | None = None
    command: Command | None = None
    route: Route | None = None
