"""What a hook has sent: steps, bits and bytes."""

from __future__ import annotations

from collections.abc import Sequence

from .gather import Gather, predicted_payload_bytes
from .scatter import Scatter, predicted_scatter_bytes


class Counters:
    """Counts what the collectives of a hook send; hooks derive from it.

    Attributes
    ----------
    steps : int
        Backward passes with communication.
    codec_bits : int, bits
        Lengths of this rank's messages.
    payload_bytes : int, bytes
        What this rank has handed to the transport, headers and receivers counted.
    predicted_bytes : int, bytes
        What all ranks together should have handed over, from the lengths of the messages alone.
    """

    def __init__(self) -> None:
        self.steps = self.codec_bits = self.payload_bytes = self.predicted_bytes = 0

    def count_gather(self, gather: Gather, *, coded: bool = True, carried_bits: int = 0) -> None:
        """Add what a gather has sent.

        Parameters
        ----------
        gather : Gather
            Once sent.
        coded : bool, optional
            Whether its message is an operator's, and counts as codec bits.
        carried_bits : int, bits, optional
            What does not count of them.
        """
        self.codec_bits += gather.lengths[gather.rank] - carried_bits if coded else 0
        self.payload_bytes += gather.payload_bytes
        self.predicted_bytes += predicted_payload_bytes(gather.lengths, gather.size)

    def count_scatter(self, scatter: Scatter, *, coded: bool = True, carried_bits: int = 0) -> None:
        """Add what a scatter has sent.

        Parameters
        ----------
        scatter : Scatter
            Once sent.
        coded : bool, optional
            Whether its messages are an operator's, and count as codec bits.
        carried_bits : int, bits, optional
            What does not count of them.
        """
        self.codec_bits += scatter.lengths[scatter.rank] - carried_bits if coded else 0
        self.payload_bytes += scatter.payload_bytes
        self.predicted_bytes += predicted_scatter_bytes(scatter.sent_bytes, scatter.size)

    def count_refused(self, attempt: Gather | Scatter) -> None:
        """Add what an attempt has sent that was ``Undeclared``; nothing was taken from it.

        Parameters
        ----------
        attempt : Gather or Scatter
            The refused exchange.
        """
        self.payload_bytes += attempt.payload_bytes
        self.predicted_bytes += attempt.refused_bytes

    @property
    def counted(self) -> list[int]:
        """All four, to be saved and set again."""
        return [self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes]

    @counted.setter
    def counted(self, numbers: Sequence[int]) -> None:
        self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes = numbers
