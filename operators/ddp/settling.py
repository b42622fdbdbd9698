"""Let the threads of a back end settle when their process group is destroyed.

DistributedDataParallel's reducer frees the last reference to its group while it holds the interpreter lock, and waits
for the threads of gloo.  Such a thread may wait for that lock, to free a tensor or a callback of its latest collective:
then the process never ends.  What is put here into PyTorch's table of groups releases the lock as it leaves the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

SETTLE_S = 0.02  # a thread needs microseconds once it has the lock


class _Settles(tuple[Any, ...]):
    """An entry of PyTorch's table of groups that sleeps when it is removed."""

    def __del__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        sleep(SETTLE_S)


def settle_when_destroyed(group: dist.ProcessGroup | None) -> None:
    """Release the interpreter lock for a moment when this group is destroyed.

    Parameters
    ----------
    group : ProcessGroup or None
        Process group; None for the default one.
    """
    table = dist.distributed_c10d._world.pg_map
    held = dist.distributed_c10d._get_default_group() if group is None else group
    entry = table.get(held)
    if entry is not None and not isinstance(entry, _Settles):
        table[held] = _Settles(entry)
