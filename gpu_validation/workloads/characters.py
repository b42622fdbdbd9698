"""A character-level language model on Markov text, whose smallest possible loss is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .data import MarkovText
from .models.transformer import Transformer
from .network import Network


@dataclass(frozen=True)
class Characters(Network):
    """Mean cross-entropy of the next letter, in nats, on a text with the known minimum ``source.floor()``.

    The accuracy is the share of held-out letters that are predicted.

    Parameters
    ----------
    source : MarkovText, optional
        Source of the text.
    batch : int or None, optional
        Samples per mini-batch; None takes all.
    eta : float, optional
        Learning rate.
    width : int, optional
        Width of the transformer.
    """

    source: MarkovText = MarkovText()  # noqa: RUF009  frozen
    batch: int | None = 4
    eta: float = 0.5
    width: int = 12

    name = "characters"

    def network(self) -> torch.nn.Module:
        """Return a transformer with one block."""
        return Transformer(letters=self.source.letters, window=self.source.window, width=self.width)

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true letters, averaged over a window.

        Parameters
        ----------
        outputs : tensor
            Outputs of the model.
        targets : tensor
            Next letters, one row per window.
        """
        return super().losses(outputs, targets).mean(dim=1)

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of the held-out windows' letters that the model predicts.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        right = super().accuracy(model)
        return None if right is None else right / self.source.window
