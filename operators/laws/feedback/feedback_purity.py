"""Law: a feedback wrapper is a pure function of the state it is given."""

from __future__ import annotations

import numpy as np
import torch

from ...feedback.feedback import State
from ..kit.examples import Example
from ..kit.law import Context, Violation
from ..kit.sequences import FeedbackLaw, sequence
from ..kit.subject import Subject
from .feedback_in_step import stored


class FeedbackPurity(FeedbackLaw):
    """encode and decode change neither state nor input, repeat exactly, and refuse NaN and another dimension."""

    name = "feedback-purity"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Do every step twice and compare the states with copies."""
        wrapper, d = subject.target, example.d
        sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
        for x, key in sequence(example, context, self.name):
            before = stored(sender), stored(receiver), x.clone()
            (first, message), (second, again) = (wrapper.encode(sender, x, key=key) for _ in range(2))
            after, y = wrapper.decode(receiver, message, d=d, key=key)
            _, z = wrapper.decode(receiver, message, d=d, key=key)
            if not (_equal(before[0], sender) and _equal(before[1], receiver) and torch.equal(before[2], x)):
                raise Violation("a state or the input was changed in place")
            if not (_equal(first, second) and torch.equal(message.payload, again.payload) and torch.equal(y, z)):
                raise Violation("the same state, vector and key give different results")
            sender, receiver = first, after
        for wrong, what in ((torch.full((d,), np.nan), "NaN"), (torch.ones(d + 1), "another dimension")):
            try:
                wrapper.encode(sender, wrong, key=context.key(self.name))
            except ValueError:
                continue
            raise Violation(f"{what} was accepted; expected ValueError")


def _equal(a: State, b: State) -> bool:
    return set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)
