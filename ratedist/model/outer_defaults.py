"""Outer steps that libraries of the DiLoCo family start from, as they are remembered; a version may differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OuterDefault:
    """One library's choice.

    Parameters
    ----------
    library : str
        Whose.
    lr : float
        Outer learning rate.
    momentum : float
        Nesterov momentum.
    in_flight : str or None
        Merge rule for averages that arrive late; None if all wait, "" if it is none of the five that are known.
    """

    library: str
    lr: float
    momentum: float
    in_flight: str | None

    def merge(self, delay: int) -> str:
        """Return the merge rule that it uses for averages that arrive ``delay`` steps late."""
        return "blocking" if delay == 0 or self.in_flight is None else self.in_flight


DEFAULTS = (
    OuterDefault("torchft LocalSGD", 1.0, 0.0, None),
    OuterDefault("torchft DiLoCo (its example)", 0.7, 0.9, "overwrite"),
    OuterDefault("OpenDiLoCo", 0.7, 0.9, None),
    OuterDefault("MaxText DiLoCo", 0.3, 0.9, "overwrite"),
    OuterDefault("Streaming DiLoCo (the paper)", 0.4, 0.9, ""),
)
