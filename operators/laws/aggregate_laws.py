"""Laws of mergers: what a merge of up to 130 workers' messages estimates, loses, repeats and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

import numpy as np
import torch

from bounds.claims import Contractive, StrictlyContractive, Unbiased

from ..aggregate.aggregate import Aggregate, server_key
from ..functions.forms import Hook
from ..key import Key
from ..message import CorruptMessage, Message
from .betting.eprocess import SLACK, DirectionBets, ExcessBets, inflated
from .kit.examples import Example, drawn, structured
from .kit.law import Context, Law, NotApplicable, Violation, claimed_moment, fail_if, fresh_key, law, second_moment
from .kit.subject import Subject, to_numpy
from .kit.verdict import About
from .operator.codec import from_bits

WORKERS, MOST = (1, 2, 3, 5), 130
MANY_AT = 9  # the most coordinates of the vectors that many workers have
SIZES = (2, 9)
BATCH = 50
BETS = 80  # at least two for every example and number of workers
RANDOM_DIRECTIONS = 2
SHARE = 4  # rounds for every draw a vector of the other statistical laws
TRIED = 3  # workers, unless the merger is built for another number
ROUNDS = 3
ROUNDING = 2.0**-21  # binary32 additions of one round and node


def _of_workers(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return a Gaussian and a sparse vector at every size up to 1000: those of the first worker."""
    rng = context.rng(name)
    for d in (size for size in context.budget.sizes if size <= 1000):
        yield from (e for e in drawn(d, 3, rng) if not e.name.startswith("Cauchy"))


def group(example: Example, n: int, context: Context, label: str) -> list[torch.Tensor]:
    """Return n vectors: the example, then mixtures of it with noise of the same size."""
    rng = context.rng(f"{label} {example.name} {n}")
    size = float(np.abs(example.x).mean())
    noise = rng.standard_normal((n, example.d)) * size * (np.arange(n) > 0)[:, None]
    return [torch.from_numpy((example.x + e).astype(np.float32)) for e in noise]


def workers_of(target: Aggregate, example: Example, context: Context) -> tuple[int, ...]:
    """Return the numbers of workers to try: the one that a merger is built for (its ``workers``), or several.

    A Gaussian vector of few coordinates is tried with many workers too.
    """
    fixed = getattr(target, "workers", None)
    if fixed is not None:
        return (fixed,)
    if example.d > MANY_AT or not example.name.startswith("Gaussian"):
        return WORKERS
    rng = context.rng(f"workers {example.name}")
    return (*WORKERS, int(rng.integers(6, 33)), int(rng.integers(33, MOST - 1)), MOST - 1, MOST)


def keys_of(base: Key, n: int) -> list[Key]:
    """Return the keys of n workers in one step."""
    return [replace(base, rank=rank) for rank in range(n)]


class AggregateClaim(Law):
    """Unbiased(omega): E y = mean x_i, ``E|y - mean|^2 <= omega (1/n) sum |x_i|^2``; Contractive(alpha) alike."""

    name = "aggregate-claim"
    needs = "aggregate"
    statistical = True

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return small vectors: the flat one, at which selections err most, and drawn ones."""
        rng = context.rng(self.name)
        for d in SIZES:
            yield next(structured(d))
            yield from drawn(d, 2, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the error of the mean for several numbers of workers."""
        decided = False
        for n in workers_of(subject.target, example, context):
            claim = subject.target.claim_mean(example.d, n)
            if isinstance(claim, Unbiased | Contractive):
                self._bet(subject, example, context, n, claim)
                decided = True
        if not decided:
            raise NotApplicable("it promises nothing about the mean")

    def _bet(self, subject: Subject, example: Example, context: Context, n: int, claim: Unbiased | Contractive) -> None:
        vectors = group(example, n, context, self.name)
        stack = torch.stack(vectors).double().numpy()
        mean, energy = stack.mean(axis=0), float((stack**2).sum(axis=1).mean())
        rng = context.rng(f"{self.name} {example.name} {n} keys")
        s2 = second_moment(claim) or 0.0
        bias = DirectionBets(s2, _directions(example.x, rng)) if isinstance(claim, Unbiased) else None
        excess = ExcessBets(inflated(s2))
        level, batch = context.level(BETS), BATCH if n <= max(WORKERS) else BATCH // 2
        for turn in range(max(1, int(SHARE * context.budget.draws) // BATCH)):
            if turn and n > max(WORKERS) and not context.spare():
                return
            rounds = [subject.target.round(vectors, keys=keys_of(fresh_key(rng), n)).numpy() for _ in range(batch)]
            errors = (np.stack(rounds) - mean) / np.sqrt(energy)
            squares = (errors**2).sum(axis=1)
            excess.update(squares)
            if isinstance(claim, StrictlyContractive) and squares.max() > (np.sqrt(s2) + SLACK) ** 2:
                raise Violation(f"one draw has {squares.max():.6g} of the mean energy; {claim} holds surely, n = {n}")
            if excess.wealth.rejects(level):
                raise Violation(
                    f"{claim} of the mean of {n} workers is exceeded: {squares.mean():.6g} in the last batch"
                )
            if bias is not None:
                bias.update(errors)
                fail_if(bias.wealth.rejects(level), f"the merge of {n} workers is a biased estimate of their mean")


def _directions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, shape (m, d): along x; coordinates of the largest, smallest and a zero entry;
    random ones.
    """
    wide = x.astype(np.float64)
    size = np.abs(wide)
    chosen = {int(size.argmax()), int(np.where(size > 0, size, np.inf).argmin()), int(size.argmin())}
    coordinates = np.eye(x.size)[sorted(chosen)] if x.size <= 4096 else np.empty((0, x.size))
    random = rng.standard_normal((RANDOM_DIRECTIONS, x.size))
    v = np.vstack([wide, coordinates, random])
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _aggregate_count_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return Gaussian vectors of few coordinates."""
    rng = context.rng(name)
    for d in (1, 2, MANY_AT):
        yield from drawn(d, 1, rng)


@law("aggregate-count", needs="aggregate", vectors=_aggregate_count_vectors)
def aggregate_count(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """A vote agrees with a count: where the messages are signs, the result has the sign of their sum, unless that is 0.

    The workers have random signs, equal signs, and signs that one or two workers decide.
    """
    target, d = subject.target, example.d
    for n in workers_of(target, example, context):
        rng, keys = context.rng(f"aggregate-count {example.name} {n}"), keys_of(context.key(f"aggregate-count {n}"), n)
        close = np.where(np.arange(n) < n - n // 2 - 1, -1.0, 1.0)[:, None] * np.ones(d)
        for signs in (rng.choice([-1.0, 1.0], (n, d)), np.ones((n, d)), -np.ones((n, d)), close, -close[::-1]):
            vectors = torch.from_numpy((signs * np.abs(rng.standard_normal((n, d))) + 0.0).astype(np.float32))
            messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
            sent = [target.uplink.decode(m, d=d, key=k).numpy() for m, k in zip(messages, keys, strict=True)]
            votes = np.stack(sent)
            if not (np.abs(votes) == 1).all():
                raise NotApplicable("its messages are no votes")
            merged = target.downlink.decode(target.merge(messages, d=d, keys=keys), d=d, key=server_key(keys))
            count = votes.astype(int).sum(axis=0)
            wrong = np.flatnonzero((count != 0) & (np.sign(merged.numpy()) != np.sign(count)))
            if wrong.size:
                i = int(wrong[0])
                raise Violation(f"the votes of {n} workers add up to {count[i]}; the result is {merged[i]:.6g}")


@law("aggregate-mass", needs="aggregate", vectors=_of_workers)
def aggregate_mass(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """sum of new residuals + result = sum of old residuals + sum of inputs, for mergers with ``exchange``.

    A merger whose published rule loses mass says so with ``conserves_mass = False``.
    """
    target = subject.target
    if not hasattr(target, "exchange"):
        raise NotApplicable("it has no memory")
    if not getattr(target, "conserves_mass", True):
        raise NotApplicable("it is declared to lose mass")
    for n in workers_of(target, example, context):
        residuals = [torch.zeros(example.d) for _ in range(n)]
        for t in range(ROUNDS):
            vectors = group(example, n, context, f"aggregate-mass {t}")
            before = _sum(residuals) + _sum(vectors)
            largest = float(torch.stack([*residuals, *vectors]).abs().max())
            keys = keys_of(replace(key, step=key.step + t), n)
            residuals, result = target.exchange(residuals, vectors, keys=keys)
            lost = float((before - _sum(residuals) - result.double()).abs().max())
            if lost > ROUNDING * 4 * n * largest:
                raise Violation(f"in round {t} of {n} workers {lost:.6g} of a coordinate is lost")


def _sum(vectors: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([v.double() for v in vectors]).sum(dim=0)


@law("aggregate-purity", needs="aggregate", vectors=_of_workers)
def aggregate_purity(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Same messages, same merge; messages untouched; the result is finite, of shape (d,); a wrong count is refused."""
    target, d = subject.target, example.d
    for n in workers_of(target, example, context):
        keys = keys_of(context.key(f"aggregate-purity {example.name}"), n)
        vectors = group(example, n, context, "aggregate-purity")
        messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
        before = [message.payload.clone() for message in messages]
        first, second = (target.merge(messages, d=d, keys=keys) for _ in range(2))
        if first.bits != second.bits or not torch.equal(first.payload, second.payload):
            raise Violation(f"two merges of the same {n} messages differ")
        if not all(torch.equal(a, b.payload) for a, b in zip(before, messages, strict=True)):
            raise Violation("merge changed a message")
        y = target.downlink.decode(first, d=d, key=server_key(keys)).numpy()
        if y.shape != (d,) or not np.isfinite(y).all():
            raise Violation(f"the merge of {n} messages decodes to shape {y.shape} or a non-finite entry")
        for wrong in ([], keys[:-1] if n > 1 else [*keys, keys[0]]):
            _refused(target, messages if wrong else [], d, wrong)


def _refused(target: Aggregate, messages: list[Message], d: int, keys: list[Key]) -> None:
    try:
        target.merge(messages, d=d, keys=keys)
    except ValueError:
        return
    raise Violation(f"{len(messages)} messages with {len(keys)} keys were accepted; expected ValueError")


@law("aggregate-corruption", needs="aggregate", vectors=_of_workers)
def aggregate_corruption(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """A truncated message raises CorruptMessage; a flipped bit raises it or leaves a finite result."""
    target, d = subject.target, example.d
    rng = context.rng(f"aggregate-corruption {example.name} damage")
    n = getattr(target, "workers", None) or TRIED
    keys = keys_of(context.key(f"aggregate-corruption {example.name}"), n)
    vectors = group(example, n, context, "aggregate-corruption")
    messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
    middle = n // 2
    bits = np.unpackbits(messages[middle].payload.numpy())[: messages[middle].bits]
    if not bits.size:
        return
    flipped = bits.copy()
    flipped[rng.integers(bits.size)] ^= 1
    for damaged, must_raise in ((bits[:-1], True), (flipped, False)):
        try:
            messages[middle] = from_bits(damaged)
            merged = target.merge(messages, d=d, keys=keys)
        except CorruptMessage:
            continue
        fail_if(must_raise, "a truncated message was merged; expected CorruptMessage")
        if not np.isfinite(target.downlink.decode(merged, d=d, key=server_key(keys)).numpy()).all():
            raise Violation("a flipped bit made the result non-finite")


# -- Law: a communication hook gives every rank the same vector, and that is the mean (statistical, anytime-valid)

RANKS = (2, 3)
HOOK_SIZES = (9, 65)
HOOK_ROUNDS, PATIENT = 20, 15  # rounds a batch; batches at most
OPPOSED = 1.75  # every second vector is the first one times 1 - OPPOSED: the signs of ranks differ
USUAL, SUSPICION = 4, 3.0  # batches without suspicion; log-capital that earns more
ROUNDED = 2.0  # times the error of a contraction: rounding a sum errs as often as rounding its terms


class HookMean(Law):
    """In a group of 2 and of 3 ranks: equal bits at all ranks, E y = mean, and ``E|y - mean|^2`` at most as claimed.

    The error of a mean of m outputs is at most the mean of their errors, so the claim at a single vector is one about
    the mean: ``E|y - xbar|^2 <= omega S``, with S the mean of ``|x_i|^2``.
    """

    name = "hook-mean"
    statistical = True
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a hook with a claim."""
        if not isinstance(subject.target, Hook):
            return "it is no communication hook"
        if all(second_moment(subject.claim(d)) is None for d in HOOK_SIZES):
            return "nothing is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return Gaussian vectors: those of the first rank."""
        rng = context.rng(self.name)
        for d in HOOK_SIZES:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the error of the mean of equal, of different and of opposed vectors."""
        rng = context.rng(f"{self.name} {example.name}")
        for m in RANKS:
            others = rng.standard_normal((m, example.d)) * (np.arange(m) > 0)[:, None]
            opposed = np.outer(1 - OPPOSED * (np.arange(m) % 2), example.x)
            for vectors in (np.tile(example.x, (m, 1)), example.x + others, opposed):
                fitted = [subject.domain.fit(x.astype(np.float32)) for x in vectors]
                if any(x is None or x.size != example.d for x in fitted):
                    raise NotApplicable("such vectors are outside its domain")
                self._bet(subject, np.stack([x for x in fitted if x is not None]), context)

    def _bet(self, subject: Subject, vectors: np.ndarray, context: Context) -> None:
        m, d = vectors.shape
        claim = subject.claim(d)
        s2 = claimed_moment(subject, d)
        wide = vectors.astype(np.float64)
        mean, scale = wide.mean(axis=0), sqrt(float((wide**2).sum(axis=1).mean()))
        allowed = (sqrt(s2) * (1 if isinstance(claim, Unbiased) else ROUNDED) + m * (SLACK + subject.rounding)) ** 2
        level = context.level(2 * len(RANKS) * len(HOOK_SIZES) * 3)
        excess = ExcessBets(allowed)
        directions = np.vstack([mean, wide[0], wide[0] - wide[-1] if wide[0].tobytes() != wide[-1].tobytes() else mean])
        directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        bias = DirectionBets(allowed, directions) if isinstance(claim, Unbiased) else None
        given = [torch.from_numpy(x.copy()) for x in vectors]
        for batch in range(PATIENT):
            suspicious = max(excess.wealth.peak, bias.wealth.peak if bias else 0.0) > SUSPICION
            if batch >= (1 if context.accused else USUAL) and not (suspicious and context.spare()):
                return
            try:
                rounds = subject.target.in_group([given] * HOOK_ROUNDS)
            except (ImportError, NotImplementedError) as reason:
                raise NotApplicable(f"its collectives are not available in threads: {reason}") from reason
            results = [[to_numpy(y) for y in ranks] for ranks in rounds]
            if any(not np.array_equal(ranks[0], y) for ranks in results for y in ranks):
                raise Violation(f"the {m} ranks of a group end with different vectors")
            errors = (np.stack([ranks[0] for ranks in results]) - mean) / scale
            fail_if(not np.isfinite(errors).all(), f"the result of {m} ranks is not finite")
            excess.update((errors**2).sum(axis=1))
            if excess.wealth.rejects(level):
                raise Violation(f"the error of the mean of {m} ranks is larger than claimed: is the sum divided by m?")
            if bias is not None:
                bias.update(errors)
                if bias.wealth.rejects(level):
                    text = f"the result of {m} ranks is not their mean on average: is the sum divided by m?"
                    raise Violation(text, About.MEAN)


LAWS: tuple[Law, ...] = (AggregateClaim(), aggregate_count, aggregate_mass, aggregate_purity, aggregate_corruption)
