"""Laws of wrappers with memory: in step, nothing lost, pure; up to LONG messages, restored in the middle."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased

from ..feedback.feedback import State
from ..key import Key
from .kit.examples import Example, drawn
from .kit.law import Context, Law, NotApplicable, Violation, fail_if, law, second_moment
from .kit.subject import Subject

SHORT, LONG = 8, 300  # messages of a sequence
LONG_AT = 9  # the most coordinates of the vectors that are followed for LONG messages
SILENT = 4  # messages with zero input after the first
ROUNDING = 2.0**-21  # binary32 additions of one step
DOUBT = 1e8  # over the mean square of an error: exceeded with probability below 1e-8


def _first_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return a Gaussian, a Cauchy and a sparse vector at every size: the first ones of sequences."""
    rng = context.rng(name)
    for d in context.budget.sizes:
        yield from drawn(d, 3, rng)


def is_long(example: Example) -> bool:
    """Return whether a sequence that begins with this vector has LONG messages."""
    return 1 < example.d <= LONG_AT and example.name.startswith("Gaussian")


def sequence(example: Example, context: Context, label: str) -> list[tuple[torch.Tensor, Key]]:
    """Return vectors and keys: the example, noisy copies of it, and one zero vector."""
    rng = context.rng(f"{label} {example.name} sequence")
    key = context.key(f"{label} {example.name}")
    size, length = float(np.abs(example.x).mean()), LONG if is_long(example) else SHORT
    vectors = [example.x + size * rng.standard_normal(example.d) * (t > 0) for t in range(length)]
    vectors[SHORT // 2] = np.zeros(example.d)
    return [
        (torch.from_numpy(np.asarray(x, np.float32)), replace(key, step=key.step + t)) for t, x in enumerate(vectors)
    ]


def stored(state: State) -> State:
    """Return the state after torch.save and torch.load(weights_only=True)."""
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


@law("feedback-in-step", needs="feedback", vectors=_first_vectors)
def feedback_in_step(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Tensors that both states hold under one name are equal bit for bit; restored states go on alike."""
    wrapper, d = subject.target, example.d
    sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
    restored: tuple[State, State] | None = None
    messages = sequence(example, context, "feedback-in-step")
    length = len(messages)
    for t, (x, key) in enumerate(messages):
        if t == length // 2 - 1:
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
            fail_if(not torch.equal(y, z), f"message {t} from restored states differs from the original")


@law("feedback-mass", needs="feedback", vectors=_first_vectors)
def feedback_mass(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """sum of decoded + residual = sum of inputs, after every message, where the sender's state has a "residual".

    A residual of the value before coding, not of the decoded one, breaks this at the first message.
    """
    wrapper, d = subject.target, example.d
    sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
    if "residual" not in sender:
        raise NotApplicable('the sender keeps no "residual"')
    given, sent, largest = torch.zeros(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64), 0.0
    for t, (x, key) in enumerate(sequence(example, context, "feedback-mass")):
        sender, message = wrapper.encode(sender, x, key=key)
        receiver, y = wrapper.decode(receiver, message, d=d, key=key)
        given, sent = given + x, sent + y
        owed = sender["residual"].double()
        largest = max(largest, float(torch.cat([x.double().abs(), owed.abs(), y.double().abs()]).max()))
        lost = float((given - sent - owed).abs().max())
        if lost > ROUNDING * (t + 1) * largest:
            raise Violation(f"after message {t} {lost:.6g} of a coordinate is neither sent nor kept")


class FeedbackSums(Law):
    """Seen from outside, whatever the state is called: nothing is lost over LONG messages, restored in the middle.

    Varying inputs are followed by equal ones.  A receiver without a vector of its own adds up what it decodes: after
    zero inputs the sum approaches the sum of the inputs.  A receiver that keeps a vector follows the input: its output
    approaches the last one.  The rest is at most what the claim of the operator leaves: in every step a contraction
    leaves sqrt(alpha) of the rest and of what was new; an unbiased operator in such a wrapper, sqrt(omega/(1 + omega)).
    Wrappers with momentum are not judged.
    """

    name = "feedback-sums"
    needs = "feedback"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return Gaussian vectors of few coordinates, where a contraction leaves nothing after half of the messages."""
        rng = context.rng(self.name)
        for d in (2, 5, LONG_AT):
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Follow the rest in float64, beside its bound."""
        wrapper, d = subject.target, example.d
        sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
        if any(hasattr(wrapper, name) for name in ("momentum", "beta1")):
            raise NotApplicable("it has momentum")
        claim = wrapper.operator.claim(d)
        s2 = second_moment(claim)
        if s2 is None:
            raise NotApplicable("its operator claims no error")
        left = sqrt(s2 / (1 + s2) if isinstance(claim, Unbiased) else s2)
        if left >= 1 or left**LONG > 1e-9:
            raise NotApplicable("what its operator leaves does not vanish within the messages")
        follows = any(tensor.numel() == d and tensor.is_floating_point() for tensor in receiver.values())
        if isinstance(claim, Unbiased) and not follows:
            raise NotApplicable("an unbiased operator in error feedback leaves a rest without a bound")
        doubt = 1.0 if isinstance(claim, StrictlyContractive) else sqrt(DOUBT * (1 + s2))
        rest, bound, largest, before = np.zeros(d), 0.0, 0.0, np.zeros(d)
        for t, (vector, key) in enumerate(self._inputs(example, context, zeros=not follows)):
            if t == LONG // 4:
                sender, receiver = stored(sender), stored(receiver)
            sender, message = wrapper.encode(sender, torch.from_numpy(vector), key=key)
            receiver, y = wrapper.decode(receiver, message, d=d, key=key)
            x, decoded = vector.astype(np.float64), y.double().numpy()
            rest = decoded - x if follows else rest + x - decoded
            bound = left * (bound + float(np.linalg.norm(x - before if follows else x)))
            before, largest = x, max(largest, float(np.linalg.norm(x)), bound)
            allowed = doubt * bound + ROUNDING * (1 if follows else t + 1) * sqrt(d) * largest
            if not float(np.linalg.norm(rest)) <= allowed:
                what = "the output differs from the input" if follows else "the decoded sum differs from the inputs'"
                raise Violation(
                    f"after message {t} {what} by {float(np.linalg.norm(rest)):.6g}; the operator leaves {allowed:.6g}"
                )

    def _inputs(self, example: Example, context: Context, *, zeros: bool) -> Iterator[tuple[np.ndarray, Key]]:
        """Return half of the vectors drawn around the example, then zeros or the example itself."""
        rng, key = context.rng(f"{self.name} {example.name} inputs"), context.key(f"{self.name} {example.name}")
        last = np.zeros_like(example.x) if zeros else example.x
        for t in range(LONG):
            noise = rng.standard_normal(example.d) * np.abs(example.x).mean()
            x = (example.x + noise).astype(np.float32) if t < LONG // 2 else last
            yield x, replace(key, step=key.step + t)


@law("feedback-cleared", needs="feedback", vectors=_first_vectors)
def feedback_cleared(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """After one vector and then zeros, coordinates that the first message sent exactly are not sent again.

    Catches momentum or residual that is not cleared where it was sent.  Does not judge wrappers whose messages
    are not exact, or whose receiver accumulates.
    """
    wrapper, d = subject.target, example.d
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


@law("feedback-purity", needs="feedback", vectors=_first_vectors)
def feedback_purity(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """encode and decode change neither state nor input, repeat exactly, and refuse NaN and another dimension."""
    wrapper, d = subject.target, example.d
    sender, receiver = wrapper.init(d), wrapper.init_receiver(d)
    for x, key in sequence(example, context, "feedback-purity"):
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
            wrapper.encode(sender, wrong, key=context.key("feedback-purity"))
        except ValueError:
            continue
        raise Violation(f"{what} was accepted; expected ValueError")


def _equal(a: State, b: State) -> bool:
    return set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)


LAWS: tuple[Law, ...] = (feedback_in_step, feedback_mass, FeedbackSums(), feedback_cleared, feedback_purity)
