"""Law: the two ends stay in step, each from its own state, also after both were stored and restored."""

from __future__ import annotations

import io

import numpy as np
import torch

from ...feedback.feedback import State
from ..kit.examples import Example
from ..kit.law import Context, Violation
from ..kit.sequences import LENGTH, FeedbackLaw, sequence
from ..kit.subject import Subject


class FeedbackInStep(FeedbackLaw):
    """Tensors that both states hold under one name are equal bit for bit; restored states go on alike."""

    name = "feedback-in-step"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Run both ends, and a second pair from stored states from the middle on."""
        wrapper, d = subject.target, example.d
        sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
        restored: tuple[State, State] | None = None
        for t, (x, key) in enumerate(sequence(example, context, self.name)):
            if t == LENGTH // 2 - 1:
                restored = stored(sender), stored(receiver)
            sender, message = wrapper.encode(sender, x, key=key)
            receiver, y = wrapper.decode(receiver, message, d=d, key=key)
            if y.shape != (d,) or y.dtype != torch.float32 or not np.isfinite(y.numpy()).all():
                raise Violation(f"message {t} decodes to {y.dtype} {tuple(y.shape)}, or to a non-finite entry")
            for name in set(sender) & set(receiver):
                if not torch.equal(sender[name], receiver[name]):
                    raise Violation(f"after message {t} the two ends hold different {name!r}")
            if restored is not None:
                left, again = wrapper.encode(restored[0], x, key=key)
                right, z = wrapper.decode(restored[1], again, d=d, key=key)
                restored = left, right
                if not torch.equal(y, z):
                    raise Violation(f"message {t} from restored states differs from the original")


def stored(state: State) -> State:
    """Return the state after torch.save and torch.load(weights_only=True)."""
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)
