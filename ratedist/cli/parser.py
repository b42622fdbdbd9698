"""Every command and option; options carry the keyword names of the Python calls, with _ or -."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

EXAMPLES = {
    "bits": ("--d 1e3 --omega 1 --json", "--d 1e9 --omega 1", "--d 25600000 --alpha 0.1 0.01"),
    "solve": ("--d 1e6 --bits 2e6", "--d 1e6 --bits 2e6 --alpha", "--bits 2e6 --omega 1"),
    "runtime": ("--workers 16 --step_s 0.08 --tau 1 4 16 --bits 8.192e8",),
    "error": ("--workers 16 --step_s 0.08 --L 1 --sigma2 1 --eta 0.05 --gap 1 --tau 8 --time_s 3600",),
    "tau": ("--workers 16 --step_s 0.08 --bits 8.192e8 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time_s 600",),
    "plan": (
        "--d 25600000 --workers 16 --step_s 0.08 --operators tcdq:omega=1 qsgd:4 topk:0.01 --target 0.1",
        "--d 1e6 --workers 4 --operators identity tcdq:omega=1 --target 0.1 --L 1 --sigma2 1 --gap 1 --json",
        "--d 1e8 --workers 8 --operators identity tcdq:omega=1 --target 0.1 --codec tcdq:omega=1=9e-11,5e-11",
    ),
    "operators": ("--d 1e6",),
    "check": ("scaled_sign --budget quick --seed 1", "my_compressor:halve --omega 0.1 --budget quick --seed 1"),
    "certify": (
        "worst_case_bits --d 1000000000000 --alpha 0.3",
        "sphere_bits --d 10 --alpha 0.3 --setting strictly_contractive self_delimiting",
        "--list",
    ),
    "measure": ("gradient.npy --operators tcdq:omega=1 qsgd:4 topk:0.01",),
    "serve": ("--port 8000",),
}
SUMMARIES = {
    "bits": "bits that the longest message must have (give omega or alpha)",
    "solve": "the one of d, bits and omega (or alpha) that is left out or given without a value",
    "runtime": "seconds of one local step, its share of an averaging included",
    "error": "what the error is at most after a time budget",
    "tau": "how many local steps between two averagings",
    "plan": "rank compressors for a model and a cluster",
    "operators": "the catalogue of compressors",
    "check": "judge a compressor by the conformance laws; exit status 1 if one fails",
    "certify": "the certified value of any theorem; options are its symbols",
    "measure": "bits, error and gap of compressors on a gradient (.npy or .pt, loaded without pickle)",
    "serve": "serve the calculator as a page and as JSON over HTTP",
}

CONSTANT = "a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then assumed to be 1"


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


class _Parser(argparse.ArgumentParser):
    """A usage error is one clear line.

    given : the options that have been read.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.given: set[str] = set()
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the options anew."""
        self.given = set()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="ratedist",
        description="How few bits, how few synchronisations, how far from the limit?",
        epilog="exit status: 0 done, 1 a check failed or nothing is feasible, 2 usage, 3 a fault, 130 Ctrl-C",
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, metavar="command")
    parsers = {name: _command(commands, name) for name in SUMMARIES}
    _numbers(parsers["bits"], "d", required=True)
    _numbers(parsers["bits"], "omega", "alpha")
    for name in ("d", "bits", "omega", "alpha"):
        parsers["solve"].add_argument(f"--{name}", nargs="*", metavar="X", help=f"{name}; without a value it is sought")
    parsers["solve"].add_argument("--theorem", help="another limit, such as worst_case_bits")
    for name in ("solve", "certify"):
        parsers[name].add_argument("--setting", nargs="+", metavar="NAME", help="what holds: refuse what needs more")
    for name in ("runtime", "error", "tau", "plan"):
        _cluster(parsers[name])
    _numbers(parsers["runtime"], "tau", required=True)
    _numbers(parsers["runtime"], "bits", default=["0"])
    parsers["runtime"].add_argument("--exchange", default="sum", help="sum (default) or gather")
    _numbers(parsers["error"], "eta", "tau", "time_s", required=True)
    for name in ("L", "sigma2", "gap"):
        parsers["error"].add_argument(*_flags(name), nargs="+", metavar="X", help=CONSTANT)
        parsers["tau"].add_argument(*_flags(name), metavar="X", help=CONSTANT)
    _numbers(parsers["error"], "bits", "omega", default=["0"])
    for name in ("eta", "time_s"):
        parsers["tau"].add_argument(*_flags(name), required=True, metavar="X")
    parsers["tau"].add_argument("--bits", default="0", metavar="X", help="of one message (default: latency alone)")
    parsers["tau"].add_argument(*_flags("third_derivative"), metavar="X", help="of the loss, along the noise")
    parsers["plan"].add_argument("--d", required=True, metavar="X")
    parsers["plan"].add_argument("--operators", nargs="+", required=True, metavar="SPEC")
    for name in ("target", "time_s", "L", "sigma2", "gap", "G", "eta", "condition"):
        parsers["plan"].add_argument(*_flags(name), metavar="X")
    parsers["plan"].add_argument("--setting", nargs="+", metavar="NAME", help="what holds: refuse what needs more")
    parsers["plan"].add_argument(
        "--codec",
        nargs="+",
        metavar="C",
        help="seconds a coordinate to encode and to decode: ENCODE,DECODE for all operators, SPEC=ENCODE,DECODE for "
        "one, free, or measured on this machine (default)",
    )
    parsers["operators"].add_argument("--d", default="1e6", metavar="X", help="dimension (default: 1e6)")
    _check(parsers["check"])
    parsers["certify"].add_argument("theorem", nargs="?", help="a name of the catalogue")
    parsers["certify"].add_argument("--list", action="store_true", help="name every theorem and its symbols")
    _measure(parsers["measure"])
    _serve(parsers["serve"])
    return parser


def _command(commands: argparse._SubParsersAction[_Parser], name: str) -> _Parser:
    lines = [f"  ratedist {name} {example}" for example in EXAMPLES[name]]
    parser = commands.add_parser(
        name,
        help=SUMMARIES[name],
        description=SUMMARIES[name],
        epilog="examples:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON; infinities are the texts Infinity, -Infinity")
    return parser


def _flags(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))


def _numbers(parser: _Parser, *names: str, required: bool = False, default: list[str] | None = None) -> None:
    for name in names:
        parser.add_argument(
            *_flags(name), nargs="+", required=required, default=default, metavar="X", help="one number or several"
        )


def _cluster(parser: _Parser) -> None:
    group = parser.add_argument_group("cluster")
    group.add_argument("--workers", required=True, metavar="M")
    group.add_argument(*_flags("bandwidth_bit_per_s"), default="1e10", metavar="X", help="of one link (default: 1e10)")
    group.add_argument(*_flags("latency_s"), default="50e-6", metavar="X", help="of one hop (default: 50e-6)")
    group.add_argument(*_flags("step_s"), default="0.1", metavar="X", help="mean of one local step (default: 0.1)")
    group.add_argument("--compute", default="exponential", help="exponential (default), constant or half_exponential")
    group.add_argument("--topology", default="ring", help="ring (default), tree or parameter_server")


def _check(parser: _Parser) -> None:
    parser.add_argument("subject", help='a specification such as "qsgd:4", or package.module:object')
    parser.add_argument("--budget", default="standard", help="quick, standard (default) or deep")
    parser.add_argument("--seed", type=int, help="replays a report")
    parser.add_argument("--omega", type=float, help="claim: unbiased with this constant")
    parser.add_argument("--alpha", type=float, help="claim: contractive with this constant")


def _measure(parser: _Parser) -> None:
    parser.add_argument("file", help="a .npy array, or a .pt tensor, list or dictionary of tensors")
    parser.add_argument("--operators", nargs="+", metavar="SPEC", help="default: one of every kind")
    parser.add_argument("--draws", type=int, default=3, help="messages of each operator (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of their randomness (default: 0)")


def _serve(parser: _Parser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: loopback only)")
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    parser.add_argument(
        *_flags("allow_host"), nargs="+", default=[], metavar="NAME", help="further names that it is reached by"
    )
