"""Checkpoints of a distributed run: one file per rank, written atomically, restored on all ranks or on none. ::

    checkpoint = Checkpoint("checkpoints", model=model, optimizer=optimizer, averaging=averaging, draw=generator)
    for step in range(checkpoint.load(), 500):
        ...
        if (step + 1) % 100 == 0:
            checkpoint.save(step + 1)

A file is written under another name, synchronised to the disk and renamed.  Old files are removed only when every rank
has written the new one.  So all ranks can always resume from a common step, whichever process is killed.  Several steps
are kept, because a disk may lose data.  A run resumes from the newest step whose files are intact on all ranks.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import torch
import torch.distributed as dist

from operators import Message
from operators.ddp.collectives import Gather

log = logging.getLogger("gpu_validation")

NAME = re.compile(r"step-(\d+)-rank-(\d+)-of-(\d+)\.pt")

T = TypeVar("T")


class CheckpointError(RuntimeError):
    """Raised if a checkpoint could not be written or read, with the same text on every rank."""


class Stateful(Protocol):
    """Object with a state: a model, an optimizer, an averaging, a communication hook."""

    def state_dict(self) -> Any:
        """Return the state to save."""

    def load_state_dict(self, state: Any) -> Any:
        """Restore the state.

        Parameters
        ----------
        state
            Result of ``state_dict``.
        """


class Checkpoint:
    """Saves and restores the parts of a run; every rank must make the same calls.

    Parameters
    ----------
    folder : str or PathLike
        Folder of the files; created if missing.  Ranks on several machines may use separate folders.
    group : ProcessGroup or None, optional
        Process group; None for the default one.
    keep : int, optional
        Number of steps to keep, >= 1.
    **parts : Stateful or torch Generator
        Parts of the run by name: objects with ``state_dict`` and ``load_state_dict``, and ``torch.Generator``
        (``torch.default_generator`` for dropout).

    Notes
    -----
    States may contain only tensors and plain values: files are loaded with ``weights_only=True`` and run no code.  The
    first ``save`` reads its state back, and refuses an entry that could not be loaded.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        group: dist.ProcessGroup | None = None,
        keep: int = 3,
        **parts: Stateful | torch.Generator,
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep must be >= 1; got keep = {keep}")
        self.folder, self.parts, self.group, self.keep = Path(folder), parts, group, keep
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        nccl = dist.get_backend(group) == "nccl"
        self._read_back = False
        self._temporary = f"rank-{self.rank}-of-{self.size}.tmp"
        self._device = torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")

    def path(self, step: int) -> Path:
        """Return this rank's file of a step.

        Parameters
        ----------
        step : int
            Local steps of the checkpoint.
        """
        return self.folder / f"step-{step}-rank-{self.rank}-of-{self.size}.pt"

    def save(self, step: int) -> None:
        """Write the state after ``step`` steps; keep the newest earlier checkpoints.

        Parameters
        ----------
        step : int
            Number of completed steps.

        Raises
        ------
        CheckpointError
            On every rank, if a rank cannot write, or if its state has an entry that ``load`` could not read.
        """
        before = self._together(self._steps)
        try:
            self._together(lambda: self._write(step))
        except CheckpointError:
            self._remove({step}.difference(before))
            raise
        earlier = sorted(s for s in before if s < step)
        self._remove(set(before) - {step, *earlier[max(0, len(earlier) - self.keep + 1) :]})

    def load(self) -> int:
        """Restore the newest step that is intact on all ranks; return it, or 0 without a checkpoint.

        If a newer one is damaged, the logger "gpu_validation" warns on rank 0 and names the file.

        Raises
        ------
        CheckpointError
            On every rank, if a file does not fit, all steps are damaged, no step is on all ranks, or the files belong
            to another number of ranks.
        """
        local_steps = self._together(self._steps)
        steps_by_rank = [set(json.loads(text)) for text in self._gather_texts(json.dumps(local_steps))]
        common = set.intersection(*steps_by_rank)
        if not common:
            self._together(lambda: self._explain(steps_by_rank))
            return 0
        step, states = self._newest_whole(sorted(common, reverse=True))
        self._together(lambda: self._restore(step, states))
        self._remove(
            [newer for newer in local_steps if newer > max(common)]
        )  # this rank was ahead when another one died
        return step

    def _newest_whole(self, steps: Sequence[int]) -> tuple[int, dict[str, Any]]:
        """Return the first of the steps that every rank can read, and this rank's states."""
        damage: list[CheckpointError] = []
        for step in steps:
            try:
                states = self._together(partial(self._read, step))
            except CheckpointError as error:
                damage.append(error)
                continue
            if damage and self.rank == 0:
                log.warning("%s; resuming from step %d instead", damage[0], step)
            return step, states
        raise CheckpointError(str(damage[0])) from damage[0].__cause__

    # -- files -------------------------------------------------------------------------------------------
    def _files(self) -> list[tuple[int, int, int]]:
        """Return (step, rank, number of ranks) of every checkpoint in the folder."""
        try:
            names = sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []
        except OSError as error:
            raise CheckpointError(f"cannot list {self.folder}: {error.strerror}") from error
        matches = [match for match in map(NAME.fullmatch, names) if match]
        return [(int(match[1]), int(match[2]), int(match[3])) for match in matches]

    def _steps(self) -> list[int]:
        return [step for step, rank, size in self._files() if (rank, size) == (self.rank, self.size)]

    def _explain(self, found: list[set[int]]) -> None:
        """Raise if there are checkpoints but none that this run can use."""
        if any(found):
            held = "; ".join(f"rank {rank}: {sorted(steps) or 'none'}" for rank, steps in enumerate(found))
            raise CheckpointError(f"finds no step in {self.folder} that all ranks have ({held}): delete them")
        sizes = {size for _, _, size in self._files()}
        if sizes:
            raise CheckpointError(
                f"finds checkpoints of {min(sizes)} ranks in {self.folder}, but this run has {self.size}: start as "
                "many, or delete them"
            )

    def _remove(self, steps: Iterable[int]) -> None:
        """Remove files that are no longer needed, ignoring errors."""
        with contextlib.suppress(OSError):
            (self.folder / self._temporary).unlink(missing_ok=True)
            for step in steps:
                self.path(step).unlink(missing_ok=True)

    def _write(self, step: int) -> None:
        path = self.path(step)
        temporary = self.folder / self._temporary
        states = {name: _state(part) for name, part in self.parts.items()}
        buffer = io.BytesIO()
        try:
            torch.save({"step": step, "parts": states}, buffer)
            if not self._read_back:
                buffer.seek(0)
                torch.load(buffer, map_location="cpu", weights_only=True)
                self._read_back = True
        except Exception as error:  # an object's pickling may raise anything
            entry = next((refused for name in states if (refused := _unreadable(name, states[name]))), "the state")
            raise CheckpointError(
                f"cannot save {entry}, which weights_only=True does not load: make it a tensor or a plain value"
            ) from error
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(self.folder)
        except OSError as error:
            raise CheckpointError(f"cannot write {path}: {error.strerror}") from error

    def _read(self, step: int) -> dict[str, Any]:
        path = self.path(step)
        try:
            with zipfile.ZipFile(path) as archive:
                if (bad := archive.testzip()) is not None:  # torch.load ignores the checksums
                    raise zipfile.BadZipFile(f"the checksum of {bad} is wrong")
        except PermissionError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}: let this user read it") from error
        except Exception as error:  # a damaged archive may raise anything
            reason = str(error).partition("\n")[0]
            raise CheckpointError(f"cannot read {path}, it is damaged ({reason}): delete it to start again") from error
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"cannot load {path}: the file is whole, but {_refused(error)} is not loaded by weights_only=True: "
                "delete it, and save tensors and plain values"
            ) from error
        except Exception as error:  # an archive of another program
            reason = str(error).partition("\n")[0]
            raise CheckpointError(f"{path} is no checkpoint ({reason}): delete it to start again") from error
        if not (isinstance(content, dict) and isinstance(content.get("parts"), dict) and "step" in content):
            raise CheckpointError(f"{path} is no checkpoint of this version: delete it to start again")
        return cast(dict[str, Any], content["parts"])

    def _restore(self, step: int, states: dict[str, Any]) -> None:
        path = self.path(step)
        if states.keys() != self.parts.keys():
            raise CheckpointError(f"{path} has {sorted(states)}; this run needs {sorted(self.parts)}")
        for name, part in self.parts.items():
            try:
                _restore_part(part, states[name])
            except Exception as error:
                reason = str(error).replace("\n", " ")
                cause = None if isinstance(error, ValueError) else error  # a refusal says all in its sentence
                raise CheckpointError(f"{path} does not fit {name} of this run: {reason}") from cause

    # -- all ranks together ------------------------------------------------------------------------------
    def _together(self, act: Callable[[], T]) -> T:
        """Run ``act`` on every rank; if one fails, raise the error of the first failing rank on all."""
        failure, result = None, None
        try:
            result = act()
        except CheckpointError as error:
            failure = error
        except Exception as error:  # report any failure to the other ranks
            failure = CheckpointError(f"fails: {type(error).__name__}: {error}".replace("\n", " "))
            failure.__cause__ = error
        for rank, text in enumerate(self._gather_texts("" if failure is None else str(failure))):
            if text:
                raise CheckpointError(f"rank {rank} {text}") from (None if failure is None else failure.__cause__)
        return cast(T, result)

    def _gather_texts(self, text: str) -> list[str]:
        """Return the texts of all ranks, in rank order."""
        data = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8) if text else torch.empty(0).byte()
        gather = Gather(Message(data, 8 * data.numel()), group=self.group, device=self._device)
        gather.send()
        return [bytes(message.payload.tolist()).decode() for message in gather.wait()]


def _state(part: Stateful | torch.Generator) -> Any:
    return part.get_state() if isinstance(part, torch.Generator) else part.state_dict()


def _restore_part(part: Stateful | torch.Generator, state: Any) -> None:
    if isinstance(part, torch.Generator):
        part.set_state(state)
    else:
        part.load_state_dict(state)


def _unreadable(path: str, value: Any, inside: frozenset[int] = frozenset()) -> str | None:
    """Return path and type of the first entry that weights_only=True cannot load."""
    if id(value) in inside:
        return None
    inside |= {id(value)}
    entries: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        for key in value:
            if (refused := _unreadable(f"the key {key!r} of {path}", key)) is not None:
                return refused
        top = len(inside) == 1
        named = [(f".{key}" if top and isinstance(key, str) and key.isidentifier() else f"[{key!r}]") for key in value]
        entries = [(path + name, entry) for name, entry in zip(named, value.values(), strict=True)]
    elif isinstance(value, list | tuple):
        entries = [(f"{path}[{place}]", entry) for place, entry in enumerate(value)]
    for name, entry in entries:
        if (refused := _unreadable(name, entry, inside)) is not None:
            return refused
    buffer = io.BytesIO()
    try:
        torch.save(value, buffer)
        buffer.seek(0)
        torch.load(buffer, map_location="cpu", weights_only=True)
    except Exception:  # as in Checkpoint._write
        kind = type(value)
        return f"{path} of type {kind.__module__}.{kind.__qualname__}"
    return None


def _refused(error: pickle.UnpicklingError) -> str:
    """Return the class or function that an archive needs, from torch's message."""
    refused = re.search(r"(?:GLOBAL|global) ([\w.]+)", str(error))
    return refused[1] if refused else "an entry"


def _sync(folder: Path) -> None:
    """Synchronise a renaming to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
