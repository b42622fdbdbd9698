"""The arguments of a call: read from the signature and the docstring of its function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

REQUIRED: Any = object()  # the default of an argument that must be given


class _Absent:
    """The default of an argument that was not named."""

    def __repr__(self) -> str:
        return "not given"


ABSENT: Any = _Absent()


# -- kinds ---------------------------------------------------------------------------------------------


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
    """Several names."""


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


# -- arguments -----------------------------------------------------------------------------------------


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


# -- from signature and docstring ----------------------------------------------------------------------

SECTION = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+)(?: : (.*))?\n((?:[ ]+.*\n|\n)*)", re.MULTILINE)
SENTENCE = re.compile(r"(.*?)(?<! e\.g)(?<! i\.e)\.(?:\s|$)", re.DOTALL)


def described(documented: Any) -> dict[str, str]:
    """Return the first sentence that a docstring says of each parameter, as a phrase, with the values to choose from.

    Parameters
    ----------
    documented : callable or type
        With a docstring in the style of numpy.
    """
    phrases = {}
    parts = SECTION.split(inspect.cleandoc(documented.__doc__ or ""))
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if title == "Parameters":
            for name, kind, words in ENTRY.findall(text.strip("\n") + "\n"):
                sentence = SENTENCE.match(" ".join(words.split()))
                phrase = _phrase(sentence[1] if sentence else " ".join(words.split()))
                phrases[name.strip("*")] = phrase + _listed(re.findall(r'"(\w+)"', kind))
    return phrases


def _phrase(sentence: str) -> str:
    """Return a sentence with a small first letter, unless its first word is a symbol or a name."""
    sentence = sentence.replace("``", "")
    word = re.split(r"\W", sentence, maxsplit=1)[0]
    return sentence[:1].lower() + sentence[1:] if word[1:].islower() or word == "A" else sentence


def _listed(choices: list[str]) -> str:
    return f": {', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else ""


def kind_of(annotation: str) -> Kind:
    """Return what an argument with this annotation holds.

    Parameters
    ----------
    annotation : str
        As it is written.

    Raises
    ------
    TypeError
        For an annotation that does not say, and for a value.
    """
    if not isinstance(annotation, str):
        raise TypeError(
            f"annotations are read as they are written; got the value {annotation}: begin the file with "
            "from __future__ import annotations"
        )
    words = re.findall(r"\w+", annotation)
    kinds = SEVERAL if {"Iterable", "Sequence"} & set(words) else SINGLE
    for name, kind in kinds.items():
        if name in words:
            return kind()
    raise TypeError(f"an argument must say what it holds; got {annotation}: name its kind in the call's record")


def arguments_of(
    function: Callable[..., Any],
    words: Mapping[str, str],
    kinds: Mapping[str, Kind | None],
    controls: Mapping[str, Control],
    rest: Callable[..., Any] | None = None,
) -> tuple[Argument, ...]:
    """Return the arguments of a function in the order of its signature.

    Parameters
    ----------
    function : callable
        Its parameters that are not keyword-only are positional on the command line.
    words : mapping of str to str
        What --help says, by name.
    kinds : mapping of str to Kind or None
        Instead of what the annotation says; None: the interface does not take it.
    controls : mapping of str to Control
        Fields of the page by name.
    rest : callable or None, optional
        The function that takes what ``function`` has ** for.
    """
    taken = inspect.signature(function).parameters
    further = {}
    if rest is not None and any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        further = dict(inspect.signature(rest).parameters)
    stated = {name: each for name, each in taken.items() if name not in further and name != "self"}
    stated |= {name: taken.get(name, each) for name, each in further.items()}
    stated = {name: each for name, each in stated.items() if each.kind is not each.VAR_KEYWORD}
    arguments = []
    for name, parameter in stated.items():
        kind = kinds[name] if name in kinds else kind_of(parameter.annotation)
        if kind is None:
            continue
        default = parameter.default
        if default is parameter.empty or isinstance(kind, Workers):
            default = REQUIRED
        positional = parameter.kind is not parameter.KEYWORD_ONLY and not isinstance(kind, Workers)
        if isinstance(kind, Sought):
            default = None
        arguments.append(Argument(name, kind, default, words.get(name, ""), positional, controls.get(name)))
    return tuple(arguments)


# -- clusters and codecs -------------------------------------------------------------------------------

STEP_TIMES = (
    ("exponential", "exponential (stragglers)"),
    ("half_exponential", "half fixed, half exponential"),
    ("constant", "constant"),
)
CLUSTER_CONTROLS = {
    "workers": Control("Workers", "m", decades=(0, 4), whole=True),
    "bandwidth_bit_per_s": Control("Bandwidth of a link", unit="bit/s", decades=(7, 12)),
    "latency_s": Control("Latency of a hop", unit="s", decades=(-7, 0)),
    "step_s": Control("Mean time of a step", unit="s", decades=(-4, 2)),
    "compute": Control("Step times", choices=STEP_TIMES),
    "nodes": Control("Nodes of equally many workers", unit="may be empty"),
    "inside": Control("Link inside a node", unit="name or bit/s, then s"),
    "between": Control("Link between nodes", unit="name or bit/s, then s"),
}
CODEC_CONTROLS = {
    "encode_s_per_coordinate": Control("Encoding a coordinate", unit="s", decades=(-12, -6)),
    "decode_s_per_coordinate": Control("Decoding a coordinate", unit="s", decades=(-12, -6)),
}


@cache
def workers() -> Workers:
    """Return the parts of a cluster that an interface takes."""
    from ..cluster.cluster import Cluster

    kinds = dict.fromkeys(("workers", "nodes", "sums_at_once"), Number()) | {
        **dict.fromkeys(("bandwidth_bit_per_s", "latency_s", "step_s"), Number()),
        **dict.fromkeys(("compute", "topology"), Text(32)),
        **dict.fromkeys(("gpus_per_node", "backward_share")),
    }
    parts = arguments_of(Cluster.__init__, described(Cluster), kinds, CLUSTER_CONTROLS)
    named = (replace(part, positional=False) for part in parts)
    return Workers(tuple(replace(part, default=REQUIRED) if part.name == "workers" else part for part in named))


@cache
def coding_seconds() -> Coding:
    """Return the parts of a codec that an interface takes."""
    from ..cluster.codec import Codec

    kinds = dict.fromkeys(("encode_s_per_coordinate", "decode_s_per_coordinate"), Number()) | dict.fromkeys(
        ("source", "of_lengths")
    )
    return Coding(arguments_of(Codec.__init__, described(Codec), kinds, CODEC_CONTROLS))


# -- what annotations hold -----------------------------------------------------------------------------

SINGLE: dict[str, Callable[[], Kind]] = {  # by a name in the annotation, the first that stands in it
    "Mapping": Point,
    "Cluster": workers,
    "Pilot": Measured,
    "Codecs": coding_seconds,
    "Operator": Specification,
    "Compressor": Specification,
    "Vector": Coordinates,
    "Link": Text,
    "OuterStep": Text,
    "Numbers": Numbers,
    "Uncertains": Numbers,
    "Number": Number,
    "Uncertain": Number,
    "Curvature": Text,
    "Literal": Text,
    "Way": Text,
    "Rule": Text,
    "Exchange": Text,
    "str": Text,
    "bool": Flag,
    "int": Whole,
    "float": Real,
}
SEVERAL: dict[str, Callable[[], Kind]] = {"Operator": Specifications, "int": Numbers, "str": Names}
