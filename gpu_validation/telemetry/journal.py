"""Telemetry file of a rank: JSON lines, which another process may read at any time."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..records.exit_status import UsageError
from ..records.storage import revive
from .account import VERSION, Account, Header, State
from .samples import KeptRound

log = logging.getLogger("gpu_validation")

LONG_BYTES = 4 << 20  # a longer file is replaced by a summary
PREFIX = "rank-"


class Journal:
    """Appends lines to ``folder / rank-R.jsonl``, each in one write; a restarted run appends to the same file.

    A write error (a full disk) is logged once, and the run continues without the file.

    Parameters
    ----------
    folder : str or PathLike
        Folder of the telemetry.
    rank : int
        Rank of this process.

    Raises
    ------
    ValueError
        If the folder cannot be created or written.
    """

    def __init__(self, folder: str | os.PathLike[str], rank: int) -> None:
        self.path = Path(folder) / f"{PREFIX}{rank}.jsonl"
        self._header: Header | None = None
        self._descriptor: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise ValueError(
                f"telemetry cannot be written to {self.path}: {error.strerror}: pass a writable folder"
            ) from error

    @property
    def is_long(self) -> bool:
        """Whether the file should be replaced by a summary."""
        return self._descriptor is not None and os.fstat(self._descriptor).st_size > LONG_BYTES

    def begin(self, header: Header) -> None:
        """Write the header of one start of the run.

        Parameters
        ----------
        header : Header
            Settings of the run.
        """
        self._header = header
        self._append([header.line()])

    def write(self, fresh: Sequence[KeptRound], state: State) -> None:
        """Append new rounds and the current state.

        Parameters
        ----------
        fresh : sequence of KeptRound
            Rounds that the file does not contain.
        state : State
            Current state.
        """
        self._append([_rounds_line(fresh), state.line()] if fresh else [state.line()])

    def begin_anew(self, rounds: Sequence[KeptRound], state: State) -> None:
        """Replace the file atomically by a shorter one with the same content.

        Parameters
        ----------
        rounds : sequence of KeptRound
            Rounds to keep.
        state : State
            Current state.
        """
        assert self._header is not None
        short = self.path.with_suffix(".tmp")
        lines = [self._header.line(), _rounds_line(rounds), state.line()]
        try:
            short.write_bytes(_text(lines))
            os.replace(short, self.path)
            self.close()
            self._open()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if os.fstat(self._descriptor).st_size:
            os.write(self._descriptor, b"\n")  # ends a line that a crash has truncated

    def _append(self, lines: Sequence[dict[str, Any]]) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, _text(lines))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        log.warning("telemetry is no longer written to %s: %s; the run continues", self.path, error.strerror)
        with suppress(OSError):
            self.close()
        self._descriptor = None


def _text(lines: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()


def _rounds_line(rounds: Sequence[KeptRound]) -> dict[str, Any]:
    return {"kind": "rounds", "rows": [kept.row() for kept in rounds]}


# -- reading ---------------------------------------------------------------------------------------------
def read_folder(folder: str | os.PathLike[str]) -> list[Account]:
    """Return the accounts of all ranks of the last start, in rank order; files of earlier starts are skipped.

    Parameters
    ----------
    folder : str or PathLike
        Folder of the telemetry.

    Raises
    ------
    UsageError
        If nothing can be read, or if another version of this program has written it.
    """
    place = Path(folder)
    if not place.is_dir():
        raise UsageError(f"{place} is not a folder: pass the folder of PeriodicAveraging(..., telemetry=...)")
    files = sorted(place.glob(f"{PREFIX}*.jsonl"))
    accounts = [account for account in map(_read, files) if account is not None]
    if not accounts:
        what = "its files have no complete line yet" if files else f"it has no file {PREFIX}0.jsonl"
        raise UsageError(
            f"no telemetry in {place}: {what}; wait for the run to start, read its error if the start was refused, or "
            "pass another folder"
        )
    newest = max(accounts, key=lambda account: account.header.started).header.run
    return sorted((a for a in accounts if a.header.run == newest), key=lambda account: account.header.rank)


def _read(path: Path) -> Account | None:
    """Return the account of the last start in a file; None without a complete line."""
    header: Header | None = None
    state: State | None = None
    rounds: dict[int, KeptRound] = {}
    try:
        for line in _lines(path):
            if line.get("kind") == "header":
                header, state, rounds = _header(line, path), None, {}
            elif line.get("kind") == "rounds":
                rounds |= {kept_round.index: kept_round for kept_round in map(KeptRound.of, line["rows"])}
            elif line.get("kind") == "state":
                state = revive(State, line)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} is not telemetry of this program ({error!r}): remove the file") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: choose another folder") from error
    if header is None or state is None:
        return None
    kept = [kept_round for index, kept_round in sorted(rounds.items()) if index % state.stride == 0]
    return Account(header, state, tuple(kept))


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines; a crash may have truncated one."""
    lines = []
    for text in path.read_bytes().split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:  # invalid JSON or encoding
            continue
        if isinstance(line, dict):
            lines.append(line)
    return lines


def _header(line: dict[str, Any], path: Path) -> Header:
    if line.get("version") != VERSION:
        raise UsageError(
            f"{path} was written by version {line.get('version')} of the telemetry, and this program reads version "
            f"{VERSION}: attach with the ratedist that runs the script"
        )
    header: Header = revive(Header, line)
    return header
