"""A causal transformer with one block, small enough to train in seconds on a CPU."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.functional import layer_norm


class Transformer(nn.Module):
    """Map letters (n, window) to logits (n, letters, window) of the next letter at every place.

    It has one attention head, a tanh layer of twice the width, and layer norms without parameters.

    Parameters
    ----------
    width : int
        Width of the hidden vectors.
    """

    def __init__(self, *, letters: int, window: int, width: int) -> None:
        super().__init__()
        self.letters, self.width = letters, width
        self.letter = nn.Linear(letters, width, bias=False)
        self.place = nn.Linear(window, width, bias=False)
        self.attend = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.logits = nn.Linear(width, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next letter at every place."""
        weight, window = self.letter.weight, letters.shape[-1]
        one_hot = (letters.unsqueeze(-1) == torch.arange(self.letters, device=weight.device)).to(weight.dtype)
        x = self.letter(one_hot) + self.place.weight.T
        query, key, value = self.attend(layer_norm(x, (self.width,))).split(self.width, dim=-1)
        later = torch.ones(window, window, dtype=torch.bool, device=weight.device).triu(1)
        scores = (query @ key.transpose(-2, -1) / math.sqrt(self.width)).masked_fill(later, -math.inf)
        x = x + self.mix(scores.softmax(dim=-1) @ value)
        x = x + self.narrow(torch.tanh(self.wide(layer_norm(x, (self.width,)))))
        result: torch.Tensor = self.logits(x).transpose(-2, -1)
        return result
