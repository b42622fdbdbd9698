"""What the figure scripts share: committed records in, figures and comparisons out.

A script has ``figures()``, what it draws, and ``check()``, its records held against their bounds once more.  A study
with a committed record has both without a script.  To look at the first figure of a script or a study:

    python docs/measure.py figures/common.py NAME figure.png
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from measure import DATA, load

from gpu_validation.judging.plotting import LINES, MARKS, PALETTE
from gpu_validation.judging.plotting import panels as panels
from gpu_validation.judging.verdict import Comparison
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import all_presets
from gpu_validation.studies.record_file import require_same_study
from gpu_validation.studies.study import Figure, Study

STUDIES = DATA / "studies"
Record = dict[str, Any]


@cache
def lines(name: str) -> tuple[Record, ...]:
    """The records of a file under docs/data."""
    return tuple(json.loads(line) for line in (DATA / name).read_text().splitlines())


def provenance(name: str) -> str:
    """Commit, machine and versions of a file's numbers, to be folded below the caption."""
    head = next(row for row in lines(name) if "commit" in row)
    facts = [f"{key} {head[key]}" for key in ("commit", "machine", "cpus", "torch") if head.get(key)]
    return f"Record: docs/data/{name}, {', '.join(facts)}."


def curve(ax: Any, i: int, x: Any, y: Any, label: str | None = None, **style: Any) -> None:
    """Draw the i-th line of theory, in the i-th colour of the palette unless ``color`` is given."""
    ax.plot(x, y, LINES[i % len(LINES)], **{"color": PALETTE[i % len(PALETTE)], "label": label} | style)


def points(ax: Any, i: int, x: Any, y: Any, label: str | None = None, **style: Any) -> None:
    """Draw what was measured, by the i-th mark, in the i-th colour of the palette unless ``color`` is given."""
    look = {"color": PALETTE[i % len(PALETTE)], "linestyle": "none", "label": label}
    ax.plot(x, y, MARKS[i % len(MARKS)], **look | style)


def joined(ax: Any, i: int, x: Any, y: Any, label: str | None = None, **style: Any) -> None:
    """Draw marks that a line joins."""
    look = {"color": PALETTE[i % len(PALETTE)], "label": label}
    ax.plot(x, y, LINES[i % len(LINES)] + MARKS[i % len(MARKS)], **look | style)


def recorded(draw: Callable[[], Any], caption: str, record: str, finding: str = "") -> Figure:
    """A figure of one file of docs/data."""
    return Figure(draw, caption, provenance(record), finding=finding)


@cache
def study(name: str) -> tuple[Study, tuple[Record, ...], Record]:
    """(the preset, its recorded units, the circumstances).  Raises StaleResultsError if they are of other settings."""
    found = all_presets()[name]
    assert isinstance(found, Study)
    rows = list(read_lines(STUDIES / f"{name}.jsonl"))
    head = next(row for row in rows if "study" in row)
    require_same_study(STUDIES / f"{name}.jsonl", head, found)
    return found, tuple(row for row in rows if "unit" in row), head


@cache
def study_check(name: str) -> tuple[Comparison, ...]:
    """A study's records judged again, by the bounds as they are now."""
    found, records, _ = study(name)
    return tuple(found.judge(list(records)))


@dataclass(frozen=True)
class Recorded:
    """Figures and rows of a study, made from its committed record."""

    name: str

    def study(self) -> tuple[Study, tuple[Record, ...], Record]:
        """(the preset, its recorded units, the circumstances)."""
        return study(self.name)

    def figures(self) -> list[Figure]:
        """All figures of the study."""
        found, records, head = self.study()
        facts = [f"{key} {head[key]}" for key in ("commit", "device", "torch") if head.get(key)]
        where = f"Record: docs/data/studies/{self.name}.jsonl, {', '.join(facts)}."
        return [replace(figure, source=where) for figure in found.figures(list(records))]

    def check(self) -> tuple[Comparison, ...]:
        """All rows of the study."""
        return study_check(self.name)


def named(name: str) -> Any:
    """The study whose record has the name, or the figure script.  Raises FileNotFoundError if there is neither."""
    if (STUDIES / f"{name}.jsonl").exists():
        return Recorded(name)
    return load(Path(__file__).with_name(f"{name}.py"))


def main(name: str, path: str) -> Iterator[dict[str, str]]:
    """Draw the first figure of a script or a study; yields its title and caption."""
    first = named(name).figures()[0]
    first.titled().savefig(path, bbox_inches="tight", dpi=120)
    yield {"finding": first.finding, "caption": first.caption}
