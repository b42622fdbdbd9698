"""What the engine tells whoever watches it; without a watcher nothing happens."""

from __future__ import annotations

from typing import Any

import torch

from ..records.round import Round


class Observer:
    """Sees the rounds of a run and changes nothing.  This one looks away: what a run without telemetry has."""

    watches = False  # whether rounds and movements are to be shown to it

    def record_loss(self, loss: torch.Tensor | float | None) -> None:
        """Note the loss of one local step, if the script gave one.

        Parameters
        ----------
        loss : tensor or float or None
            The loss, a number or a scalar tensor.
        """

    def start_sync(self, index: int) -> None:
        """Note that the local steps of round ``index`` are done, and its averaging begins.

        Parameters
        ----------
        index : int
            Index of the round.
        """

    def keep(self, model: torch.Tensor) -> None:
        """This rank's model, shape (d,), whose memory the averaging may use for the mean.

        Parameters
        ----------
        model : tensor
            The model.
        """

    def meet(self, mean: torch.Tensor) -> None:
        """Take the mean of all ranks' models, shape (d,).

        Parameters
        ----------
        mean : tensor
            The mean of all ranks' models, shape (d,).
        """

    def meet_movements(self, mean: torch.Tensor, own: torch.Tensor, decoded: torch.Tensor | None, members: int) -> None:
        """Take the mean of the members' decoded movements, this rank's movement and what became of it, shape (d,).

        Parameters
        ----------
        mean : tensor
            The mean of the members' decoded movements, shape (d,).
        own : tensor
            This rank's movement, shape (d,).
        decoded : tensor or None
            What became of it, shape (d,); None in two shots, where its shards' owners decode it.
        members : int
            The ranks whose models count.
        """

    def change(self) -> None:
        """Note that the model has other parameters than before, and this averaging was one of whole models."""

    def finish_round(self, done: Round, steps: int, rule: Any) -> None:
        """Note that the averaging has ended.

        Parameters
        ----------
        done : Round
            Its account.
        steps : int
            Local ones so far.
        rule
            The schedule's state.
        """

    def leave_out(self, seconds: float) -> None:
        """Leave out seconds that have just gone by and are not the run's.

        Parameters
        ----------
        seconds : float
            Length of the pause.
        """

    def close(self) -> None:
        """Note that no further round will come."""
