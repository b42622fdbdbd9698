"""Law: the input vector and the message are left as they were."""

from __future__ import annotations

import torch

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class NoMutation(Law):
    """Neither encode nor decode nor a plain function writes to what it is given."""

    name = "no-mutation"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare with copies, bit by bit."""
        key = context.key(f"{self.name} {example.name}")
        kinds = ("numpy", "torch") if subject.is_operator else (subject.array,)
        for kind in kinds:
            array = example.x.copy()
            given = torch.from_numpy(array) if kind == "torch" else array
            before = array.tobytes()
            if subject.is_codec:
                message = subject.target.encode(given, **({"key": key} if subject.takes_key else {}))
                payload = message.payload.clone() if subject.has_messages else None
                subject.decode(message, example.d, key)
                if payload is not None and not torch.equal(payload, message.payload):
                    raise Violation("decode changed the message")
            else:
                subject.target(given)
            if array.tobytes() != before:
                raise Violation(f"the input ({kind}) was changed")
