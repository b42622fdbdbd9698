"""Law: the message does not depend on where the vector lies."""

from __future__ import annotations

import torch

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class Devices(Law):
    """A CUDA tensor gives the message of its CPU copy, and the call returns on the input's device."""

    name = "devices"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return needs a CUDA device."""
        if not torch.cuda.is_available():
            return "no CUDA device is present"
        return super().applies(subject)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Encode on both."""
        key = context.key(f"{self.name} {example.name}")
        x = torch.from_numpy(example.x.copy())
        on_cpu, on_gpu = subject.target.encode(x, key=key), subject.target.encode(x.cuda(), key=key)
        if on_cpu.bits != on_gpu.bits or not torch.equal(on_cpu.payload.cpu(), on_gpu.payload.cpu()):
            raise Violation("the CUDA tensor gives another message than its CPU copy")
        if subject.target(x.cuda(), key=key).device.type != "cuda":
            raise Violation("a CUDA tensor came back on another device")
