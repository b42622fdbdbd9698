"""Start under torchrun, so that a run survives the death of a rank and detects one that hangs."""

from __future__ import annotations

import datetime
import os

import torch
import torch.distributed as dist

from .orphans import end_with_parent

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def join_torchrun(*, timeout_s: float = 60.0, backend: str | None = None) -> int:
    """Initialise the default process group under torchrun; return the number of restarts of the run.

    Parameters
    ----------
    timeout_s : float, seconds, optional
        Time limit of a collective, > 0.  A collective that exceeds it has lost a rank and raises.  torchrun then ends
        all ranks and, with ``--max-restarts``, restarts them.  (The default of torch is half an hour.)
    backend : str or None, optional
        Back end; None takes NCCL if every rank of this machine has a GPU, else gloo.

    Raises
    ------
    ValueError
        For a time limit that is not positive.
    RuntimeError
        Outside torchrun.

    Notes
    -----
    Every attempt uses its own prefix, because a store that outlives an attempt still has the addresses of dead
    processes.  A rank ends with the process that has started it.  If torchrun is killed, no rank continues to write
    checkpoints.
    """
    if not timeout_s > 0:
        raise ValueError(f"timeout_s must be > 0; got timeout_s = {timeout_s}")
    missing = [name for name in VARIABLES if name not in os.environ]
    if missing:
        raise RuntimeError(f"{missing[0]} is not set: start the script by torchrun")
    end_with_parent(os.getppid())
    timeout = datetime.timedelta(seconds=timeout_s)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        size,
        is_master=rank == 0 and not served_by_torchrun,
        timeout=timeout,
    )
    dist.init_process_group(
        backend or _backend(),
        store=dist.PrefixStore(f"attempt {attempt}", store),
        rank=rank,
        world_size=size,
        timeout=timeout,
    )
    return attempt


def _backend() -> str:
    """Return NCCL, with gloo for tensors on the CPU, if every rank has a GPU; else gloo."""
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return "cpu:gloo,cuda:nccl" if dist.is_nccl_available() and torch.cuda.device_count() >= local_ranks else "gloo"
