"""Law: the output is an ordinary finite vector of the input's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from bounds.claims import NoClaim

from ...inputs import LARGEST, SMALLEST
from ..betting.eprocess import SLACK
from ..kit.examples import EVERYTHING, Example, at_the_ends, drawn
from ..kit.law import Context, Law, LawOfOneVector, NotApplicable, Violation, second_moment
from ..kit.subject import Subject, to_numpy


class OutputForm(Law):
    """A float vector of the input's shape, finite, in the library it was given."""

    name = "output-form"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return all the usual vectors, and the ends of a declared domain."""
        yield from super().examples(subject, context)
        if subject.domain != EVERYTHING:
            for d in context.budget.sizes:
                yield from at_the_ends(d)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Look at one raw output."""
        y = subject.raw(example.x, context.key(f"{self.name} {example.name}"))
        expected = torch.Tensor if subject.is_codec or subject.array == "torch" else np.ndarray
        if not isinstance(y, torch.Tensor | np.ndarray) or (not subject.is_codec and not isinstance(y, expected)):
            raise Violation(f"the output must be a {expected.__name__}; got {type(y).__name__}")
        floating = y.dtype.is_floating_point if isinstance(y, torch.Tensor) else y.dtype.kind == "f"
        if not floating:
            raise Violation(f"the output must be of a float type; got {y.dtype}")
        if tuple(y.shape) != example.x.shape:
            raise Violation(f"the output has shape {tuple(y.shape)}; the input {example.x.shape}")
        if not np.isfinite(to_numpy(y)).all():
            raise Violation("the output is not finite")


# -- Law: zero in, zero out ------------------------------------------------------------------------------------


class Zero(Law):
    """The zero vector (either sign) decodes to zero; an operator without a claim must still be finite there."""

    name = "zero"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return zeros and negative zeros at every size."""
        for d in context.budget.sizes:
            yield Example(f"zero, d = {d}", np.zeros(d, np.float32))
            yield Example(f"negative zero, d = {d}", -np.zeros(d, np.float32))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Three draws; of negative zero one."""
        for draw in range(1 if np.signbit(example.x[0]) else 3):
            y = subject.draw(example.x, context.key(f"{self.name} {draw}"))
            if not np.isfinite(y).all():
                raise Violation("the zero vector gives NaN or infinity")
            if y.any() and not isinstance(subject.claim(example.d), NoClaim):
                raise Violation(f"the zero vector gives {float(np.abs(y).max()):.6g}")


# -- Law: the input vector and the message are left as they were -----------------------------------------------


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


# -- Law: a decoded vector stays what it is when the next one is decoded ---------------------------------------


class KeptOutput(Law):
    """Outputs share no memory: a reused buffer makes the second decode overwrite the first result."""

    name = "kept-output"
    shrinks = False

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one Gaussian vector at every third size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes[::3]:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Keep one output while another vector, and then the same one, goes through."""
        key = context.key(f"{self.name} {example.name}")
        kept = subject.raw(example.x, key)
        before = to_numpy(kept)
        for other in (-2 * example.x, example.x):
            following = subject.raw(other, context.key(f"{self.name} another"))
            if not np.array_equal(to_numpy(kept), before, equal_nan=True):
                raise Violation("the next output overwrites this one: both lie in the same memory")
            del following


# -- Law: what cannot be compressed is refused with a clear error ----------------------------------------------


class InputContract(LawOfOneVector):
    """NaN and infinity: ValueError naming the index; integers: TypeError; empty: ValueError; d < 1: ValueError."""

    name = "input-contract"
    needs = "operator"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Spoil one entry; then spoil the whole."""
        key = context.key(f"{self.name} {example.name}")
        index = int(context.rng(f"{self.name} {example.name}").integers(example.d))
        for bad in (np.nan, np.inf, -np.inf):
            x = example.x.copy()
            x[index] = bad
            for spoilt in (x, torch.from_numpy(x.copy())):
                error = _refused(partial(subject.target.encode, spoilt, key=key), ValueError, f"{bad} at index {index}")
                if str(index) not in str(error):
                    raise Violation(f"the error for {bad} does not name index {index}: {error}")
        _refused(lambda: subject.target.encode(np.ones(3, np.int64), key=key), TypeError, "an integer vector")
        _refused(lambda: subject.target.encode(np.empty(0, np.float32), key=key), ValueError, "an empty vector")
        message = subject.target.encode(example.x, key=key)
        _refused(lambda: subject.target.decode(message, d=0, key=key), ValueError, "d = 0")


def _refused(action: Callable[[], Any], error: type[Exception], what: str) -> Exception:
    try:
        action()
    except error as seen:
        return seen
    except Exception as seen:
        raise Violation(f"{what}: expected {error.__name__}; got {type(seen).__name__}: {seen}") from seen
    raise Violation(f"{what} was accepted; expected {error.__name__}")


# -- Law: negative zero is zero --------------------------------------------------------------------------------


class NegativeZero(Law):
    """-0.0 and 0.0 in the input give the same result under the same key."""

    name = "negative-zero"
    needs = "key"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return drawn vectors with half of their entries zero."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            for example in drawn(d, 2, rng):
                x = np.where(rng.random(d) < 0.5, np.float32(0), example.x)
                yield Example(f"half zeros, d = {d}", x if x.any() else np.append(x[1:], np.float32(1)))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the outcome for the two zeros."""
        key = context.key(f"{self.name} {example.name}")
        negative = np.where(example.x == 0, np.float32(-0.0), example.x)
        if not np.array_equal(subject.draw(example.x, key), subject.draw(negative, key)):
            raise Violation("-0.0 in the input is treated differently from 0.0")


# -- Law: the ends of the number range give finite results of the right size -----------------------------------

DRAWS = 5


class Extremes(Law):
    """From subnormal numbers to 2^100: finite, and no error beyond what the claim makes possible at all.

    Within the range of claims the mean squared error is judged by the other laws; here a single draw may
    exceed it by the factor 100 (1 + d).  Below the range an absolute error of 2^-126 sqrt(d) is allowed.
    """

    name = "extremes"
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return both ends of the range, subnormals, and vectors that mix all scales."""
        for d in context.budget.sizes:
            yield from at_the_ends(d)
            i = np.arange(d)
            yield Example(f"smallest subnormal, d = {d}", np.full(d, 2.0**-149, np.float32))
            yield Example(f"subnormals, d = {d}", np.float32(SMALLEST) * np.float32(1) / (2 + i).astype(np.float32))
            mixed = np.where(i == 0, LARGEST, 10.0 ** (-45 + (i % 60)))
            yield Example(f"mixed scales, d = {d}", mixed.astype(np.float32))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """A few draws."""
        x = example.x.astype(np.float64)
        d, norm = example.d, float(np.linalg.norm(x))
        s2 = second_moment(subject.claim(d))
        for draw in range(DRAWS):
            y = subject.draw(example.x, context.key(f"{self.name} {draw} {example.name}"))
            if not np.isfinite(y).all():
                raise Violation("the output is not finite")
            if s2 is None:
                continue
            allowed = 10 * np.sqrt(s2 * (1 + d)) * norm + 1e-6 * norm + SMALLEST * np.sqrt(d)
            error = float(np.linalg.norm(y - x))
            if error > allowed:
                raise Violation(f"the error is {error:.3g}; |x| = {norm:.3g} and the claim allow {allowed:.3g}")


# -- Which symmetries a subject declares: ``equivariant``, a set of "scale", "sign" and "permutation" ----------


def undeclared(subject: Subject, symmetry: str) -> str | None:
    """Return why a symmetry is not tried, or None if the subject declares it."""
    if symmetry in getattr(subject.target, "equivariant", ()):
        return None
    return f'"{symmetry}" is not among the symmetries it declares (attribute equivariant)'


# -- Law: C(c x) = c C(x), where declared ----------------------------------------------------------------------

SCALES = (2.0**40, 2.0**-40)
LOWEST, HIGHEST = 2.0**-80, 2.0**80


class Scale(Law):
    """Multiplying by a power of two commutes with the operator exactly, under the same key."""

    name = "scale"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"scale"`` in ``equivariant``."""
        return super().applies(subject) or undeclared(subject, "scale")

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare bit by bit."""
        size = np.abs(example.x[example.x != 0])
        if size.min() < LOWEST or size.max() > HIGHEST:
            raise NotApplicable("the scaled vector would leave the range of claims")
        key = context.key(f"{self.name} {example.name}")
        y = subject.draw(example.x, key)
        for c in SCALES:
            if not np.array_equal(subject.draw(example.x * np.float32(c), key), c * y):
                raise Violation(f"C({c:g} x) differs from {c:g} C(x)")


# -- Law: C(-x) = -C(x), where declared ------------------------------------------------------------------------


class Sign(Law):
    """Negation commutes with the operator under the same key; vectors with zeros are left out (their sign is 0)."""

    name = "sign"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"sign"`` in ``equivariant``."""
        return super().applies(subject) or undeclared(subject, "sign")

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare bit by bit."""
        if not example.x.all():
            raise NotApplicable("the vector has zeros")
        key = context.key(f"{self.name} {example.name}")
        if not np.array_equal(subject.draw(-example.x, key), -subject.draw(example.x, key)):
            raise Violation("C(-x) differs from -C(x)")


# -- Law: reordering the coordinates reorders the result, where declared ---------------------------------------


class Permutation(Law):
    """C(Px) = P C(x) for a deterministic operator; vectors with equal magnitudes are left out (ties go by index)."""

    name = "permutation"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"permutation"`` in ``equivariant``, and no randomness."""
        reason = super().applies(subject) or undeclared(subject, "permutation")
        if reason is None and subject.randomness != "none":
            return "its random words would have to be reordered too"
        return reason

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Reverse, and shuffle."""
        if len(np.unique(np.abs(example.x))) < example.d:
            raise NotApplicable("the vector has ties")
        key = context.key(f"{self.name} {example.name}")
        y = subject.draw(example.x, key)
        for order in (np.arange(example.d)[::-1], context.rng(f"{self.name} {example.name}").permutation(example.d)):
            z = subject.draw(np.ascontiguousarray(example.x[order]), key)
            if not np.allclose(z, y[order], rtol=1e-6, atol=0):  # sums may be taken in another order
                raise Violation("reordering the coordinates changes the result")


# -- Law: where the output is declared a projection of x, the error is orthogonal to it ------------------------

PROJECTED = 2


class Projection(Law):
    """<C(x), C(x) - x> = 0 on every draw: no other multiple of the output is nearer to x.

    Kept entries, class means, low ranks and directions with the best length have it; any scaling breaks it.
    """

    name = "projection"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs the declaration."""
        if not getattr(subject.target, "projects", False):
            return "the output is not declared a projection (projects = True)"
        return super().applies(subject)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the two products."""
        x = example.x.astype(np.float64)
        for draw in range(PROJECTED):
            y = subject.draw(example.x, context.key(f"{self.name} {draw} {example.name}"))
            allowed = 2 * SLACK * float(np.linalg.norm(y) * (np.linalg.norm(x) + np.linalg.norm(y)))
            if abs(float(y @ (y - x))) > allowed:
                raise Violation(f"<C(x), x> = {float(y @ x):.8g}, |C(x)|^2 = {float(y @ y):.8g}; declared a projection")
