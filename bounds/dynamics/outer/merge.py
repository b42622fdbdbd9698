"""What a merge rule says: the state between rounds, and one round of tau local steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from .forms import AffineRound, Forms
from .optimizer import OuterStep
from .workers import Workers

RULES = ("blocking", "overwrite", "delayed", "eager", "corrected")


@dataclass(frozen=True)
class Merge:
    """A rule by which the workers' mean and the steps done while it travels become one model.

    The state between rounds is a number of models, which all begin at the start, and of buffers, which begin at 0.

    Parameters
    ----------
    name : str
        Word of the option ``overlap``.
    models : callable
        Their count, from the number of workers that differ.
    buffers : callable
        The same for the buffers.
    global_models : callable
        How many of the first models have the global model as their mean.
    round : callable
        From forms, outer step, tau, steps in flight and number of workers to the forms of the next state.
    draws : int, optional
        Groups of local steps in a round, each with noise of its own.
    """

    name: str
    models: Callable[[int], int]
    buffers: Callable[[int], int]
    global_models: Callable[[int], int]
    round: Callable[[Forms, OuterStep, int, int, int], AffineRound]
    draws: int = 1

    def of(self, workers: Workers, *, outer: OuterStep, eta: float, tau: int, delay: int = 0) -> AffineRound:
        """Return one round.

        Parameters
        ----------
        workers : Workers
            Whose quadratics are descended.
        outer : OuterStep
            The global step.
        eta : float
            Inner learning rate, > 0.
        tau : int
            Local steps of a round, >= 1.
        delay : int, optional
            Local steps done while a message travels, 0 to tau; ``blocking``, ``delayed`` and ``eager`` do not use it:
            nothing travels while the first works, and a message of the others has the whole next round.

        Raises
        ------
        ValueError
            For a rate or steps outside these ranges.
        """
        return self.of_rows(workers.reduced(), workers.m, outer=outer, eta=eta, tau=tau, delay=delay)

    def of_rows(self, rows: Workers, m: int, *, outer: OuterStep, eta: float, tau: int, delay: int = 0) -> AffineRound:
        """Return one round of m workers that differ, or of one that stands for all.

        Parameters
        ----------
        rows : Workers
            All m, or one with 1/m of the noise of each.
        m : int
            Number of workers.
        outer : OuterStep
            The global step.
        eta : float
            Inner learning rate, > 0.
        tau : int
            Local steps of a round, >= 1.
        delay : int, optional
            Local steps done while a message travels, 0 to tau.

        Raises
        ------
        ValueError
            For a rate or steps outside these ranges.
        """
        if not (eta > 0 and tau >= 1 and 0 <= delay <= tau):
            raise ValueError(
                f"eta must be > 0, tau >= 1 and 0 <= delay <= tau; got eta = {eta}, tau = {tau}, delay = {delay}"
            )
        states = self.models(rows.m) + self.buffers(rows.m)
        return self.round(Forms(rows, eta, states, self.draws), outer, tau, delay, m)


@cache
def merge_of(name: str) -> Merge:
    """Return the merge rule of a name.

    Parameters
    ----------
    name : str
        Word of the option ``overlap``.

    Raises
    ------
    ValueError
        For a name that is none of ``blocking``, ``overwrite``, ``delayed``, ``eager`` and ``corrected``.
    """
    if name not in RULES:
        raise ValueError(f"a merge rule is one of {', '.join(RULES)}; got {name!r}")
    rule: Merge = import_module(f".{name}", __package__).MERGE
    return rule
