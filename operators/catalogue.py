"""Operators by name, and the parser of specifications such as "qsgd:4" and "topk:fraction=0.01".

Operators within an operator are in parentheses: "induced:biased=(topk:0.01),unbiased=(qsgd:4)". Methods that are summed
in the network, "shared_scale:12,block=256", are parsed by ``parse_summed``. An outside operator is named by its module,
"mine:Coin" or "mine:Coin:probability=0.5", or by the name that its package announces.  A function, "mine:f", becomes an
``Own``.
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass, replace
from functools import lru_cache
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bounds.fields import shown

from . import outside
from .aggregate.aggregate import Aggregate
from .combinators.scope import LayerOperators
from .feedback.feedback import Feedback
from .functions.own import Compressor, Own
from .operator import Operator
from .summed.summed import Summed

T = TypeVar("T", Operator, Feedback, Aggregate, Summed)
Named = TypeVar("Named", Operator, Summed)
DEEPEST = 8  # nesting of operators in a specification


def _exported(base: type[T], package: str = __package__) -> dict[str, type[T]]:
    """Return the exported final subclasses of ``base`` by catalogue name, sorted."""
    exporting = import_module(package)
    classes: dict[str, type[T]] = {}
    for attribute in dir(exporting):
        value = getattr(exporting, attribute)
        if isinstance(value, type) and issubclass(value, base) and not isabstract(value):
            if value.name in classes:
                raise ValueError(f"two classes are called {value.name!r}")
            classes[value.name] = value
    return dict(sorted(classes.items()))


@lru_cache(maxsize=1)
def all_operators() -> dict[str, type[Operator]]:
    """Return all operator classes by catalogue name, sorted."""
    return _exported(Operator)  # type: ignore[type-abstract]


@lru_cache(maxsize=1)
def all_feedbacks() -> dict[str, type[Feedback]]:
    """Return all feedback classes by catalogue name, sorted."""
    return _exported(Feedback)  # type: ignore[type-abstract]


@lru_cache(maxsize=1)
def all_aggregates() -> dict[str, type[Aggregate]]:
    """Return all aggregation classes by catalogue name, sorted."""
    return _exported(Aggregate)  # type: ignore[type-abstract]


@lru_cache(maxsize=1)
def all_summed() -> dict[str, type[Summed]]:
    """Return all classes of methods that are summed in the network by catalogue name, sorted."""
    return _exported(Summed, f"{__package__}.summed")  # type: ignore[type-abstract]


def parse_summed(specification: str) -> Summed:
    """Build a method of ``operators.summed`` from its name and fields, written as for ``parse``.

    Parameters
    ----------
    specification : str
        Such as "sign_vote" or "shared_scale:12,block=256".

    Raises
    ------
    ValueError
        For an unknown name, field or value, naming what is known.
    """
    name, _, arguments = _words(specification).partition(":")
    name = name.strip()
    if name not in all_summed():
        raise ValueError(f"nothing called {name!r} is summed on the way; known: {', '.join(all_summed())}")
    return _built(all_summed()[name], specification, arguments)


def parse(specification: str) -> Operator:
    """Build an operator from "name", "name:value" (its first field) or "name:field=value,field=value".

    A value in parentheses is an operator.  "module:Class" imports one, from the current folder too, and
    "module:INSTANCE" or "module:function" takes what is there; an installed package may announce a name by an entry
    point of the group ``ratedist.operators``.

    Parameters
    ----------
    specification : str
        Such as "qsgd:4" or "topk:fraction=0.1".

    Raises
    ------
    ValueError
        For an unknown name, field or value, naming what is known, and for parentheses that do not match or are nested
        more than 8 deep.
    """
    named, arguments = _found(_words(specification))
    if isinstance(named, Operator):
        if arguments:
            raise ValueError(f"{specification!r} is a ready operator and takes no fields: leave out {arguments!r}")
        return named
    try:
        return _built(named, specification, arguments)
    except ValueError as error:
        name = _words(specification).partition(":")[0].strip()
        if not Path(f"{name}.py").is_file():
            raise
        raise ValueError(f"{error}; {name}.py here has an operator's name: rename the file to use it") from None


def _words(specification: str) -> str:
    """Return a specification without surrounding white space; raise ValueError if it is incomplete."""
    if not isinstance(specification, str) or not specification.strip():
        raise ValueError(
            f'a specification must be a text such as "qsgd:4"; got {shown(specification)}: name an operator'
        )
    text = specification.strip()
    if text.endswith(":"):
        raise ValueError(f"a colon must be followed by a field; got {text!r}: leave the colon out, or give a value")
    return text


def _found(text: str) -> tuple[type[Operator] | Operator, str]:
    """Return the class or the ready operator that a specification names, and the text of its fields."""
    name, _, arguments = text.partition(":")
    name = name.strip()
    catalogued = all_operators()
    if name in catalogued:
        return catalogued[name], arguments
    offered = outside.announced(outside.OPERATORS)
    if name in offered:
        return _checked(offered[name].load(), name), arguments
    reference = outside.split(text)
    if reference is None:
        raise ValueError(f"unknown operator {name!r}; known: {', '.join([*catalogued, *offered])}, or module:Class")
    return _checked(outside.load(reference[0], "operator"), reference[0]), reference[1]


def _checked(found: Any, name: str) -> type[Operator] | Operator:
    if isinstance(found, Own):
        return replace(found, label=name)
    is_class = isinstance(found, type)
    if not is_class and not isinstance(found, Operator) and (callable(found) or isinstance(found, tuple)):
        return Own(found, label=name)
    fits = isinstance(found, Operator) or (is_class and issubclass(found, Operator))
    complete = fits and hasattr(found, "__dataclass_fields__")
    if not complete:
        raise ValueError(
            f"{name} must be a function x -> x_hat, a frozen dataclass derived from operators.Operator, or an instance "
            f"of one; got {found!r}"
        )
    return found


def compressor(given: Compressor) -> Operator:
    """Return an operator from an operator, a specification or a function.

    Parameters
    ----------
    given : str or Operator or callable
        A specification such as "qsgd:4" or "mine:f", an operator, or a function x -> x_hat that says its ``bits``.

    Raises
    ------
    ValueError
        For an unknown name, or an object that is no compressor.

    Examples
    --------
    >>> compressor("qsgd:4")
    QSGD(levels=4, norm='l2', bucket=None, code='sparse')
    """
    if isinstance(given, Operator):
        return given
    if isinstance(given, str):
        return parse(given)
    return Own(given)


def _built(cls: type[Named], specification: str, arguments: str) -> Named:
    name = cls.name
    names = [f.name for f in fields(cls) if f.init]  # type: ignore[arg-type]
    keywords: dict[str, Any] = {}
    for position, part in enumerate(_split(arguments)):
        if not part:
            raise ValueError(f"a field of {specification!r} is empty: leave out the comma or the colon before it")
        named = part.partition("=") if not part.startswith("(") else (part, "", "")
        field_name, equals, text = (each.strip() for each in named)
        if not equals:
            if position or not names:
                raise ValueError(f"{part!r} in {specification!r} must be written field=value; fields: {names}")
            field_name, text = names[0], part
        if field_name not in names:
            raise ValueError(f"{name} has no field {field_name!r}; fields: {', '.join(names) or 'none'}")
        if field_name in keywords:
            raise ValueError(f"{field_name} must be given once; got it again in {specification!r}: drop one of the two")
        value = _value(text)
        kinds = _kinds(_hints(cls)[field_name])
        if not any(_is_kind(value, kind) for kind in kinds):
            words = " or ".join(dict.fromkeys(_word(kind) for kind in kinds))
            raise ValueError(f"{field_name} of {name} must be {words}; got {text!r}: give one")
        keywords[field_name] = value
    return cls(**keywords)


@lru_cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a class's fields, resolved once."""
    return get_type_hints(cls)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types that a field accepts."""
    if get_origin(hint) is Literal:
        return tuple(type(value) for value in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _kinds(part))
    return (get_origin(hint) or hint,)


def _is_kind(value: Any, kind: Any) -> bool:
    if isinstance(value, bool) or not isinstance(kind, type):
        return value is kind or kind in (bool, Any) or not isinstance(kind, type)
    return isinstance(value, (int, float) if kind is float else kind)


def _word(kind: Any) -> str:
    words = {
        int: "a whole number",
        float: "a number",
        str: "a word",
        bool: "true or false",
        type(None): "none",
        tuple: "a tuple",
    }
    return words.get(kind, "an operator in parentheses")


def specification(operator: Operator | Summed) -> str:
    """Return the text from which ``parse`` or ``parse_summed`` builds this operator.

    It has the name, the first field and all other fields that differ from their defaults.  An outside operator that no
    package announces is named by its module.  Operators of layers have a label instead, which cannot be parsed.

    Parameters
    ----------
    operator : Operator or Summed
        An instance of a class of the catalogue.
    """
    if isinstance(operator, Own | LayerOperators):
        return operator.label
    stated: list[str] = []
    named: tuple[Field[Any], ...] = fields(operator) if is_dataclass(operator) else ()
    for field in (f for f in named if f.init):
        value = getattr(operator, field.name)
        if value != field.default or (not stated and value is not None):
            stated.append(f"{field.name}={_text(value)}")
    return _name(type(operator)) + (":" + ",".join(stated) if stated else "")


def _name(cls: type[Operator] | type[Summed]) -> str:
    top = cls.__module__.partition(".")[0]
    if top == __package__ or cls.name in outside.announced(outside.OPERATORS):
        return cls.name
    return f"{cls.__module__}:{cls.__qualname__}"


def _split(arguments: str) -> list[str]:
    """Return the parts between the commas outside of parentheses.

    Raises
    ------
    ValueError
        If the parentheses do not match.
    """
    if not arguments.strip():
        return []
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if depth > DEEPEST:
            raise ValueError(f"operators may be nested {DEEPEST} deep; got {arguments[:60]!r}...")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise ValueError(f"the parentheses of {arguments[:60]!r} do not match")
    return [part.strip() for part in parts]


def _text(value: Any) -> str:
    return f"({specification(value)})" if isinstance(value, Operator) else str(value)


def _value(text: str) -> Any:
    if text.startswith("(") and text.endswith(")"):
        return parse(text[1:-1])
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)
