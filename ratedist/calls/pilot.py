"""What a pilot run has measured, in a table."""

from __future__ import annotations

from ..model.pilot import Pilot
from .call import REQUIRED, Argument, Call, Command, Text


def pilot(path: str) -> Pilot:
    """Return the measurements that ``gpu_validation.pilot`` has written to a file.

    Parameters
    ----------
    path : str
        The file.

    Raises
    ------
    ValueError
        For a file that is missing or no pilot.
    """
    return Pilot.read(path)


CALL = Call(
    name="pilot",
    summary="what a pilot run has measured: steps, links, noise, gradients, operators",
    place=5,
    function=pilot,
    command=Command(
        arguments=(Argument("path", Text(4096), REQUIRED, "a file of gpu_validation.pilot", positional=True),),
        examples=("pilot.json",),
        run=pilot,
    ),
)
