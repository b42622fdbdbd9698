"""What a rule for tau looks at, sent along with the models instead of after them.

By itself an averaging under an adaptive rule is followed by a second collective for three numbers of every rank.  Where
latency dominates, that one costs as much as the models' or more.  Here the numbers ride behind the model:

    exchange = Riding()
    averaging = PeriodicAveraging(model, optimizer, schedule=AdaComm(...), exchange=exchange)
    exchange.observe(averaging)

All ranks see the mean of the losses and rank 0's clock and learning rate, as before, but rounded to the model's dtype,
and the clock is read when the averaging begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .exchange import Exchange
from .rounds import Rounds


class Riding(Exchange):
    """An exchange for one averaging of whole models in float32 or float64; others take the second collective."""

    _observed: Rounds | None = None
    _arrived: list[float] | None = None

    def observe(self, averaging: Rounds) -> None:
        """Whose loss, clock and learning rate ride along; nothing does if its rule does not adapt, or measures."""
        self._observed = averaging if averaging.rhythm.adapts and averaging.sensing is None else None

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """As before, with this rank's numbers behind its vector."""
        (own,) = owns
        fits = own.dtype in (torch.float32, torch.float64) and len(members) == self.size
        if self._observed is None or not fits:
            return super().means(owns, members)
        (worker,), clock = self._observed.workers, self._observed.clock
        loss, *of_rank_0 = self._observed.rhythm.row(worker.heard(), clock.seconds(), worker.eta())
        share = 0 if self.rank else self.size  # the others add nothing to what is averaged
        row = [loss, *(share * value for value in of_rank_0)]
        (mean,) = super().means([torch.cat([own, torch.tensor(row).to(own)])], members)
        self._arrived = mean[-len(row) :].tolist()
        return [mean[: -len(row)]]

    def numbers(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """The means that have arrived with the models, once; without any, all ranks' numbers as before."""
        arrived, self._arrived = self._arrived, None
        return super().numbers(rows) if arrived is None else [arrived] * self.size
