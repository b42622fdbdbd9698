"""Problems of the ``prediction`` studies that no other study trains: a recurrent network and a factorisation."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from operators import Key
from operators.random import normal, uniform

from ..workloads import Characters
from ..workloads.data.dataset import Dataset, Samples, Source
from ..workloads.network import Network


class Gru(torch.nn.Module):
    """Map letters (n, window) to logits (n, letters, window) of the next letter by one gated recurrent unit."""

    def __init__(self, *, letters: int, width: int) -> None:
        super().__init__()
        self.letters, self.width = letters, width
        self.of_letter = torch.nn.Linear(letters, 3 * width)
        self.of_state = torch.nn.Linear(width, 3 * width)
        self.logits = torch.nn.Linear(width, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next letter at every place."""
        weight = self.logits.weight
        one_hot = (letters.unsqueeze(-1) == torch.arange(self.letters, device=weight.device)).to(weight.dtype)
        state, states = torch.zeros(len(letters), self.width, dtype=weight.dtype, device=weight.device), []
        for given in self.of_letter(one_hot).unbind(dim=1):
            reset, update, new = given.split(self.width, dim=1)
            reset_state, update_state, new_state = self.of_state(state).split(self.width, dim=1)
            kept = torch.sigmoid(update + update_state)
            candidate = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
            state = kept * state + (1 - kept) * candidate
            states.append(state)
        result: torch.Tensor = self.logits(torch.stack(states, dim=1)).transpose(1, 2)
        return result


@dataclass(frozen=True)
class Recurrent(Characters):
    """The character-level language model with a gated recurrent unit in place of the transformer."""

    name = "recurrent"

    def network(self) -> torch.nn.Module:
        """Return the recurrent unit."""
        return Gru(letters=self.source.letters, width=self.width)


@dataclass(frozen=True)
class Ratings(Source):
    """Ratings of items by users: a product of factors with the rank 3, and normal noise.

    Parameters
    ----------
    users, items : int, optional
        Numbers of rows and columns.
    samples : int, optional
        Number of ratings, of random pairs.
    noise : float, optional
        Standard deviation of the noise; that of the product is about 1.
    seed : int, optional
        Seed of factors, pairs and noise.
    """

    users: int = 40
    items: int = 30
    samples: int = 1500
    noise: float = 0.3
    seed: int = 0

    def read(self) -> Dataset:
        """Return pairs (user, item) and their ratings."""
        keys = [Key(self.seed, rank=None).fold_in(part) for part in range(5)]
        rows, columns = normal(keys[0], self.users * 3), normal(keys[1], self.items * 3)
        product = rows.reshape(self.users, 3) @ columns.reshape(self.items, 3).T / 3**0.5
        i = (uniform(keys[2], self.samples) * self.users).astype(int)
        j = (uniform(keys[3], self.samples) * self.items).astype(int)
        ratings = torch.from_numpy(product[i, j] + self.noise * normal(keys[4], self.samples))
        inputs = torch.stack([torch.from_numpy(each) for each in (i, j)], dim=1).double()
        train, none = Samples(inputs, ratings), Samples(inputs[:0], ratings[:0])
        return Dataset(f"{self.samples} ratings", train, none, classes=0, synthetic=True)


class Factors(torch.nn.Module):
    """Map pairs (n, 2) of user and item to the product of their factors, shape (n,)."""

    def __init__(self, *, users: int, items: int, rank: int) -> None:
        super().__init__()
        self.users, self.items = (torch.nn.Linear(rank, n, bias=False) for n in (users, items))

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        """Return the predicted ratings."""
        i, j = pairs.long().unbind(dim=1)
        return (self.users.weight[i] * self.items.weight[j]).sum(dim=1)


@dataclass(frozen=True)
class Factorisation(Network):
    """Mean squared error of factors, as of a recommender.

    Parameters
    ----------
    source : Ratings, optional
        Source of the ratings.
    rank : int, optional
        Factors of each user and item.
    """

    source: Ratings = Ratings()
    rank: int = 4

    name = "factorisation"

    def network(self) -> torch.nn.Module:
        """Return the factors."""
        return Factors(users=self.source.users, items=self.source.items, rank=self.rank)

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the squared error of every rating."""
        return (outputs - targets.to(outputs.dtype)).square()
