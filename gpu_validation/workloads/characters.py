"""A character-level language model on Markov text, whose least possible loss is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .data import MarkovText
from .models.transformer import Transformer
from .network import Network


@dataclass(frozen=True)
class Characters(Network):
    """Mean cross-entropy of the next letter, in nats; windows of a text with the known floor ``source.floor()``.

    Parameters
    ----------
    source : MarkovText, optional
        Where the data come from.
    batch : int or None, optional
        Samples of a mini-batch.
    eta : float, optional
        Learning rate.
    width : int, optional
        Of the transformer's vectors.  The accuracy is the share of held-out letters that are predicted.
    """

    source: MarkovText = MarkovText()  # noqa: RUF009  frozen
    batch: int | None = 4
    eta: float = 0.5
    width: int = 12

    name = "characters"

    def network(self) -> torch.nn.Module:
        """Return one block."""
        return Transformer(letters=self.source.letters, window=self.source.window, width=self.width)

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true letters, the mean over a window.

        Parameters
        ----------
        outputs : tensor
            What the model says of the samples.
        targets : tensor
            Next letters, one row a window.
        """
        return super().losses(outputs, targets).mean(dim=1)

    def accuracy(self, model: torch.nn.Module) -> float | None:
        """Return the share of the letters of the held-out windows that the model finds.

        Parameters
        ----------
        model : Module
            As ``model()`` makes it.
        """
        right = super().accuracy(model)
        return None if right is None else right / self.source.window
