"""The one file of a study's records: read, checked against the study and the code, written by one process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..records.environment import Environment
from ..records.exit_status import MEASUREMENTS, UsageError
from ..records.seeds import RECORDED
from ..records.settings import difference, settings
from ..records.storage import JsonLines, Record, plain, read_lines, write_atomically
from .study import Study


class StaleResultsError(UsageError):
    """The folder holds results of a study with other settings, or of other code."""


def stored(folder: Path, study: Study) -> list[Record]:
    """Return the records of earlier pieces of this study; a line cut short by a crash is dropped from the file.

    Parameters
    ----------
    folder : Path
        Where the results are.
    study : Study
        The one whose units the folder holds.

    Raises
    ------
    StaleResultsError
        If they belong to other settings.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return []
    lines = list(read_lines(path))
    seed = next((line.get("seed", RECORDED) for line in lines if "study" in line), study.seed)
    if seed != study.seed:
        raise StaleResultsError(
            f"{path} holds results of seed {seed}, and this is seed {study.seed}: choose another --out, or give no seed"
        )
    for line in lines:
        if "study" in line:
            require_same_study(path, line, study)
    write_atomically(path, "".join(map(_line, lines)))
    return [line for line in lines if "unit" in line]


def described(study: Study) -> Record:
    """Return what a record says of its study: version and settings.

    Parameters
    ----------
    study : Study
        The study that measures.
    """
    return {"version": study.version, "settings": settings(study)}


def require_same_study(path: Path, head: Record, study: Study) -> None:
    """Refuse records of another version of a study, or of other settings.

    Parameters
    ----------
    path : Path
        The file, for the message.
    head : Record
        A line that says under what circumstances units were measured.
    study : Study
        The study as it is now.

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
    """Return the seed of the results in a study's folder; None if there are none.

    Parameters
    ----------
    folder : Path
        Where the results are.
    """
    path = folder / MEASUREMENTS
    heads = (line for line in read_lines(path) if "study" in line) if path.exists() else iter(())
    head = next(heads, None)
    return None if head is None else int(head.get("seed", RECORDED))


def _line(record: Record) -> str:
    return json.dumps(record, allow_nan=False) + "\n"


def require_same_code(path: Path, environment: Environment) -> None:
    """Refuse to go on with units that another version of the code or of its libraries has measured.

    Parameters
    ----------
    path : Path
        The file.
    environment : Environment
        Of the units to come.

    Raises
    ------
    StaleResultsError
        If they differ.
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
    """Appends units to the file, below a line that says under what circumstances they were measured.

    Parameters
    ----------
    file : JsonLines
        Open at its end.
    study : Study
        Whose units they are.
    """

    def __init__(self, file: JsonLines, study: Study) -> None:
        self._file, self._study = file, study
        self._head: Record | None = None

    def begin(self, environment: Environment) -> None:
        """Write down the circumstances of the units that follow, unless the last line of this kind says the same.

        Parameters
        ----------
        environment : Environment
            Of the machine that measures.

        Raises
        ------
        StaleResultsError
            If the file holds units of other code.
        """
        head = {**plain(environment), "study": described(self._study)}
        if head != self._head:
            require_same_code(self._file.path, environment)
            self._file.write(head)
            self._head = head

    def add(self, unit: str, measurement: Record, took_s: float) -> Record:
        """Append one unit; returns its record.

        Parameters
        ----------
        unit : str
            Its name.
        measurement : dict
            What was measured.
        took_s : float, seconds
            How long that took.
        """
        record: Record = plain({"unit": unit, **measurement, "took_s": round(took_s, 3)})
        self._file.write(record)
        return record


def put_in_order(path: Path, units: Sequence[str]) -> None:
    """Write the records anew in the order of the units, where an engine has measured them in another one.

    Every record stays below the circumstances of its measurement.

    Parameters
    ----------
    path : Path
        The file; need not exist.
    units : sequence of str
        All names, in their order.
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
