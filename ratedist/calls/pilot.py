"""``ratedist pilot``: show the record of a pilot run."""

from __future__ import annotations

from typing import Any

from ..pilots.pilot import Pilot
from .call import Call, Command

# -- example -------------------------------------------------------------------------------------------

TRIAL = {
    "operator": "qsgd:levels=16",
    "bits": [3.1, 3.2],
    "nmse": [0.30, 0.32],
    "residuals": [],
    "codec": {"encode_s_per_coordinate": 2e-9, "decode_s_per_coordinate": 1e-9, "source": "invented"},
}
PILOT_EXAMPLE: dict[str, Any] = {
    "version": 1,
    "d": 25600000,
    "ranks": 1,
    "device": "cpu",
    "threads": 1,
    "step_s": [[0.08, 0.081, 0.083, 0.09]],
    "losses": [2.3, 2.2, 2.1, 2.0],
    "small_norms2": [1.5, 1.45],
    "large_norms2": [1.25, 1.22],
    "taus": [1, 2],
    "survival": [[0.9, 0.8], [0.88, 0.79]],
    "secants": [[10.0, 9.0], [9.5, 8.8]],
    "falls": [[0.012, 0.023], [0.0118, 0.0226]],
    "bends": [[0.001, 0.004], [0.0011, 0.0039]],
    "operators": [TRIAL],
    "links": [],
    "memory_bytes": 1000000000,
}


# -- call ----------------------------------------------------------------------------------------------


def pilot(path: str) -> Pilot:
    """Return the measurements that ``gpu_validation.pilot`` has written to a file.

    Parameters
    ----------
    path : str
        A file of gpu_validation.pilot, or resnet20 or transformer, recorded.

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
    command=Command(examples=("pilot.json",)),
)
