"""Experiments made of many small units, each recorded as it ends, so that a run can stop anywhere and go on later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..records.seeds import RECORDED, derived, require
from ..records.storage import Record
from ..reporting.console import comparison_table
from ..verdicts.verdict import Comparison

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """A drawing made from records, and what it shows: what is measured, what is theory.

    Parameters
    ----------
    draw : callable
        Makes it with matplotlib.
    caption : str
        The words below it.
    source : str, optional
        Which record it is made from, which a page folds away.
    """

    draw: Callable[[], Any]
    caption: str
    source: str = ""


@dataclass(frozen=True)
class Study(ABC):
    """A named experiment; subclasses are frozen, final dataclasses that hold everything fixed before it runs.

    A subclass sets what is annotated as a property below, on the class or as a field of every instance.

    Parameters
    ----------
    seed : int
        Of the run; under the recorded one every stream has the seed that the study names.
    """

    seed: int = field(default=RECORDED, repr=False, kw_only=True)

    version: ClassVar[int] = 1  # raise it when a default changes, or what a measurement means
    resumable: ClassVar[bool] = True  # whether a later run goes on with the units that an earlier one has measured
    measures_seconds: ClassVar[bool] = (
        False  # whether seconds are measured that a second unit on the same machine would change
    )

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Of the experiment, and of the folder of its results."""

        @property
        def description(self) -> str:
            """In one sentence."""

        @property
        def minutes(self) -> float:
            """Stated duration of the whole on two cores."""

        @property
        def processes(self) -> int:
            """Real ones, 1 if everything happens in one."""

        @property
        def false_alarm(self) -> float:
            """Chance that the whole run accuses a true claim."""

    else:
        processes = 1
        false_alarm = 1e-4

    @property
    def command(self) -> str:
        """What ``gpu-validation run`` is told for this study."""
        return self.name

    def seeded(self, seed: int) -> Study:
        """Return the same study with other random numbers throughout.

        Parameters
        ----------
        seed : int
            Of all random numbers.

        Raises
        ------
        ValueError
            Unless 0 <= seed < 2^32.
        """
        named = {name: getattr(self, name) for name in ("seeds", "tuning") if hasattr(self, name)}
        drawn = {name: tuple(derived(seed, recorded) for recorded in seeds) for name, seeds in named.items()}
        return replace(self, seed=require(seed), **drawn)

    @abstractmethod
    def units(self) -> Sequence[str]:
        """Return the units' names, in the order of work; each takes a minute at most."""

    def in_order(self, records: Sequence[Record]) -> list[Record]:
        """Return records in the order of their units.

        Parameters
        ----------
        records : sequence of Record
            In any order.
        """
        places = {unit: place for place, unit in enumerate(self.units())}
        return sorted(records, key=lambda record: places[record["unit"]])

    def with_records(self, records: Sequence[Record], folder: Path) -> Study:
        """Return the study that measures the next unit, where later units rest on earlier ones; itself unless said
        otherwise.

        Parameters
        ----------
        records : sequence of Record
            Of the units measured so far, in any number of pieces.
        folder : Path
            The study's own, for checkpoints.
        """
        return self

    def before(self, unit: str) -> Sequence[str]:
        """Return the units whose records one needs: none, or all earlier ones where ``with_records`` reads them,
        unless said otherwise.

        Parameters
        ----------
        unit : str
            One of ``units()``.
        """
        if type(self).with_records is Study.with_records:
            return ()
        units = self.units()
        return units[: units.index(unit)]

    @abstractmethod
    def measure(self, unit: str) -> Record:
        """Carry out one unit: JSON values that depend on nothing but the study and the unit (and the clock).

        Parameters
        ----------
        unit : str
            One of ``units()``.
        """

    def measurements(
        self, units: Sequence[str], records: Sequence[Record], folder: Path
    ) -> Generator[Record, None, None]:
        """Carry out units one after the other; a record each, in their order.

        Parameters
        ----------
        units : sequence of str
            Those that are missing.
        records : sequence of dict
            All that are measured; grows while this goes on.
        folder : Path
            The study's own.
        """
        for unit in units:
            yield self.with_records(records, folder).measure(unit)

    @abstractmethod
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return the comparisons that the records at hand permit.  A record has the key "unit" beside what was
        measured.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        """

    @abstractmethod
    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return what to draw from the records at hand.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        """

    def summary(self, records: Sequence[Record], comparisons: Sequence[Comparison]) -> Table:
        """Return the table that a console shows at the end.

        Parameters
        ----------
        records : sequence of Record
            The records at hand.
        comparisons : sequence of Comparison
            What ``judge`` made of the records.
        """
        return comparison_table(comparisons)
