"""Law: the output is an ordinary finite vector of the input's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from bounds.claims import NoClaim

from ...inputs import LARGEST, SMALLEST
from ...key import Key
from ..betting.eprocess import SLACK
from ..kit.examples import EVERYTHING, Example, at_the_ends, drawn
from ..kit.law import Context, NotApplicable, Violation, fail_if, law, one_vector, second_moment, usual
from ..kit.subject import Subject, to_numpy


def _output_form_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return all the usual vectors, and the ends of a declared domain."""
    yield from usual(subject, context, name)
    if subject.domain != EVERYTHING:
        for d in context.budget.sizes:
            yield from at_the_ends(d)


@law("output-form", vectors=_output_form_vectors)
def output_form(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """A float vector of the input's shape, finite, in the library it was given."""
    y = subject.raw(example.x, context.key(f"output-form {example.name}"))
    expected = torch.Tensor if subject.is_codec or subject.array == "torch" else np.ndarray
    if not isinstance(y, torch.Tensor | np.ndarray) or (not subject.is_codec and not isinstance(y, expected)):
        raise Violation(f"the output must be a {expected.__name__}; got {type(y).__name__}")
    floating = y.dtype.is_floating_point if isinstance(y, torch.Tensor) else y.dtype.kind == "f"
    fail_if(not floating, f"the output must be of a float type; got {y.dtype}")
    fail_if(tuple(y.shape) != example.x.shape, f"the output has shape {tuple(y.shape)}; the input {example.x.shape}")
    fail_if(not np.isfinite(to_numpy(y)).all(), "the output is not finite")


# -- Law: zero in, zero out ------------------------------------------------------------------------------------


def _zero_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return zeros and negative zeros at every size."""
    for d in context.budget.sizes:
        yield Example(f"zero, d = {d}", np.zeros(d, np.float32))
        yield Example(f"negative zero, d = {d}", -np.zeros(d, np.float32))


@law("zero", vectors=_zero_vectors)
def zero(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """The zero vector (either sign) decodes to zero; an operator without a claim must still be finite there."""
    for draw in range(1 if np.signbit(example.x[0]) else 3):
        y = subject.draw(example.x, context.key(f"zero {draw}"))
        fail_if(not np.isfinite(y).all(), "the zero vector gives NaN or infinity")
        if y.any() and not isinstance(subject.claim(example.d), NoClaim):
            raise Violation(f"the zero vector gives {float(np.abs(y).max()):.6g}")


# -- Law: the input vector and the message are left as they were -----------------------------------------------


@law("no-mutation")
def no_mutation(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Neither encode nor decode nor a plain function writes to what it is given."""
    kinds = ("numpy", "torch") if subject.is_operator else (subject.array,)
    for kind in kinds:
        array = example.x.copy()
        given = torch.from_numpy(array) if kind == "torch" else array
        before = array.tobytes()
        if subject.is_codec:
            message = subject.target.encode(given, **({"key": key} if subject.takes_key else {}))
            payload = message.payload.clone() if subject.has_messages else None
            subject.decode(message, example.d, key)
            fail_if(payload is not None and not torch.equal(payload, message.payload), "decode changed the message")
        else:
            subject.target(given)
        fail_if(array.tobytes() != before, f"the input ({kind}) was changed")


# -- Law: a decoded vector stays what it is when the next one is decoded ---------------------------------------


def _kept_output_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return one Gaussian vector at every third size."""
    rng = context.rng(name)
    for d in context.budget.sizes[::3]:
        yield from drawn(d, 1, rng)


@law("kept-output", shrinks=False, vectors=_kept_output_vectors)
def kept_output(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Outputs share no memory: a reused buffer makes the second decode overwrite the first result."""
    kept = subject.raw(example.x, key)
    before = to_numpy(kept)
    for other in (-2 * example.x, example.x):
        following = subject.raw(other, context.key("kept-output another"))
        if not np.array_equal(to_numpy(kept), before, equal_nan=True):
            raise Violation("the next output overwrites this one: both lie in the same memory")
        del following


# -- Law: what cannot be compressed is refused with a clear error ----------------------------------------------


@law("input-contract", needs="operator", vectors=one_vector)
def input_contract(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """NaN and infinity: ValueError naming the index; integers: TypeError; empty: ValueError; d < 1: ValueError."""
    index = int(context.rng(f"input-contract {example.name}").integers(example.d))
    for bad in (np.nan, np.inf, -np.inf):
        x = example.x.copy()
        x[index] = bad
        for spoilt in (x, torch.from_numpy(x.copy())):
            error = _refused(partial(subject.target.encode, spoilt, key=key), ValueError, f"{bad} at index {index}")
            fail_if(str(index) not in str(error), f"the error for {bad} does not name index {index}: {error}")
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


def _negative_zero_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return drawn vectors with half of their entries zero."""
    rng = context.rng(name)
    for d in context.budget.sizes:
        for example in drawn(d, 2, rng):
            x = np.where(rng.random(d) < 0.5, np.float32(0), example.x)
            yield Example(f"half zeros, d = {d}", x if x.any() else np.append(x[1:], np.float32(1)))


@law("negative-zero", needs="key", vectors=_negative_zero_vectors)
def negative_zero(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """-0.0 and 0.0 in the input give the same result under the same key."""
    negative = np.where(example.x == 0, np.float32(-0.0), example.x)
    if not np.array_equal(subject.draw(example.x, key), subject.draw(negative, key)):
        raise Violation("-0.0 in the input is treated differently from 0.0")


# -- Law: the ends of the number range give finite results of the right size -----------------------------------

DRAWS, PROJECTED = 5, 2  # of the ends of the range; of a projection


def _extremes_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return both ends of the range, subnormals, and vectors that mix all scales."""
    for d in context.budget.sizes:
        yield from at_the_ends(d)
        i = np.arange(d)
        yield Example(f"smallest subnormal, d = {d}", np.full(d, 2.0**-149, np.float32))
        yield Example(f"subnormals, d = {d}", np.float32(SMALLEST) * np.float32(1) / (2 + i).astype(np.float32))
        mixed = np.where(i == 0, LARGEST, 10.0 ** (-45 + (i % 60)))
        yield Example(f"mixed scales, d = {d}", mixed.astype(np.float32))


@law("extremes", needs="operator", vectors=_extremes_vectors)
def extremes(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """From subnormal numbers to 2^100: finite, and no error beyond what the claim makes possible at all.

    Within the range of claims the mean squared error is judged by the other laws; here a single draw may
    exceed it by the factor 100 (1 + d).  Below the range an absolute error of 2^-126 sqrt(d) is allowed.
    """
    x = example.x.astype(np.float64)
    d, norm = example.d, float(np.linalg.norm(x))
    s2 = second_moment(subject.claim(d))
    for draw in range(DRAWS):
        y = subject.draw(example.x, context.key(f"extremes {draw} {example.name}"))
        fail_if(not np.isfinite(y).all(), "the output is not finite")
        if s2 is None:
            continue
        allowed = 10 * np.sqrt(s2 * (1 + d)) * norm + 1e-6 * norm + SMALLEST * np.sqrt(d)
        error = float(np.linalg.norm(y - x))
        fail_if(error > allowed, f"the error is {error:.3g}; |x| = {norm:.3g} and the claim allow {allowed:.3g}")


# -- Which symmetries a subject declares: ``equivariant``, a set of "scale", "sign" and "permutation" ----------


def undeclared(subject: Subject, symmetry: str) -> str | None:
    """Return why a symmetry is not tried, or None if the subject declares it."""
    if symmetry in getattr(subject.target, "equivariant", ()):
        return None
    return f'"{symmetry}" is not among the symmetries it declares (attribute equivariant)'


# -- Law: C(c x) = c C(x), where declared ----------------------------------------------------------------------

SCALES = (2.0**40, 2.0**-40)
LOWEST, HIGHEST = 2.0**-80, 2.0**80


@law("scale", needs="operator", unless=lambda subject: undeclared(subject, "scale"))
def scale(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Multiplying by a power of two commutes with the operator exactly, under the same key."""
    size = np.abs(example.x[example.x != 0])
    if size.min() < LOWEST or size.max() > HIGHEST:
        raise NotApplicable("the scaled vector would leave the range of claims")
    y = subject.draw(example.x, key)
    for c in SCALES:
        if not np.array_equal(subject.draw(example.x * np.float32(c), key), c * y):
            raise Violation(f"C({c:g} x) differs from {c:g} C(x)")


# -- Law: C(-x) = -C(x), where declared ------------------------------------------------------------------------


@law("sign", needs="operator", unless=lambda subject: undeclared(subject, "sign"))
def sign(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Negation commutes with the operator under the same key; vectors with zeros are left out (their sign is 0)."""
    if not example.x.all():
        raise NotApplicable("the vector has zeros")
    if not np.array_equal(subject.draw(-example.x, key), -subject.draw(example.x, key)):
        raise Violation("C(-x) differs from -C(x)")


# -- Law: reordering the coordinates reorders the result, where declared ---------------------------------------


def _permutation_unless(subject: Subject) -> str | None:
    """Return why it does not apply, or None: it needs ``"permutation"`` in ``equivariant``, and no randomness."""
    reason = undeclared(subject, "permutation")
    if reason is None and subject.randomness != "none":
        return "its random words would have to be reordered too"
    return reason


@law("permutation", needs="operator", unless=_permutation_unless)
def permutation(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """C(Px) = P C(x) for a deterministic operator; vectors with equal magnitudes are left out (ties go by index)."""
    if len(np.unique(np.abs(example.x))) < example.d:
        raise NotApplicable("the vector has ties")
    y = subject.draw(example.x, key)
    for order in (np.arange(example.d)[::-1], context.rng(f"permutation {example.name}").permutation(example.d)):
        z = subject.draw(np.ascontiguousarray(example.x[order]), key)
        if not np.allclose(z, y[order], rtol=1e-6, atol=0):  # sums may be taken in another order
            raise Violation("reordering the coordinates changes the result")


# -- Law: where the output is declared a projection of x, the error is orthogonal to it ------------------------


def _projection_unless(subject: Subject) -> str | None:
    """Return why it does not apply, or None: it needs the declaration."""
    if not getattr(subject.target, "projects", False):
        return "the output is not declared a projection (projects = True)"
    return None


@law("projection", unless=_projection_unless)
def projection(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """<C(x), C(x) - x> = 0 on every draw: no other multiple of the output is nearer to x.

    Kept entries, class means, low ranks and directions with the best length have it; any scaling breaks it.
    """
    x = example.x.astype(np.float64)
    for draw in range(PROJECTED):
        y = subject.draw(example.x, context.key(f"projection {draw} {example.name}"))
        allowed = 2 * SLACK * float(np.linalg.norm(y) * (np.linalg.norm(x) + np.linalg.norm(y)))
        if abs(float(y @ (y - x))) > allowed:
            raise Violation(f"<C(x), x> = {float(y @ x):.8g}, |C(x)|^2 = {float(y @ y):.8g}; declared a projection")
