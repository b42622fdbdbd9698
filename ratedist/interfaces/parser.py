"""The parser of the command line, made from the calls; options may be written with _ or -."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from bounds.completion import PrintCompletion
from bounds.spelling import real_number, whole_number

from ..calls import Outline, all_calls, call_of, outlines
from ..calls import arguments as kinds
from ..calls.arguments import ABSENT, REQUIRED, Argument
from ..calls.call import Call, Command
from .commands import AddedCommand, OneLineParser, added_commands
from .exit_status import statuses_text

PROGRAM = "ratedist"

# -- ratedist serve ------------------------------------------------------------------------------------


def _run(*, host: str = "127.0.0.1", port: int = 8000, allow_host: Sequence[str] = ()) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    host : str, optional
        Address to listen on; the default is reached from this machine alone.
    port : int, optional
        Port to listen on.
    allow_host : sequence of str, optional
        Further names that the server is reached by, as behind a proxy.
    """
    from .http.serve import serve

    serve(host=host, port=port, allow_host=allow_host)


SERVE = Call(
    name="serve",
    summary="serve the calculator as a page and as JSON over HTTP",
    place=12,
    command=Command(examples=("--port 8000",), run=_run, show=lambda result: None),
)


# -- parser --------------------------------------------------------------------------------------------


class _Once(argparse.Action):
    """Store a value; an option that is given again would silently replace it, so it is refused."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        assert isinstance(parser, _Parser)
        if option is not None and self.dest in parser.given:
            again = " ".join(map(str, values)) if isinstance(values, list) else values
            parser.error(f"{option} must be given once; got it again with {again}: drop one of the two")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(OneLineParser):
    """An option that is given twice is refused.

    Attributes
    ----------
    given
        The options that have been read.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.given: set[str] = set()
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the options again."""
        self.given = set()
        return super().parse_known_args(args, namespace)


class _Version(argparse.Action):
    """Print the version; it is looked up only then."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"ratedist {version('ratedist')}\n")
        parser.exit(0)


def build(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or of one: then no other call is imported.

    For a word that is no command, such as --help, the parser lists the commands and imports none.
    """
    parser = _Parser(
        prog=PROGRAM,
        description="How few bits, how few synchronisations, how far from the limit?",
        epilog=statuses_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("--print-completion", action=PrintCompletion, whole=build)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, metavar="command")
    only = named(command) if command else None
    if command is not None and only is None:
        served = Outline(SERVE.name, SERVE.summary, SERVE.place)
        for outline in sorted([*outlines(), served], key=lambda listed: listed.place):
            commands.add_parser(outline.name, help=outline.summary)
        _add_others(commands, added_commands())
        return parser
    for call in (only,) if only else sorted([*all_calls().values(), SERVE], key=lambda call: call.place):
        if call.command is not None:
            _add_command(commands, call, call.command)
    if only is None:
        _add_others(commands, added_commands())
    return parser


def build_added(name: str, added: AddedCommand) -> argparse.ArgumentParser:
    """Return the parser of one command that another package adds."""
    parser = _Parser(prog=PROGRAM)
    _add_others(parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser), {name: added})
    return parser


def _add_others(commands: Any, others: dict[str, AddedCommand]) -> None:
    for name, added in others.items():
        added.add_arguments(commands.add_parser(name, help=added.summary, description=added.summary))


def named(command: str) -> Call | None:
    """Return the call of a command, None if there is none."""
    call = SERVE if command == SERVE.name else call_of(command)
    return call if call is not None and call.command is not None else None


def _add_command(commands: argparse._SubParsersAction[_Parser], call: Call, command: Command) -> None:
    lines = [f"  ratedist {call.name} {example}" for example in command.examples]
    parser = commands.add_parser(
        call.name,
        help=call.summary,
        description=call.summary,
        epilog="examples:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON; infinities are the texts Infinity, -Infinity")
    parser.add_argument("--explain", action="store_true", help="print theorem, hypotheses, status and source too")
    for argument in command.arguments:
        if isinstance(argument.kind, kinds.Workers):
            group = parser.add_argument_group(argument.name)
            for part in argument.kind.parts:  # a cluster says which parts it was not given
                _add_argument(group, part, default=argparse.SUPPRESS)
        else:
            _add_argument(parser, argument)


def _add_argument(parser: argparse._ActionsContainer, argument: Argument, **default: Any) -> None:
    required = argument.default is REQUIRED
    keywords: dict[str, Any] = {"help": _help(argument)}
    match argument.kind:
        case kinds.Number():
            keywords |= {"metavar": "X"}
        case kinds.Numbers():
            keywords |= {"nargs": "+", "metavar": "X", "help": f"{keywords['help']}; one or several"}
        case kinds.Sought():
            keywords |= {"nargs": "*", "metavar": "X"}
        case kinds.Names():
            keywords |= {"nargs": "+", "metavar": "NAME"}
        case kinds.Specifications():
            keywords |= {"nargs": "+", "metavar": "SPEC"}
        case kinds.Coding():
            keywords |= {"nargs": "+", "metavar": "C"}
        case kinds.Whole():
            keywords |= {"type": whole_number, "metavar": "N"}
        case kinds.Real():
            keywords |= {"type": real_number, "metavar": "X"}
        case kinds.Flag():
            keywords |= {"action": "store_true"}
    if argument.positional:
        several = {"nargs": "*" if "nargs" in keywords else "?", "default": argument.default}
        parser.add_argument(argument.name, **keywords | ({} if required else several))
    elif isinstance(argument.kind, kinds.Flag):
        parser.add_argument(*_flags(argument.name), **keywords)
    else:
        default = default or {"default": None if required else argument.default}
        parser.add_argument(*_flags(argument.name), **keywords, required=required, **default)


def _help(argument: Argument) -> str:
    """Return what --help says of an argument, and its default."""
    from ..numbers import text_of

    default = argument.default
    if default is REQUIRED or default is None or default is False or default == ():
        return argument.help.replace("%", "%%")
    values = default if isinstance(default, tuple) else (default,)
    return f"{argument.help} (default: {' '.join(map(text_of, values))})".replace("%", "%%")


def _flags(name: str) -> tuple[str, ...]:
    """Return the option with dashes, and with underscores as the keyword of Python has them."""
    return tuple(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))


def keywords_of(command: Command, options: argparse.Namespace, rest: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a command's function from what was read.

    Parameters
    ----------
    command : Command
        The command.
    options : Namespace
        Its options.
    rest : sequence of str
        Further words, which are the symbols of a theorem.

    Raises
    ------
    ValueError
        For words that are no options, and a cluster outside its ranges.
    """
    keywords = {argument.name: _value(argument, options) for argument in command.arguments}
    return keywords | _symbols(rest)


def _value(argument: Argument, options: argparse.Namespace) -> Any:
    if isinstance(argument.kind, kinds.Workers):
        from ..cluster.cluster import Cluster

        names = (part.name for part in argument.kind.parts)
        return Cluster(**{name: getattr(options, name) for name in names if hasattr(options, name)})
    value = getattr(options, argument.name)
    if isinstance(argument.kind, kinds.Sought):
        return ABSENT if value is None else _single(value) if value else None
    return _single(value) if isinstance(argument.kind, kinds.Numbers) else value


def _single(value: Any) -> Any:
    """Return a list of one text as that text; a default, which is no list, as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _symbols(rest: Sequence[str]) -> dict[str, Any]:
    """Return options that carry the names of a theorem's symbols, each with one value or several."""
    pairs: dict[str, list[str]] = {}
    name = None
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            pairs[name] = [value] if equals else []
        elif name is None:
            raise ValueError(f"symbols are given as options; got {word!r}: write for example --alpha {word}")
        else:
            pairs[name].append(word)
    for name, values in pairs.items():
        if not values:
            raise ValueError(f"--{name} needs a value; got none: write --{name} 0.1")
    return {name: _single(values) for name, values in pairs.items()}
