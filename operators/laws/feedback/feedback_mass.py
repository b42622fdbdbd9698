"""Law: what is not sent now is kept for later: decoded vectors and residual add up to the inputs."""

from __future__ import annotations

import torch

from ..kit.examples import Example
from ..kit.law import Context, NotApplicable, Violation
from ..kit.sequences import FeedbackLaw, sequence
from ..kit.subject import Subject

ROUNDING = 2.0**-21  # binary32 additions of one step


class FeedbackMass(FeedbackLaw):
    """sum of decoded + residual = sum of inputs, after every message, where the sender's state has a "residual".

    A residual of the value before coding, not of the decoded one, breaks this at the first message.
    """

    name = "feedback-mass"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Follow the sums in float64."""
        wrapper, d = subject.target, example.d
        sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
        if "residual" not in sender:
            raise NotApplicable('the sender keeps no "residual"')
        given, sent, largest = torch.zeros(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64), 0.0
        for t, (x, key) in enumerate(sequence(example, context, self.name)):
            sender, message = wrapper.encode(sender, x, key=key)
            receiver, y = wrapper.decode(receiver, message, d=d, key=key)
            given, sent = given + x, sent + y
            owed = sender["residual"].double()
            largest = max(largest, float(torch.cat([x.double().abs(), owed.abs(), y.double().abs()]).max()))
            lost = float((given - sent - owed).abs().max())
            if lost > ROUNDING * (t + 1) * largest:
                raise Violation(f"after message {t} {lost:.6g} of a coordinate is neither sent nor kept")
