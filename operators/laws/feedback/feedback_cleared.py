"""Law: what was sent exactly is paid off: no later message returns to it."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..kit.examples import Example
from ..kit.law import Context, NotApplicable, Violation
from ..kit.sequences import FeedbackLaw
from ..kit.subject import Subject

SILENT = 4  # messages with zero input after the first


class FeedbackCleared(FeedbackLaw):
    """After one vector and then zeros, coordinates that the first message sent exactly are not sent again.

    Catches momentum or residual that is not cleared where it was sent.  Does not judge wrappers whose messages
    are not exact, or whose receiver accumulates.
    """

    name = "feedback-cleared"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Send the example once, then nothing."""
        wrapper, d = subject.target, example.d
        key = context.key(f"{self.name} {example.name}")
        x = torch.from_numpy(example.x)
        sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
        if any(tensor.numel() == d and tensor.is_floating_point() for tensor in receiver.values()):
            raise NotApplicable("the receiver accumulates")
        sender, message = wrapper.encode(sender, x, key=key)
        receiver, y = wrapper.decode(receiver, message, d=d, key=key)
        sent = y != 0
        if not torch.equal(y[sent], x[sent]):
            raise NotApplicable("its messages are not exact")
        for t in range(1, SILENT + 1):
            later = replace(key, step=key.step + t)
            sender, message = wrapper.encode(sender, torch.zeros(d), key=later)
            receiver, y = wrapper.decode(receiver, message, d=d, key=later)
            if y[sent].any():
                i = int(torch.nonzero(sent & (y != 0))[0])
                raise Violation(f"coordinate {i} was sent exactly; message {t} after it sends {float(y[i]):.6g} more")
