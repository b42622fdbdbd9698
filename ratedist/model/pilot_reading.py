"""The file of a pilot: its versions, and its plain values read back into the records that a pilot is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .codec import Codec
from .pilot_rounds import RoundTrials
from .pilot_timings import ExchangeTimings, LinkTimings, OperatorTrial

VERSION = 2
READ = (1, 2)  # the first had no trial rounds
LARGEST_FILE = 10**8
FLAT = ("losses", "small_norms2", "large_norms2", "taus")
ROWS = ("step_s", "survival", "secants", "falls", "bends", "backward_s")

PilotT = TypeVar("PilotT")


def stated_in(path: str | Path) -> Any:
    """Return the plain values that a file holds.

    Parameters
    ----------
    path : str or Path
        That ``gpu_validation.pilot`` has written.

    Raises
    ------
    ValueError
        For a file that is missing, too large, or no JSON.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path} is no file: give the path that gpu_validation.pilot(path=) has written")
    if file.stat().st_size > LARGEST_FILE:
        raise ValueError(f"a pilot must be a file below {LARGEST_FILE} bytes; {path} has {file.stat().st_size}")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): make a new pilot") from None


def made_of(stated: Any, where: str, make: Callable[..., PilotT]) -> PilotT:
    """Return the pilot that plain values state.

    Parameters
    ----------
    stated : object
        Plain values.
    where : str
        Where they come from, for the error.
    make : callable
        From the fields by their names to the pilot.

    Raises
    ------
    ValueError
        For another version, and what is no pilot.
    """
    version = stated.get("version") if isinstance(stated, dict) else None
    if version not in READ:
        versions = " or ".join(map(str, READ))
        raise ValueError(f"{where} is no pilot of version {versions}; got version {version}: make a new one")
    try:
        rows = {name: tuple(map(tuple, stated[name])) for name in ROWS if name in stated}
        flat = {name: tuple(stated[name]) for name in FLAT}
        trials = tuple(
            OperatorTrial(**_tuples(each) | {"codec": Codec(**each["codec"])}) for each in stated["operators"]
        )
        links = tuple(LinkTimings(**_tuples(each)) for each in stated["links"])
        tried = stated.get("rounds")
        rounds = None if tried is None else RoundTrials.from_dict(tried)
        timed = tuple(ExchangeTimings(**_tuples(each)) for each in stated.get("exchanges", ()))
        parts = {"operators": trials, "links": links, "rounds": rounds, "exchanges": timed}
        return make(**stated | rows | flat | parts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is no pilot ({type(error).__name__}: {error}): make a new one") from None


def _tuples(stated: Any) -> dict[str, Any]:
    """Return the values of a record with its lists as tuples."""
    return {name: tuple(v) if isinstance(v, Sequence) and not isinstance(v, str) else v for name, v in stated.items()}
