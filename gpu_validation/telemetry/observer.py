"""Interface between the engine and telemetry; without telemetry its methods do nothing."""

from __future__ import annotations

from typing import Any

import torch

from ..records.round import Round


class Observer:
    """Observes the rounds of a run without changing it.  This class ignores them: a run without telemetry uses it."""

    watches = False  # whether it needs rounds and movements

    def record_loss(self, loss: torch.Tensor | float | None) -> None:
        """Record the loss of one local step, if the script passed one.

        Parameters
        ----------
        loss : tensor or float or None
            Loss, a number or a scalar tensor.
        """

    def start_sync(self, index: int) -> None:
        """Record the end of the local steps of round ``index`` and the start of its averaging.

        Parameters
        ----------
        index : int
            Index of the round, from 0.
        """

    def keep(self, model: torch.Tensor) -> None:
        """Record this rank's model before the averaging, which may overwrite its memory.

        Parameters
        ----------
        model : tensor
            The model, shape (d,).
        """

    def record_mean(self, mean: torch.Tensor) -> None:
        """Record the mean of all ranks' models.

        Parameters
        ----------
        mean : tensor
            The mean, shape (d,).
        """

    def record_movements(
        self, mean: torch.Tensor, own: torch.Tensor, decoded: torch.Tensor | None, members: int
    ) -> None:
        """Record the mean of the decoded movements, and this rank's movement before and after compression.

        Parameters
        ----------
        mean : tensor
            Mean of the members' decoded movements, shape (d,).
        own : tensor
            This rank's movement, shape (d,).
        decoded : tensor or None
            This rank's decoded movement, shape (d,); None in two shots, where the owners of shards decode it.
        members : int
            Number of ranks whose models count.
        """

    def change(self) -> None:
        """Record that the model has other parameters than before, so that this averaging was one of whole models."""

    def finish_round(self, done: Round, steps: int, rule: Any) -> None:
        """Record the end of the averaging.

        Parameters
        ----------
        done : Round
            Record of the round.
        steps : int
            Local steps so far.
        rule
            State of the schedule.
        """

    def leave_out(self, seconds: float) -> None:
        """Exclude the last seconds from the time of the run.

        Parameters
        ----------
        seconds : float, seconds
            Length of the pause.
        """

    def close(self) -> None:
        """Record that no further round follows."""
