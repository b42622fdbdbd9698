"""Compressors on one vector, every family at the same bits: whose error is smallest, and how far is the limit?"""

from __future__ import annotations

import csv
import html
import io
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from bounds.frame import frame

from ..cluster.compressors import as_operator
from ..drawing import WIDTH_IN
from ..numbers import Numbers, Vector, refusal
from ..records import Answer, Answered, Table, number_text, plain, unit_text
from .arguments import Specifications
from .call import Call, Command
from .measure import (
    DRAWS,
    STATUS,
    Measured,
    drawn,
    evidence_of,
    excess_note,
    finite_vector,
    kind_text,
    measure,
    of_file,
    varying_note,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from operators import Operator
    from operators.functions.own import Compressor

LEAST_WIDTH_IN = 3.0  # labels of 8 pt leave no axes in less
NEAR = 0.05  # relative, of bits that are taken to be equal
RATES = (1.0, 2.0, 4.0)
SPELLED_RATES = ("1", "2", "4")  # on the command line
AGAINST = ("tcdq", "eden", "qsgd", "terngrad", "topk")
FORMATS = (".pdf", ".svg", ".png", ".csv", ".tex")
LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
COLUMNS = ("operator", "bits", "nmse", "gap", "source_gap", "seconds")


@dataclass(frozen=True)
class Compared:
    """One compressor at one number of bits.

    Parameters
    ----------
    family : str
        What was asked for; the points of one family are one curve.
    asked : float or None, bits
        Bits per coordinate that were asked for; None where the compressor has no choice.
    measured : Measured or None
        What it spent and did; None where it cannot send so few or so many bits.
    source_gap : float or None, bits
        A coordinate, above the rate-distortion function of the vector's own coordinates as independent draws; None
        unless it was asked for, and without error.
    seconds : float or None, s
        Of encoding and decoding one message on one core of this machine, the least of the draws.
    remark : str, optional
        Why there is no measurement; or, with one, why the ``source_gap`` that was asked for is None.
    is_own : bool, optional
        Whether it came as a function or from a module of the user.
    has_stated_bits : bool, optional
        Whether it came as a function, whose bits are those that it states.
    """

    family: str
    asked: float | None
    measured: Measured | None
    source_gap: float | None
    seconds: float | None
    remark: str = ""
    is_own: bool = False
    has_stated_bits: bool = False

    def row(self) -> dict[str, Any]:
        """Return the columns of a table; None where there is nothing."""
        point = self.measured
        if point is None:
            return dict.fromkeys(COLUMNS) | {"operator": self.family}
        numbers = {"operator": point.operator, "bits": point.bits, "nmse": point.nmse, "gap": point.gap}
        return numbers | {"source_gap": self.source_gap, "seconds": self.seconds}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True, repr=False)
class Comparison(Answered):
    """Compressors on one vector, in the order in which they were named.

    Parameters
    ----------
    d : int
        Number of coordinates.
    rows : tuple of Compared
        One for each compressor and number of bits.
    tensors : tuple of str, optional
        Names of the tensors in the file, where the vector comes from one.
    left_out : tuple of str, optional
        Names of the tensors that are not in the vector, with the reason.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    d: int
    rows: tuple[Compared, ...]
    tensors: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain values, with the tensors of a file."""
        names = {"tensors": list(self.tensors), "left_out": list(self.left_out)} if self.tensors else {}
        rows = [row.to_dict() for row in self.rows]
        return names | {"d": self.d, "rows": rows, "assumed": list(self.assumed)}

    def to_frame(self) -> DataFrame:
        """Return one row a compressor and number of bits; bits and gaps a coordinate, seconds of one message."""
        return frame([{"asked": row.asked} | row.row() | {"remark": row.remark} for row in self.rows])

    def to_csv(self) -> str:
        """Return the table as comma-separated values; bits and gaps a coordinate."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            if row.measured is not None:
                writer.writerow(row.row() | {"operator": _csv_text(str(row.row()["operator"]))})
        return text.getvalue()

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``, with the columns of the printed one; it needs no package."""
        head = "compressor & bits per coordinate & NMSE & excess bits & code [ms] \\\\"
        lines = [_latex_line(row) for row in self.rows if row.measured is not None]
        return "\n".join(
            (r"\begin{tabular}{lrrrr}", r"\hline", head, r"\hline", *lines, r"\hline", r"\end{tabular}", "")
        )

    def plot(self, *, ax: Any = None, width_in: float = WIDTH_IN) -> Any:
        """Draw error against bits, a curve a family, the user's own in front, and the limits; returns the axes.

        Parameters
        ----------
        ax : optional
            Matplotlib axes to draw on; new ones unless given.
        width_in : float, inches, optional
            Width of a new figure, at least 3; 3.3 fits a column of a paper.

        Raises
        ------
        ValueError
            For a width below 3 inches.
        """
        from ..drawing import plot_comparison

        require_width(width_in)

        points = [
            (row.family, row.measured.bits, row.measured.nmse, row.is_own)
            for row in self.rows
            if row.measured is not None and row.measured.nmse > 0
        ]
        gaps = [row.measured.gap for row in self.rows if row.measured is not None and row.measured.gap is not None]
        title = f"one vector, d = {number_text(self.d)}"
        return plot_comparison(points, title, ax, width_in=width_in, is_below=min(gaps, default=0.0) < 0)

    def save(self, path: str | Path, *, width_in: float = WIDTH_IN) -> Path:
        """Write a figure (.pdf, .svg, .png) or the table (.csv, .tex) and return its path.

        Parameters
        ----------
        path : str or Path
            Its suffix says what is written.
        width_in : float, inches, optional
            Width of the figure, at least 3; 3.3 fits a column of a paper.

        Raises
        ------
        ValueError
            For another suffix, a path that cannot be written, and a width below 3 inches.
        """
        file = require_writable(path)
        match file.suffix:
            case ".csv":
                file.write_text(self.to_csv(), encoding="utf-8")
            case ".tex":
                file.write_text(self.to_latex(), encoding="utf-8")
            case _:
                import matplotlib

                with matplotlib.rc_context({"pdf.fonttype": 42}):  # TrueType: publishers refuse Type 3
                    self.plot(width_in=width_in).figure.savefig(file, dpi=200)
        return file

    def __repr__(self) -> str:
        return str(self)

    def answer(self) -> Answer:
        """Return which compressor has the smallest error at each number of bits, and where one's own stands."""
        points = [(self._rate_of(row), row.measured, row) for row in self.rows if row.measured is not None]
        points.sort(key=lambda point: (point[0], point[1].nmse))
        smallest = _smallest(points)
        beside = [self._beside_own(row.measured) for row in self.rows if row.is_own and row.measured is not None]
        verdict = (
            beside[0] if beside else f"Smallest error: {smallest}." if smallest else "Each compressor at its own bits."
        )
        remarks = [f"{row.family} at {row.asked:g} bits: {row.remark}" for row in self.rows if row.measured is None]
        sourceless = [point.operator for _, point, row in points if row.remark]
        spread = max((p.gap_range[1] - p.gap_range[0] for _, p, _ in points if p.gap_range), default=0.0)
        facts = {
            "another of yours": " ".join(beside[1:]),
            "smallest error": f"of the others, {smallest}" if beside and smallest else "",
            "bits of yours": "as the function states them; nothing checks that"
            if any(row.has_stated_bits for row in self.rows)
            else "",
            "status": STATUS,
            "how sure": f"the excess of one compressor varies by up to {spread:.2g} bits between messages",
            "changes with": "the vector: give a gradient of your own, of a late step too",
            "of source": f"not computed for {', '.join(sourceless)}: the error is too small" if sourceless else "",
            "not measured": f"{remarks[0]}{f' (and {len(remarks) - 1} more)' * (len(remarks) > 1)}" if remarks else "",
        }
        return Answer(
            verdict,
            facts | of_file(self.tensors, self.left_out),
            (self._table(points),),
            assumed=self.assumed,
            evidence=evidence_of([point for _, point, _ in points]) | {"not measured": remarks},
        )

    def _rate_of(self, row: Compared) -> float:
        """Return among which compressors a row stands: those of the bits asked for that are nearly its own."""
        if row.asked is not None:
            return row.asked
        bits = 0.0 if row.measured is None else row.measured.bits
        asked = [other.asked for other in self.rows if other.asked is not None]
        return min((rate for rate in asked if abs(rate - bits) <= NEAR * rate), default=bits)

    def _beside_own(self, own: Measured) -> str:
        """Return which compressor has no larger error than the user's own with the fewest bits, to two digits.

        One of the same claimed class comes first; the class of any other is named.
        """
        measured = [row.measured for row in self.rows if row.measured is not None and row.measured is not own]
        if measured and min(point.bits for point in measured) > (1 + NEAR) * own.bits:
            tried = any(row.asked is not None and row.asked <= (1 + NEAR) * own.bits for row in self.rows)
            remedy = "" if tried or own.bits <= 0 else f"; add bits = {own.bits:.3g}"
            return (
                f"{own.operator} is not compared: it sends {own.bits:.3g} bits per coordinate, every other compressor "
                f"here more{remedy}."
            )
        cheap = [point for point in measured if point.bits <= (1 + NEAR) * own.bits]
        better = [p for p in cheap if p.nmse < own.nmse or (p.nmse == own.nmse and p.bits < own.bits)]
        if not better:
            return f"{own.operator}: no other compressor here has as small an error with fewer bits."
        alike = [point for point in better if point.kind == own.kind]
        least = min(alike or better, key=lambda point: (float(f"{point.bits:.2g}"), point.nmse))
        kind = "" if alike else f" ({kind_text(least.kind)})"
        return (
            f"{own.operator} sends {own.bits:.3g} bits per coordinate for NMSE {own.nmse:.3g}; {least.operator}{kind} "
            f"needs {least.bits:.3g} for {least.nmse:.3g}."
        )

    def _table(self, points: Sequence[tuple[float, Measured, Compared]]) -> Table:
        has_source = any(row.source_gap is not None for row in self.rows)
        rows = []
        for _, point, row in points:
            gaps = [point.gap, row.source_gap] if has_source else [point.gap]
            texts = ["" if gap is None else f"{gap:.3f}" for gap in gaps]
            seconds = "" if row.seconds is None else f"{1e3 * row.seconds:.3g}"
            name = f"{point.operator} (yours)" if row.is_own else point.operator
            rows.append((name, f"{point.bits:.3f}", f"{point.nmse:.3g}", *texts, kind_text(point.kind), seconds))
        gaps_named = ("excess", "of source") if has_source else ("excess",)
        columns = ("compressor", "bits", "NMSE", *gaps_named, "claim", "code [ms]")
        source = "; of source: bits above the rate-distortion function of this vector's coordinates" * has_source
        varying = varying_note(point for _, point, _ in points)
        excess = excess_note(point for _, point, _ in points)
        note = (
            f"bits: per coordinate, d = {number_text(self.d)}{varying}; NMSE: |C(x) - x|^2/|x|^2; {excess}{source}; "
            "code: encoding and decoding one message on one core of this machine"
        )
        return Table(columns, tuple(rows), left=frozenset({"claim"}), note=note)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = (row.row().values() for row in self.rows if row.measured is not None)
        body = "".join("<tr>" + "".join(f"<td>{_cell(v)}</td>" for v in values) + "</tr>" for values in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


def compare(
    compressors: Sequence[Compressor],
    x: Vector,
    *,
    bits: Sequence[float] | float | None = RATES,
    draws: int = DRAWS,
    seed: int = 0,
    source: bool = False,
    progress: Callable[[Compared], None] | None = None,
) -> Comparison:
    """Send one vector by each compressor, every family at the same bits, and set the errors side by side.

    Parameters
    ----------
    compressors : sequence of str or Operator or callable
        Names of families such as "tcdq" or "eden", which are brought to each number of bits; specifications with a
        value of the field that moves the bits, such as "qsgd:4", operators, functions of your own (``own``) and
        "module:object", which are sent as they are.
    x
        Float array or tensor, not all zero.
    bits : float or sequence of float or None, optional
        Bits per coordinate, everything counted; None sends each family's default.
    draws : int, optional
        Number of messages, >= 1.
    seed : int, optional
        Seed of the randomness.
    source : bool, optional
        Whether to give the distance from the rate-distortion function of the vector's own coordinates too.
    progress : callable or None, optional
        Called with each row as it is measured.

    Returns
    -------
    Comparison
        A table that can be printed, drawn (``plot``) and saved (``save``).

    Raises
    ------
    ValueError
        For an unsuited vector, an unknown compressor, or none.

    Examples
    --------
    >>> import numpy as np, ratedist as rd
    >>> x = np.random.default_rng(0).standard_normal(20_000)
    >>> [row.measured.operator for row in rd.compare(["eden", "klevel"], x, bits=2).rows]
    ['eden:bits_per_coordinate=2', 'klevel:k=4']
    """
    if isinstance(compressors, str) or not compressors:
        raise ValueError(
            f'compressors must be a list of at least one; got {compressors!r}: write for example ["tcdq", "eden"]'
        )
    from operators import specification

    vector = finite_vector(x)
    rates = tuple(_rate(each) for each in ((bits,) if isinstance(bits, int | float) else bits or ()))
    of_users = {
        place: _measured(specification(as_operator(compressor)), None, compressor, vector, draws, seed, source)
        for place, compressor in enumerate(compressors)
        if not _is_family(compressor) and _is_own(compressor)
    }
    assumed = [f"{_listed(RATES)} per coordinate"] if bits is RATES else []
    few = min((row.measured.bits for row in of_users.values() if row.measured is not None), default=math.inf)
    if bits is RATES and 0 < (1 + NEAR) * few < RATES[0]:
        rates = (few, *RATES)
        assumed = [f"{_listed(RATES)} per coordinate, and the {few:.3g} of yours"]
    rows = []
    for place, compressor in enumerate(compressors):
        alone = [of_users[place]] if place in of_users else _rows(compressor, vector, rates, draws, seed, source=source)
        for row in alone:
            rows.append(row)
            if progress is not None:
                progress(row)
    return Comparison(vector.size, tuple(rows), assumed=(*assumed, *drawn(draws, seed)))


def _smallest(points: Sequence[tuple[float, Measured, Compared]]) -> str:
    """Return the family with the smallest error at each number of bits, each family once."""
    best: dict[float, Measured] = {}
    for _, point, row in points:
        if row.asked is not None:
            best.setdefault(row.asked, point)
    won: dict[str, list[float]] = {}
    for rate, point in best.items():
        won.setdefault(_family(point), []).append(rate)
    return ", ".join(f"{family} at {_listed(rates)} per coordinate" for family, rates in won.items())


def _listed(rates: Sequence[float]) -> str:
    *first, last = (f"{rate:g}" for rate in rates)
    return f"{', '.join(first)}{' and ' * bool(first)}{last} {unit_text('bit', rates[-1])}"


def _family(point: Measured) -> str:
    return point.operator.partition(":")[0]


def require_width(width_in: float) -> None:
    """Refuse a figure that is too narrow for its labels."""
    if not LEAST_WIDTH_IN <= width_in < math.inf:
        rule = f"width_in >= {LEAST_WIDTH_IN:g} inches, finite"
        raise refusal("width_in", rule, width_in, remedy="3.3 fits a column of a paper")


def require_writable(path: str | Path) -> Path:
    """Return the path of a figure or table that can be written; an existing file is overwritten.

    Parameters
    ----------
    path : str or Path
        Its suffix says what is written.

    Raises
    ------
    ValueError
        For another suffix, a missing folder, a folder, and missing permissions.
    """
    file = Path(path)
    if "\0" in str(path):
        raise ValueError(f"out must be a path without null bytes; got {str(path)!r}: give another path")
    if file.suffix not in FORMATS:
        raise ValueError(f"out must end in .pdf, .svg, .png, .csv or .tex; got {path}: give one of these")
    try:
        if file.exists():
            kind = "" if file.is_file() else "is a folder" if file.is_dir() else "is no regular file"
            is_allowed = os.access(file, os.W_OK)
        else:
            kind = "" if file.parent.is_dir() else "lies in no folder"
            is_allowed = os.access(file.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError):
        kind, is_allowed = "is no path", False
    if kind or not is_allowed:
        raise ValueError(
            f"out must be a file that can be written; {path} {kind or 'is not writable'}: give another path"
        )
    return file


def _rate(bits: Any) -> float:
    if isinstance(bits, bool) or not isinstance(bits, int | float) or not 0 < bits < math.inf:
        remedy = "give the bits of one coordinate, such as bits=1.5"
        raise refusal("bits", "0 < bits per coordinate, finite", bits, remedy=remedy)
    return float(bits)


def _rows(
    compressor: Compressor, x: Any, rates: tuple[float, ...], draws: int, seed: int, *, source: bool
) -> Iterator[Compared]:
    """Yield one row for each number of bits; a single one for what has no choice."""
    from operators import for_bits, specification

    if not (rates and _is_family(compressor)):
        yield _measured(specification(as_operator(compressor)), None, compressor, x, draws, seed, source)
        return
    for asked in rates:
        try:
            member = for_bits(compressor, asked, like=x)
        except ValueError as failure:
            yield Compared(compressor, asked, None, None, None, str(failure))
        else:
            row = _measured(compressor, asked, member, x, draws, seed, source)
            sent = asked if row.measured is None else row.measured.bits
            more = f"it sends {sent:.3g} bits per coordinate at least here"
            yield row if sent <= (1 + NEAR) * asked else Compared(compressor, asked, None, None, None, more)


def _is_family(compressor: Compressor) -> TypeGuard[str]:
    """Return whether the text names a family and leaves open the field that moves its bits."""
    from operators import all_operators

    if not isinstance(compressor, str):
        return False
    name, _, stated = compressor.partition(":")
    kind = all_operators().get(name)
    if kind is None or kind.rate is None:
        return False
    parts = [part.partition("=") for part in stated.split(",")] if stated else []
    return all(equals and field.strip() != kind.rate.field for field, equals, _ in parts)


def _is_function(compressor: Compressor) -> bool:
    from operators.functions.own import Own

    return isinstance(as_operator(compressor), Own)


def _is_own(compressor: Compressor) -> bool:
    return _is_function(compressor) or not type(as_operator(compressor)).__module__.startswith("operators.")


def _measured(
    family: str,
    asked: float | None,
    compressor: Compressor,
    x: Any,
    draws: int,
    seed: int,
    source: bool,
) -> Compared:
    point, source_gap, remark = measure(compressor, x, draws=draws, seed=seed), None, ""
    if source:
        try:
            source_gap = _source_gap(point, x)
        except ValueError as failure:  # other rows have theirs
            remark = str(failure)
    return Compared(
        family,
        asked,
        point,
        source_gap,
        _seconds(compressor, x, draws, seed),
        remark,
        is_own=_is_own(compressor),
        has_stated_bits=_is_function(compressor),
    )


def _seconds(compressor: Compressor, x: Any, draws: int, seed: int) -> float:
    """Return the least seconds of a message; what was compiled at the first call is not in them."""
    from operators import Key

    sender = as_operator(compressor)
    spent = math.inf
    for draw in range(draws):
        key, started = Key(seed, step=draw), time.perf_counter()
        sender.decode(sender.encode(x, key=key), d=x.size, key=key)
        spent = min(spent, time.perf_counter() - started)
    return spent


def _source_gap(point: Measured, x: Any) -> float | None:
    from ..blahut_arimoto import rate_distortion
    from ..sources.empirical import Empirical

    error = point.limit_nmse
    shrunk = error / (1 + error) if point.limit_of.startswith("unbiased") else error
    return point.bits - float(rate_distortion(Empirical(x), shrunk).hi) if 0 < shrunk < 1 else None


def _csv_text(name: str) -> str:
    """Return a name that a spreadsheet does not take for a formula, on one line."""
    line = " ".join(name.split())
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def _latex_line(row: Compared) -> str:
    cells = row.row()
    name = "".join(LATEX.get(letter, letter) for letter in " ".join(str(cells["operator"]).split()))
    gap = "" if cells["gap"] is None else f"{cells['gap']:.3f}"
    return rf"{name} & {cells['bits']:.3f} & {cells['nmse']:.3g} & {gap} & {1e3 * cells['seconds']:.3g} \\"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def _run(
    subject: str,
    file: str,
    *,
    bits: Numbers = SPELLED_RATES,
    against: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    source: bool = False,
    label: str | None = None,
    out: str | None = None,
    width_in: float = WIDTH_IN,
) -> Comparison:
    """Compare on the tensors of a file.

    Parameters
    ----------
    subject : str
        A family, specification or module:object.
    file : str
        A .npy array, or a .npz, .pt or .safetensors file of tensors.
    bits : array_like, bits, optional
        Bits per coordinate, everything counted.
    against : sequence of str or None, optional
        Families to compare with; tcdq, eden, qsgd, terngrad and topk unless given.
    source : bool, optional
        Also give the distance from this vector's own limit.
    label : str or None, optional
        Name of your own function in table and figure; the function's name unless given.
    out : str or None, optional
        Write a figure (.pdf, .svg, .png) or the table (.csv, .tex).
    width_in : float, inches, optional
        Width of the figure; 3.3 fits a column of a paper.
    """
    from ..numbers import real
    from ..sources.tensor_files import read

    asked = bits if isinstance(bits, list | tuple) else [bits]
    rates = RATES if bits is SPELLED_RATES else [real("bits", value) for value in asked]
    first = subject if label is None else _labelled(subject, label)
    named = [first, *(against if against is not None else (name for name in AGAINST if name != subject))]
    if out is not None:
        require_writable(out)
        require_width(width_in)
    content = read(file)
    with _progress(len(named) * len(rates)) as advance:
        result = compare(
            named, content.vector, bits=rates, draws=draws, seed=seed, source=source, progress=lambda row: advance()
        )
    result = replace(result, tensors=content.read, left_out=content.left_out)
    if out is not None:
        result.save(out, width_in=width_in)
    return result


def _labelled(subject: str, label: str) -> Operator:
    from operators.functions.own import Own

    operator = as_operator(subject)
    if not isinstance(operator, Own):
        raise ValueError(f"label names a function of your own; got {subject}: leave label out, or give module:function")
    return replace(operator, label=label)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("messages", total=total)
        yield lambda: bar.advance(task)


CALL = Call(
    name="compare",
    summary="compressors at equal bits on a gradient, your own among them: table and figure",
    place=10,
    function=compare,
    command=Command(
        examples=("tcdq gradient.npy --against eden qsgd --bits 1 2", "my_compressor:halve gradient.npy --bits 2"),
        run=_run,
        kinds={"against": Specifications()},
    ),
)
