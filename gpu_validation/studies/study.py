"""Studies made of many small units; each is recorded when it ends, so that a run can stop and continue at any time."""

from __future__ import annotations

import inspect
import json
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter, namedtuple
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_type_hints

from ..judging.console import comparison_table
from ..judging.judge import UNREADABLE, unmeasured
from ..judging.plotting import TITLE_PT
from ..judging.verdict import Comparison
from ..records.seeds import RECORDED, derived, require
from ..records.storage import Record
from .required import Required, listed, not_measured

PATTERNS = {int: r"(\d+)", str: "(.+?)"}
EACH = "each"  # a kind whose name is not part of the text: the only one of its study


@dataclass(frozen=True)
class Kind:
    """A kind of units: what one method measures, by the values of its arguments.

    The text of a unit, in records and on the screen, is KIND:AXIS:AXIS.  Values that contain colons are read as
    short as possible, except the last.

    Parameters
    ----------
    name : str
        Word before the axes; "each" leaves it out.
    make : callable
        Named tuple of the axes.
    types : tuple of type
        ``int`` or ``str``, one for each axis.
    """

    name: str
    make: Callable[..., Any]
    types: tuple[type, ...]

    @classmethod
    def of(cls, name: str, method: Callable[..., Any]) -> Kind:
        """Return the kind whose axes are the arguments of a method.

        Parameters
        ----------
        name : str
            Word before the axes.
        method : callable
            Method that measures the units.
        """
        axes = [axis for axis in inspect.signature(method).parameters if axis != "self"]
        hints = get_type_hints(method)
        return cls(name, namedtuple(name, axes), tuple(hints[axis] for axis in axes))

    @property
    def _prefix(self) -> str:
        return "" if self.name == EACH else f"{self.name}:"

    @property
    def shape(self) -> str:
        """Text of the kind, with the axes in capitals."""
        return self._prefix + ":".join(self.make._fields).upper()  # type: ignore[attr-defined]

    def text(self, *values: str | int) -> str:
        """Return the text of a unit.

        Parameters
        ----------
        *values : str or int
            Values of the axes.

        Raises
        ------
        ValueError
            If the text would be read as another unit.
        """
        text = self._prefix + ":".join(map(str, values))
        if self.read(text) != values:
            raise ValueError(
                f"a unit must be read as what was written; {values!r} is written {text}: choose other names"
            )
        return text

    def read(self, text: str) -> Any:
        """Return the unit with a text, or None if the text is of another kind.

        Parameters
        ----------
        text : str
            Text of a unit.
        """
        pattern = re.escape(self._prefix) + ":".join(PATTERNS[kind] for kind in self.types)
        match = re.fullmatch(pattern, text, re.DOTALL)
        return match and self.make(*(kind(word) for kind, word in zip(self.types, match.groups(), strict=True)))


if TYPE_CHECKING:
    from rich.table import Table

FRACTION = re.compile(r"\d\.\d{3,}")
FRACTIONS_OF_A_RUN = 8  # so many different fractions are not equal by chance

Result = TypeVar("Result")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Figure:
    """A drawing made from records, with a caption that separates measurement and theory.

    Parameters
    ----------
    draw : callable
        Function that draws it with matplotlib.
    caption : str
        Caption.
    source : str, optional
        Record behind the figure, which a page collapses.
    folded : str, optional
        Line below which a page collapses the whole figure; empty shows it.
    finding : str, optional
        What the records show, in one line: the title of the figure.
    """

    draw: Callable[[], Any]
    caption: str
    source: str = ""
    folded: str = ""
    finding: str = ""

    def titled(self) -> Any:
        """Draw the figure with its finding as title."""
        figure = self.draw()
        if self.finding:
            figure.suptitle(self.finding, fontsize=TITLE_PT)
        return figure


@dataclass(frozen=True)
class Study(ABC):
    """A named study; subclasses are frozen, final dataclasses with everything that is fixed before a run.

    A subclass sets the properties annotated below, on the class or as fields.

    Parameters
    ----------
    seed : int
        Seed of the run; with the recorded one every stream has the seed that the study names.
    """

    seed: int = field(default=RECORDED, repr=False, kw_only=True)

    version: ClassVar[int] = 1  # increase it when a default or the meaning of a measurement changes
    starts_anew: ClassVar[bool] = False  # whether a run after a complete one, or with another seed, starts anew
    measures_seconds: ClassVar[bool] = (
        False  # whether timings are measured, which a second unit on the same machine would change
    )
    without_noise: ClassVar[tuple[str, ...]] = ()  # beginnings of the units whose records are equal for all seeds

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Name of the study and of its results folder."""

        @property
        def description(self) -> str:
            """Description in one sentence."""

        @property
        def minutes(self) -> float:
            """Stated duration on two cores."""

        @property
        def processes(self) -> int:
            """Number of processes; 1 if everything runs in one."""

        @property
        def false_alarm(self) -> float:
            """Probability that the whole run rejects a true claim."""

    else:
        processes = 1
        false_alarm = 1e-4

    @property
    def command(self) -> str:
        """Argument of ``ratedist run`` for this study."""
        return self.name

    def seeded(self, seed: int) -> Study:
        """Return the study with other random numbers.

        Parameters
        ----------
        seed : int
            Seed of all random numbers, 0 <= seed < 2^32.

        Raises
        ------
        ValueError
            Unless 0 <= seed < 2^32.
        """
        named = {name: getattr(self, name) for name in ("seeds", "tuning") if hasattr(self, name)}
        drawn = {name: tuple(derived(seed, recorded) for recorded in seeds) for name, seeds in named.items()}
        return replace(self, seed=require(seed), **drawn)

    @classmethod
    def kinds(cls) -> dict[str, Kind]:
        """Return the kinds of units by name: one for each method ``measure_KIND``, whose arguments are the axes."""
        return _kinds(cls)

    def plan(self) -> Iterable[tuple[str | int, ...]]:
        """Yield the kind and the axes of every unit, in order; each unit takes at most a minute."""
        raise NotImplementedError("a study must have plan(), or units() and measure(): write one")

    def units(self) -> Sequence[str]:
        """Return the texts of the units in order."""
        return [self.kinds()[str(kind)].text(*axes) for kind, *axes in self.plan()]

    def read(self, text: str) -> tuple[str, Any]:
        """Return the kind and the axes of a unit.

        Parameters
        ----------
        text : str
            Text of a unit.

        Raises
        ------
        ValueError
            If the text is of no kind of this study.
        """
        for name, kind in self.kinds().items():
            unit = kind.read(text)
            if unit is not None:
                return name, unit
        shapes = ", ".join(kind.shape for kind in self.kinds().values())
        raise ValueError(f"a unit of this study must be {shapes}; got {text!r}: take one of study.units()")

    def table(self, records: Iterable[Record], kind: str, **axes: str | int) -> list[tuple[Any, Record]]:
        """Return the units of a kind with their records, in the order of the records.

        Parameters
        ----------
        records : iterable of Record
            Records of any kinds.
        kind : str
            Kind to select.
        **axes : str or int
            Values of axes to select; all others by default.
        """
        rows = [(self.kinds()[kind].read(record["unit"]), record) for record in records]
        units = [(unit, record) for unit, record in rows if unit is not None]
        return [row for row in units if all(getattr(row[0], axis) == value for axis, value in axes.items())]

    def in_order(self, records: Sequence[Record]) -> list[Record]:
        """Return records in the order of their units.

        Parameters
        ----------
        records : sequence of Record
            Records in any order.
        """
        places = {unit: place for place, unit in enumerate(self.units())}
        return sorted(records, key=lambda record: places[record["unit"]])

    def with_records(self, records: Sequence[Record], folder: Path) -> Study:
        """Return the study that measures the next unit, if later units depend on earlier ones; by default itself.

        Parameters
        ----------
        records : sequence of Record
            Records of the units measured so far.
        folder : Path
            Folder of the study, for checkpoints.
        """
        return self

    def before(self, unit: str) -> Sequence[str]:
        """Return the units that must be measured before one.

        By default there are none, or all earlier ones if ``with_records`` is overridden.

        Parameters
        ----------
        unit : str
            One of ``units()``.
        """
        if type(self).with_records is Study.with_records:
            return ()
        units = self.units()
        return units[: units.index(unit)]

    def measure(self, unit: str) -> Record:
        """Measure one unit; return JSON values that depend only on the study and the unit (and timings).

        By default the method ``measure_KIND`` of the unit's kind receives its axes.

        Parameters
        ----------
        unit : str
            One of ``units()``.
        """
        kind, axes = self.read(unit)
        measured: Record = getattr(self, f"measure_{kind}")(*axes)
        return measured

    def measurements(
        self, units: Sequence[str], records: Sequence[Record], folder: Path
    ) -> Generator[Record, None, None]:
        """Measure units one after the other; yield their records in order.

        Parameters
        ----------
        units : sequence of str
            Missing units.
        records : sequence of dict
            All records so far; grows during the iteration.
        folder : Path
            Folder of the study.
        """
        for unit in units:
            yield self.with_records(records, folder).measure(unit)

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return the comparisons that the records allow.

        By default the method ``judge_KIND`` of each record's kind receives the record and the axes of its unit.

        Parameters
        ----------
        records : sequence of Record
            Records so far; each has the key "unit" besides its measurements.
        """
        units = [(record, *self.read(record["unit"])) for record in records]
        return [row for record, kind, axes in units for row in getattr(self, f"judge_{kind}")(record, *axes)]

    def judged(self, records: Sequence[Record]) -> list[Comparison]:
        """Return the rows of ``judge``, and INCONCLUSIVE rows "not measured".

        These stand for a record that ``judge`` cannot read, a record that copies another seed's, and a required row
        that is missing.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        """
        rows, damaged = without_damaged(self.judge, records)
        rows = [*(rows or []), *(_not_measured(record, error) for record, error in (*damaged, *self._copies(records)))]
        return [*rows, *not_measured(self.required(records), rows)]

    def required(self, records: Sequence[Record]) -> Counter[Required]:
        """Return the rows that records of all units must give: those listed for a built-in preset.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        """
        measured = {record.get("unit") for record in records}
        if not measured.issuperset(self.units()) or not self._is_built_in():
            return Counter()
        return listed(self.name)

    def _is_built_in(self) -> bool:
        """Return whether this is the preset of its name, with any seed."""
        module = sys.modules.get(f"{__package__}.{self.name.replace('-', '_')}")
        preset = getattr(module, "PRESET", None)
        return preset is not None and preset.seeded(self.seed) == self

    def _copies(self, records: Sequence[Record]) -> Iterator[tuple[Record, Exception]]:
        """Return records of random units that equal the record of another seed."""
        first: dict[tuple[str, str], str] = {}
        for record in records:
            unit = str(record.get("unit"))
            content = json.dumps({k: v for k, v in record.items() if k not in ("unit", "took_s")}, sort_keys=True)
            if unit.startswith(self.without_noise) or len(set(FRACTION.findall(content))) < FRACTIONS_OF_A_RUN:
                continue
            other = first.setdefault((re.sub(r"\d+", "", unit), content), unit)
            if other != unit:
                yield record, ValueError(f"the record is a copy of that of {other}")

    def drawn(self, records: Sequence[Record]) -> list[Figure]:
        """Return the figures of the records that can be drawn.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        """
        return without_damaged(self.figures, records)[0] or []

    @abstractmethod
    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return the figures of the records.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        """

    def summary(self, records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
        """Return the table that the console shows at the end.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        comparisons : sequence of Comparison
            Result of ``judge``.
        """
        return comparison_table(comparisons)

    def losses(self, records: Sequence[Record]) -> str:
        """Return what was trained and how far its loss fell, for the console; empty by default.

        Parameters
        ----------
        records : sequence of Record
            Records so far.
        """
        return ""


@cache
def _kinds(study: type[Study]) -> dict[str, Kind]:
    methods = {name.removeprefix("measure_"): name for name in dir(study) if name.startswith("measure_")}
    return {name: Kind.of(name, getattr(study, method)) for name, method in methods.items()}


def without_damaged(
    use: Callable[[Sequence[Row]], Result], records: Sequence[Row]
) -> tuple[Result | None, list[tuple[Row, Exception]]]:
    """Return what ``use`` makes of the records that it can read together, and the others, each with what was raised.

    Parameters
    ----------
    use : callable
        What reads the records, such as ``Study.judge``.
    records : sequence
        Records of a study.
    """
    result, error = _tried(use, records)
    if error is None:
        return result, []
    left: list[Row] = []
    damaged: list[tuple[Row, Exception]] = []
    for record in records:
        others = [other for other in records if other is not record]
        _, error = _tried(use, [*left, record])
        if error is not None and (_tried(use, others)[1] is None or _tried(use, [record])[1] is not None):
            damaged.append((record, error))
        else:
            left.append(record)
    result, error = _tried(use, left)
    if error is not None:
        damaged += [(record, error) for record in left]
    return result, damaged


def _tried(use: Callable[[Sequence[Row]], Result], records: Sequence[Row]) -> tuple[Result | None, Exception | None]:
    """Return what reading the records gives, or raises."""
    try:
        return use(records), None
    except UNREADABLE as error:
        return None, error


def _not_measured(record: Record, error: Exception) -> Comparison:
    operator, unit = (str(record.get(name, "unknown")) for name in ("operator", "unit"))
    return unmeasured("all of a record", error, operator=operator, workload=unit)
