"""Records file of a study: read, checked against study and code, and written by one process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..records.environment import Environment
from ..records.exit_status import MEASUREMENTS, UsageError
from ..records.seeds import RECORDED
from ..records.settings import difference, settings
from ..records.storage import DamagedRecords, JsonLines, Record, plain, read_lines, write_atomically
from .study import Study


class StaleResultsError(UsageError):
    """Raised if the folder has results of other settings or other code."""


def stored(folder: Path, study: Study) -> list[Record]:
    """Return the records of earlier runs of this study; a line truncated by a crash is removed from the file.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    study : Study
        Study of the records.

    Raises
    ------
    StaleResultsError
        If the records belong to other settings.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return []
    lines = _own_lines(path, study)
    write_atomically(path, "".join(map(_line, lines)))
    return [line for line in lines if "unit" in line]


def _own_lines(path: Path, study: Study) -> list[Record]:
    """Return the lines of a file; raise StaleResultsError if they are of another study, seed or code."""
    lines = list(read_lines(path))
    seed = next((line.get("seed", RECORDED) for line in lines if "study" in line), study.seed)
    if seed != study.seed:
        raise StaleResultsError(
            f"{path} holds results of seed {seed}, and this is seed {study.seed}: choose another --out, or give no seed"
        )
    for line in lines:
        if "study" in line:
            require_same_study(path, line, study)
    _require_one_code(path, lines)
    return lines


def unfinished(folder: Path, study: Study) -> int:
    """Return how many units of an unfinished run of this study, seed and code the folder has; 0 for any other run.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    study : Study
        Study to continue.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return 0
    try:
        n_units = sum("unit" in line for line in _own_lines(path, study))
        require_same_code(path, Environment.here(study.name, study.processes, "gloo", study.seed))
    except (StaleResultsError, DamagedRecords):
        return 0
    return n_units if n_units < len(study.units()) else 0


def described(study: Study) -> Record:
    """Return version and settings of a study, as records store them.

    Parameters
    ----------
    study : Study
        Study that measures.
    """
    return {"version": study.version, "settings": settings(study)}


def require_same_study(path: Path, head: Record, study: Study) -> None:
    """Raise StaleResultsError for records of another version or other settings of a study.

    Parameters
    ----------
    path : Path
        File, for the message.
    head : Record
        Line with the environment of the units below it.
    study : Study
        Current study.

    Raises
    ------
    StaleResultsError
        With the first setting that differs.
    """
    recorded = head["study"]
    if isinstance(recorded, str):
        raise StaleResultsError(f"{path} has the format of ratedist 0.1: choose another --out, or remove the file")
    if recorded["version"] != study.version:
        raise StaleResultsError(
            f"{path} holds results of version {recorded['version']} of {study.name}, and this is version "
            f"{study.version}: choose another --out, or remove the file"
        )
    other = difference(recorded["settings"], study)
    if other is not None:
        raise StaleResultsError(
            f"{path} holds results of other settings: {other}; choose another --out, or remove the file"
        )


def stored_seed(folder: Path) -> int | None:
    """Return the seed of the results in a study's folder; None without results.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    """
    path = folder / MEASUREMENTS
    heads = (line for line in read_lines(path) if "study" in line) if path.exists() else iter(())
    head = next(heads, None)
    return None if head is None else int(head.get("seed", RECORDED))


def _line(record: Record) -> str:
    return json.dumps(record, allow_nan=False) + "\n"


def _require_one_code(path: Path, lines: Sequence[Record]) -> None:
    """Raise StaleResultsError if units of the file were measured with different code."""
    heads = {(head["code"], head["commit"] if head["code"] == "unknown" else "") for head in lines if "study" in head}
    if len(heads) > 1:
        codes = " and ".join(sorted(" ".join(head).strip() for head in heads))
        raise StaleResultsError(
            f"{path} must hold units measured with one code; got code {codes}: choose another --out, or remove the file"
        )


def require_same_code(path: Path, environment: Environment) -> None:
    """Raise StaleResultsError if another version of the code or its libraries has measured units of the file.

    Parameters
    ----------
    path : Path
        Records file.
    environment : Environment
        Environment of the next units.

    Raises
    ------
    StaleResultsError
        If code or versions differ.
    """
    now = {"code": environment.code, **environment.versions}
    for line in read_lines(path) if path.exists() else ():
        if "study" in line:
            before = {"code": line["code"], **line["versions"]}
            other = [name for name in now if before.get(name) != now[name]]
            if other:
                raise StaleResultsError(
                    f"{path} holds units measured with {other[0]} {before.get(other[0])}, and this is {other[0]} "
                    f"{now[other[0]]}: choose another --out, remove the file, or go back to what measured them"
                )


class RecordWriter:
    """Appends units to the file, below a line with their environment.

    Parameters
    ----------
    file : JsonLines
        File, open for appending.
    study : Study
        Study of the units.
    """

    def __init__(self, file: JsonLines, study: Study) -> None:
        self._file, self._study = file, study
        self._head: Record | None = None

    def begin(self, environment: Environment) -> None:
        """Write the environment of the following units, unless it equals that of the previous ones.

        Parameters
        ----------
        environment : Environment
            Environment of the measuring machine.

        Raises
        ------
        StaleResultsError
            If the file has units of other code.
        """
        head = {**plain(environment), "study": described(self._study)}
        if head != self._head:
            require_same_code(self._file.path, environment)
            self._file.write(head)
            self._head = head

    def add(self, unit: str, measurement: Record, took_s: float) -> Record:
        """Append one unit; return its record.

        Parameters
        ----------
        unit : str
            Name of the unit.
        measurement : dict
            Its measurements.
        took_s : float, seconds
            Duration of the measurement.
        """
        record: Record = plain({"unit": unit, **measurement, "took_s": round(took_s, 3)})
        self._file.write(record)
        return record


def put_in_order(path: Path, units: Sequence[str]) -> None:
    """Rewrite the records in the order of the units, if an engine has measured them in another order.

    Every record stays below the environment of its measurement.

    Parameters
    ----------
    path : Path
        Records file; need not exist.
    units : sequence of str
        All names, in order.
    """
    lines = list(read_lines(path)) if path.exists() else []
    names = [line["unit"] for line in lines if "unit" in line]
    places = {unit: place for place, unit in enumerate(units)}
    if names == sorted(names, key=places.__getitem__):
        return
    head: Record = {}
    pairs: list[tuple[Record, Record]] = []
    for line in lines:
        if "unit" in line:
            pairs.append((head, line))
        else:
            head = line
    ordered: list[Record] = []
    head = {}
    for circumstances, record in sorted(pairs, key=lambda pair: places[pair[1]["unit"]]):
        ordered += [record] if circumstances == head else [circumstances, record]
        head = circumstances
    write_atomically(path, "".join(map(_line, ordered)))
