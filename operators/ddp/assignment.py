"""The methods of the parameters of a model, which follow the decoded mean by an allocation of bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from ..allocation import COARSE, Members, WaterFilling, allocate, declared_bits
from ..feedback.error_feedback import ErrorFeedback
from ..feedback.feedback import Feedback
from ..feedback.memoryless import Memoryless
from ..operator import Operator


class Assignment:
    """Assign an operator to each parameter, equal on all ranks, from the means that all of them decode.

    Parameters
    ----------
    method : Feedback
        A member of the family in its method: an unbiased one without memory, or a contractive one with error feedback.
    rule : WaterFilling
        The budget.
    pieces : mapping of str to sequence of int
        Entries of the messages in which a rank sends a parameter, by name.
    m : int
        Number of ranks whose messages are averaged.

    Raises
    ------
    ValueError
        For another method, or too few bits.

    Notes
    -----
    The mean square of a decoded entry is that of the gradient plus that of the error.  If all ranks have the same
    gradient, the quotient by 1 + omega/m is without bias; for contractive operators there is no correction.
    """

    def __init__(self, method: Feedback, rule: WaterFilling, pieces: Mapping[str, Sequence[int]], m: int) -> None:
        self._method, self._rule, self._m = method, rule, m
        self._pieces = {name: [size for size in sizes if size] for name, sizes in pieces.items() if sum(sizes)}
        self._members = Members(method.operator, COARSE)
        if type(method) is not (Memoryless if self._members.is_unbiased else ErrorFeedback):
            needed = "no feedback" if self._members.is_unbiased else "feedback=ErrorFeedback"
            raise ValueError(f"an allocation of {method.operator.name} needs {needed}; got {method}: change feedback")
        self._declared: dict[tuple[Operator, int], float] = {}
        self._squares: dict[str, torch.Tensor] = {}  # of the decoded means since the last allocation, summed
        self._steps, self._allocated = 0, 0
        self._methods = self._assigned(dict.fromkeys(self._pieces, 1.0))

    def method_of(self, name: str) -> Feedback:
        """Return the method of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.
        """
        return self._methods.get(name, self._method)

    def observe(self, names: Sequence[str], means: Sequence[torch.Tensor]) -> None:
        """Measure the decoded means of a bucket.

        Parameters
        ----------
        names : sequence of str
            Names of the bucket's parameters.
        means : sequence of tensor
            The mean of each, flat.
        """
        for name, mean in zip(names, means, strict=True):
            square = mean.double().square().sum()
            self._squares[name] = self._squares[name] + square if name in self._squares else square

    def step(self) -> None:
        """Assign the bits again if it is time; all ranks call it between two steps."""
        self._steps += 1
        if self._steps != 1 and self._steps - self._allocated < self._rule.every:
            return
        averaged = self._steps - self._allocated
        entries = {name: sum(sizes) for name, sizes in self._pieces.items()}
        squares = {name: float(self._squares.get(name, 0.0)) / (averaged * d) for name, d in entries.items()}
        self._methods = self._assigned({name: square / self._inflation(name) for name, square in squares.items()})
        self._squares, self._allocated = {}, self._steps

    def _inflation(self, name: str) -> float:
        claim: Any = self._methods[name].operator.claim(sum(self._pieces[name]))
        return 1 + claim.omega / self._m if self._members.is_unbiased else 1.0

    def _assigned(self, variances: Mapping[str, float]) -> dict[str, Feedback]:
        sizes = [sum(self._pieces[name]) for name in variances]

        def spent(operators: Sequence[Operator]) -> float:
            pairs = zip(operators, self._pieces.values(), strict=True)
            return sum(self._bits(operator, d) for operator, pieces in pairs for d in pieces)

        budget = self._rule.bits * sum(sizes)
        operators = allocate(self._members, list(variances.values()), sizes, budget, spent)
        return {
            name: cast(Feedback, replace(cast(Any, self._method), operator=operator))
            for name, operator in zip(variances, operators, strict=True)
        }

    def _bits(self, operator: Operator, d: int) -> float:
        if (operator, d) not in self._declared:
            size = operator.bits(d).without(operator.carried_bits(d))
            self._declared[operator, d] = declared_bits(size, d)
        return self._declared[operator, d]

    def kept(self) -> tuple[Any, ...]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return dict(self._squares), self._steps, self._allocated, self._methods

    def put_back(self, kept: tuple[Any, ...]) -> None:
        """Remember what ``kept`` returned.

        Parameters
        ----------
        kept : tuple
            Its result.
        """
        squares, self._steps, self._allocated, self._methods = kept
        self._squares = dict(squares)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors and plain values."""
        field = self._field
        return {
            "squares": {name: float(square) for name, square in self._squares.items()},
            "steps": [self._steps, self._allocated],
            "values": {name: getattr(method.operator, field) for name, method in self._methods.items()},
        }

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was called.

        Parameters
        ----------
        state : mapping
            Its result.

        Raises
        ------
        ValueError
            For the state of other parameters.
        """
        if set(state["values"]) != set(self._methods):
            raise ValueError(f"the saved allocation must be of {sorted(self._methods)}; got {sorted(state['values'])}")
        operator = cast(Any, self._method.operator)
        self._methods = {
            name: cast(Feedback, replace(cast(Any, self._method), operator=replace(operator, **{self._field: value})))
            for name, value in state["values"].items()
        }
        self._squares = {name: torch.tensor(value, dtype=torch.float64) for name, value in state["squares"].items()}
        self._steps, self._allocated = state["steps"]

    @property
    def _field(self) -> str:
        rate = type(self._method.operator).rate
        assert rate is not None
        return rate.field
