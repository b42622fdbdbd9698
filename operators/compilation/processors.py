"""For which processors code was compiled, and which of it runs on this one."""

from __future__ import annotations

import hashlib
from functools import lru_cache

LEVELS = {  # of x86-64, best first, with what a processor must have beyond the level below
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}


def features_of(level: str) -> str:
    """Return the features of a level as LLVM takes them.

    Parameters
    ----------
    level : str
        One of ``LEVELS``.
    """
    names = list(LEVELS)
    return ",".join(f"+{name}" for lower in names[names.index(level) :] for name in LEVELS[lower])


@lru_cache(maxsize=8)
def processors(triple: str, name: str, features: str) -> tuple[str, ...]:
    """Return the names under which code for this processor is kept: its own first, then the levels that it has.

    Parameters
    ----------
    triple : str
        Machine and system, as LLVM names them.
    name : str
        Processor, as LLVM names it.
    features : str
        What it has and what not, as in "+avx2,-avx512f".
    """
    if name in LEVELS:  # chosen by NUMBA_CPU_NAME, for code that goes to other machines
        return (name,)
    digest = hashlib.sha256(f"{triple} {features}".encode()).hexdigest()[:8]
    present = set(features.split(",")) if triple.startswith("x86_64") else set()
    lower = [level for level in LEVELS if set(features_of(level).split(",")) <= present]
    return (f"{name}-{digest}", *lower)
