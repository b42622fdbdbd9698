"""Global top-k: sparse messages added and cut to k along a binary tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from ..compressors.top_k import TopK
from ..inputs import rows_of
from ..key import Key
from ..message import Message
from ..operator import Operator, require_memory
from .aggregate import Aggregate, check, server_key


@dataclass(frozen=True)
class GlobalTopK(Aggregate):
    """Send the top k of each worker, then add and cut pairs to k along a fixed binary tree.

    Parameters
    ----------
    fraction : float or None, optional
        Share of the coordinates that are kept, as in ``TopK``.
    k : int or None, optional
        Number of coordinates that are kept; exactly one of the two is given.
    rule : {"conserving", "published"}, optional
        Treatment of entries that do not reach the root. "published" (Shi et al. 2019): a worker keeps what it did
        not select, and takes back the entries it selected outside the root's support.  An entry that an inner node
        dropped but whose position is in the root's support is lost. "conserving": a worker keeps what it did not
        select, and the node that drops an entry (the lower-numbered worker of the pair) adds it to its own residual:
        residuals and result always add up to the inputs.

    Notes
    -----
    Round r of the tree pairs workers i and i + 2^r for i divisible by 2^(r+1); a worker without partner waits.  The
    result estimates the ``*sum*``.  It has no constant: (10, 1) and (-10, 1) with k = 1 give 0 for (0, 2).
    """

    fraction: float | None = None
    k: int | None = None
    rule: Literal["conserving", "published"] = "conserving"

    name = "global_topk"
    sources = ("shi2019gtopk",)
    topology = "tree"

    def __post_init__(self) -> None:
        TopK(self.fraction, self.k)
        if self.rule not in ("conserving", "published"):
            raise ValueError(f'rule must be "conserving" or "published"; got {self.rule!r}')

    @property
    def conserves_mass(self) -> bool:
        """Whether residuals and result add up to the inputs."""
        return self.rule == "conserving"

    @property
    def uplink(self) -> Operator:
        """Top-k."""
        return TopK(self.fraction, self.k)

    @property
    def downlink(self) -> Operator:
        """Top-k, which is exact for a vector with at most k non-zeros."""
        return TopK(self.fraction, self.k)

    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Return the message of the root."""
        return self._climb(messages, d, keys)[0]

    def exchange(
        self, residuals: Sequence[torch.Tensor], x: Sequence[torch.Tensor], *, keys: Sequence[Key]
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Run one round with memory; return (new residuals, result), float32 tensors of shape (d,).

        Worker i adds its residual to x[i], selects and sends; ``rule`` says what it keeps.

        Parameters
        ----------
        residuals : sequence of tensor
            Residual per worker, shape (n, d).
        x : sequence of tensor
            One vector per worker, shape (n, d).
        keys : sequence of Key
            One stream per worker.
        """
        corrected = [r + v for r, v in zip(rows_of(residuals), rows_of(x), strict=True)]
        d = corrected[0].numel()
        messages = [self.uplink.encode(w, key=k) for w, k in zip(corrected, keys, strict=True)]
        sent = [self.uplink.decode(m, d=d) for m in messages]
        root, dropped = self._climb(messages, d, keys)
        result = self.downlink.decode(root, d=d)
        if self.rule == "published":
            returned = [torch.where(result == 0, s, 0) for s in sent]
        else:
            returned = [torch.from_numpy(part) for part in dropped]
        return [w - s + b for w, s, b in zip(corrected, sent, returned, strict=True)], result

    def _climb(self, messages: Sequence[Message], d: int, keys: Sequence[Key]) -> tuple[Message, list[np.ndarray]]:
        """Return the message of the root and the vectors that each worker dropped as a node, float32."""
        check(messages, keys)
        require_memory(d)
        nodes, dropped = list(messages), [np.zeros(d, np.float32) for _ in messages]
        step = 1
        while step < len(nodes):
            for i in range(0, len(nodes) - step, 2 * step):
                left, right = (self.uplink.decode(nodes[j], d=d).numpy() for j in (i, i + step))
                both = left + right
                nodes[i] = self.uplink.encode(torch.from_numpy(both), key=server_key(keys))
                dropped[i] += both - self.uplink.decode(nodes[i], d=d).numpy()
            step *= 2
        return nodes[0], dropped

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(fraction=0.01), cls(fraction=0.1, rule="published")
