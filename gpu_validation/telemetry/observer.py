"""What the engine tells whoever watches it; without a watcher nothing happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..deltas import Round


class Observer:
    """Sees the rounds of a run and changes nothing.  This one looks away: what a run without telemetry has."""

    def hear(self, loss: torch.Tensor | float | None) -> None:
        """The loss of one local step, if the script gave one."""

    def arrive(self, index: int) -> None:
        """The local steps of round ``index`` are done, and its averaging begins."""

    def keep(self, model: torch.Tensor) -> None:
        """This rank's model, shape (d,), whose memory the averaging may use for the mean."""

    def meet(self, mean: torch.Tensor) -> None:
        """The mean of all ranks' models, shape (d,)."""

    def meet_movements(self, mean: torch.Tensor, own: np.ndarray, decoded: np.ndarray, members: int) -> None:
        """The mean of the members' decoded movements, this rank's movement and what became of it, shape (d,)."""

    def change(self) -> None:
        """The model has other parameters than before, and this averaging was one of whole models."""

    def depart(self, done: Round, steps: int, rule: Any) -> None:
        """The averaging has ended.  done : its account.  steps : local ones so far.  rule : the schedule's state."""

    def leave_out(self, seconds: float) -> None:
        """So many seconds have just gone by that are not the run's."""

    def close(self) -> None:
        """No further round will come."""
