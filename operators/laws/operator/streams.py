"""Laws of random streams: what depends on the key, keys that must differ, errors that must not depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any

import numpy as np

from bounds.claims import Unbiased

from ...functions.global_streams import restore, same, seed_all, snapshot
from ...key import Key
from ..betting.budget import work_s
from ..betting.eprocess import inflated
from ..betting.swarm_bets import SwarmBets
from ..kit.examples import Example, drawn
from ..kit.law import SLOW_S, Context, Law, NotApplicable, Violation, fail_if, fresh_key, law, one_vector, second_moment
from ..kit.subject import Subject, to_numpy
from ..kit.verdict import About

SIZE = 65
FIELDS = ("seed", "step", "rank", "layer")


@law("determinism", needs="key")
def determinism(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """encode and decode are pure functions."""
    first, second = (subject.encode(example.x, key) for _ in range(2))
    if subject.has_messages and not _equal(first, second):
        raise Violation("two encodings of the same vector with the same key differ")
    a, b = (to_numpy(subject.decode(m, example.d, key)) for m in (first, second))
    again = to_numpy(subject.decode(first, example.d, key))
    if not (np.array_equal(a, b) and np.array_equal(a, again)):
        raise Violation("the same vector and key decode to different vectors")


def _equal(a: object, b: object) -> bool:
    return a.bits == b.bits and bool((a.payload == b.payload).all())  # type: ignore[attr-defined]


@law("private-randomness", needs="operator")
def private_randomness(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """private: decode gives the same for any key and for none; none: so does encode; shared: decode demands it."""
    other = Key(key.seed + 1, step=key.step, rank=5)
    message = subject.encode(example.x, key)
    expected = to_numpy(subject.decode(message, example.d, key))
    if subject.randomness == "shared":
        try:
            subject.decode(message, example.d, None)
        except ValueError:
            return
        raise Violation("randomness is shared but decode without a key raises no ValueError")
    for given in (other, None):
        if not np.array_equal(to_numpy(subject.decode(message, example.d, given)), expected):
            raise Violation(f"randomness is {subject.randomness} but decode depends on the key")
    if subject.randomness == "none":
        again = subject.decode(subject.encode(example.x, other), example.d, other)
        fail_if(not np.array_equal(to_numpy(again), expected), "randomness is none but the outcome depends on the key")


@law("random-state", needs="key", vectors=one_vector)
def random_state(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Python's, numpy's and torch's generators are untouched, and the outcome does not depend on them."""
    saved = snapshot()
    try:
        outputs = []
        for seed in (1, 2):
            seed_all(seed)
            before = snapshot()
            outputs.append(to_numpy(subject.decode(subject.encode(example.x, key), example.d, key)))
            fail_if(not same(before, snapshot()), "a global random state was changed")
        fail_if(not np.array_equal(outputs[0], outputs[1]), "the outcome depends on a global random state")
    finally:
        restore(saved)


# -- keys that lead to the same outcome ---------------------------------------------------------------------------
NEAR = 40  # the offsets of a field that are tried, all of them
FAR = (64, 100, 128, 256, 512, 1000, 1024, 4096, 10_000, 1 << 16, 1 << 20, 1 << 31, 1 << 32)
FOLDS = ((0,), (1,), (2,), (0, 1), (1, 0))
ALIGNED = 1 << 13  # of which the base of every field is a multiple, so that to add is to flip bits
CONTROLS, MOST, TRIALS, SUSPECTS = 24, 6, 48, 40


class KeySeparation(Law):
    """Keys that differ in a field, in two fields or in their path lead to outcomes that differ.

    Some 230 keys around a base are compared with each other: fields that are ignored, cut, divided, added up,
    multiplied or exchanged make two of them alike.  Such a pair is tried around TRIALS other bases.  Where unrelated
    outcomes agree with probability c, at most MOST of CONTROLS unrelated pairs agree and all trials of a pair do with
    probability below 1e-9 for every c.  An operator whose ranks are meant to draw alike has ``ranks_agree = True``.
    """

    name = "key-separation"
    needs = "key"
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs declared or possible randomness."""
        if subject.randomness == "none":
            return "there is no randomness"
        if second_moment(subject.claim(SIZE)) == 0:
            return "no error is claimed, so no randomness can show"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a Gaussian vector of 65 coordinates, where a coincidence is seldom."""
        yield from drawn(SIZE, 1, context.rng(self.name))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare all keys around one base; try what agrees around others."""

        def outcome(key: Key) -> bytes:
            return to_numpy(subject.decode(subject.encode(example.x, key), example.d, key)).tobytes()

        fields = [field for field in FIELDS if field != "rank" or not getattr(subject.target, "ranks_agree", False)]
        names: dict[bytes, list[str]] = {}
        for name, key in around(_base(context, self.name), fields).items():
            names.setdefault(outcome(key), []).append(name)
        if len(names) == 1 and subject.randomness is None:
            raise NotApplicable("it seems to be deterministic")
        unrelated = [context.key(f"{self.name} control {i}") for i in range(2 * CONTROLS)]
        agree = sum(outcome(a) == outcome(b) for a, b in zip(unrelated[::2], unrelated[1::2], strict=True))
        if agree > MOST and len(names) > 1:
            raise NotApplicable("unrelated keys often lead to the same outcome")
        suspects = [pair for alike in names.values() for pair in _pairs(alike)]
        for first, second in suspects[:SUSPECTS]:
            keys = (around(_base(context, f"{self.name} {i}"), fields) for i in range(TRIALS))
            if all(outcome(near[first]) == outcome(near[second]) for near in keys):
                raise Violation(f"the keys of {first} and of {second} lead to the same outcome, {TRIALS} times")


def around(base: Key, fields: list[str]) -> dict[str, Key]:
    """Return keys around a base by what was changed."""
    keys = {"the base": base}
    for field in fields:
        for offset in (*range(1, NEAR + 1), *FAR):
            keys[f"{field} + {offset}"] = _with(base, field, getattr(base, field) + offset)
    for first, second in combinations(fields, 2):
        changed = {first: getattr(base, second), second: getattr(base, first)}
        keys[f"{first} and {second} exchanged"] = replace(base, **changed)
    for path in FOLDS:
        folded = base
        for index in path:
            folded = folded.fold_in(index)
        keys[f"fold {path}"] = folded
    return keys


def _base(context: Context, label: str) -> Key:
    """Return a key whose fields are different multiples of ALIGNED."""
    seed, step, rank, layer = (ALIGNED * (1 + context.rng(f"{label} base").permutation(400)[:4])).tolist()
    return Key(seed, step=step, rank=rank, layer=layer)


def _pairs(alike: list[str]) -> list[tuple[str, str]]:
    """Return the first of the keys that agree with each other one of a few."""
    return [(alike[0], other) for other in alike[1:4]]


def _with(key: Key, field: str, value: int) -> Key:
    changes: dict[str, Any] = {field: value}
    return replace(key, **changes)


# -- errors that depend on each other -----------------------------------------------------------------------------
ROUNDS, PATIENT = 100, 5  # rounds of draws; times as many where evidence grows
SUSPICION = 3.0  # log-capital that earns more rounds
LEAST = 40  # rounds that no clock cuts, unless a call is slow
SHARE, MORE = 0.3, 1.0  # of the seconds; where evidence grows
CALLS, COMPARED = 12, 3  # of a function a round; of them compared with the call before
AFRESH, TELLING = 1.2, 5.0  # growth of the record after which its period is sought again; standard deviations of one


class IndependentStreams(Law):
    """E<e', e> = 0 for the errors e, e' under keys that differ in one field, and of calls that follow one another.

    Given e, an independent unbiased e' has mean zero and ``E|e'|^2`` at most as claimed.  That is bet on along e, along
    e shifted by as many coordinates as correlated most so far, and, of calls without a key, along the part of the
    record of all earlier errors, one after another, that lies one period back.  Workers' errors average out only so.
    """

    name = "independent-streams"
    statistical = True
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a positive variance that is claimed to have mean zero."""
        claim = subject.claim(SIZE)
        if not isinstance(claim, Unbiased) or claim.omega == 0 or subject.rounding:
            return "no variance is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a vector of positive entries, whose errors have the sign of their random word."""
        x = np.abs(context.rng(self.name).standard_normal(SIZE)) + 0.1
        yield Example(f"positive, d = {SIZE}", x.astype(np.float32))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the products of errors."""
        claim = subject.claim(example.d)
        if not isinstance(claim, Unbiased) or claim.omega == 0:
            raise NotApplicable("no variance is claimed")
        pairs = _ByField(subject, example, context) if subject.takes_key else _ByCall(subject, example, context)
        bets = SwarmBets([list(pairs.labels)])
        s2, level, rounds, quickest_s = inflated(claim.omega), context.level(1), 0, inf
        while rounds < ROUNDS * PATIENT:
            suspicious = bets.peak() > SUSPICION
            if rounds >= ROUNDS and not suspicious:
                return
            slow = context.accused or (rounds > 0 and quickest_s > SLOW_S * pairs.calls)
            share = (MORE if suspicious else SHARE) / (5 if slow else 1)
            if rounds >= (1 if slow else LEAST) and not context.spare(share):
                return
            rounds, began = rounds + 1, work_s()
            for label, error, direction in pairs.drawn():
                length = float(np.linalg.norm(direction))
                if length > 0:
                    along, square = float(error @ direction) / length, float(error @ error)
                    bets.update([label], label, along, square, s2, unbiased=True)
            quickest_s = min(quickest_s, work_s() - began)
            if bets.mean.rejects(level):
                gains = bets.mean.gains()
                where = max(gains, key=lambda label: gains[label])
                raise Violation(
                    f"errors are correlated, given E|C(x) - x|^2 <= {s2:.6g} |x|^2: {where}, seen in {rounds} rounds "
                    f"at level {level:.1e}",
                    About.MEAN,
                )


Products = Iterator[tuple[str, np.ndarray, np.ndarray]]  # label, error, direction that was known before


class _Shift:
    """The shift of one error against another that correlated most so far."""

    def __init__(self, d: int) -> None:
        self.sum = np.zeros(d)

    def of(self, before: np.ndarray) -> np.ndarray:
        """Return the earlier error shifted."""
        return np.roll(before, int(np.abs(self.sum).argmax()))

    def add(self, before: np.ndarray, error: np.ndarray) -> None:
        """Count the correlations at every shift but 0."""
        sizes = float(np.linalg.norm(before) * np.linalg.norm(error))
        if sizes > 0:
            spectrum = np.fft.rfft(error) * np.conj(np.fft.rfft(before))
            self.sum[1:] += (np.fft.irfft(spectrum, before.size) / sizes)[1:]


class _ByField:
    """Errors under a fresh key and under those that differ from it in one field."""

    def __init__(self, subject: Subject, example: Example, context: Context) -> None:
        self.subject, self.x, self.rng = subject, example.x, context.rng(f"{IndependentStreams.name} keys")
        agree = getattr(subject.target, "ranks_agree", False)
        self.shifts = {field: _Shift(example.d) for field in FIELDS if field != "rank" or not agree}
        fields = [f"keys that differ in their {field}" for field in self.shifts]
        self.labels = [*fields, *(f"{field}, shifted" for field in fields)]
        self.calls = 2 * len(fields)

    def drawn(self) -> Products:
        """Return the products of a round: the other step lies before or after."""
        key = fresh_key(self.rng)
        first = _error(self.subject, self.x, key)
        for field, shift in self.shifts.items():
            label = f"keys that differ in their {field}"
            error = _error(self.subject, self.x, _with(key, field, getattr(key, field) + 1))
            yield label, error, first
            yield f"{label}, shifted", error, shift.of(first)
            shift.add(first, error)


class _ByCall:
    """Errors of calls that follow one another."""

    labels = ("a call and the one before", "a call and the one before, shifted", "a call and one a period before")
    calls = CALLS

    def __init__(self, subject: Subject, example: Example, context: Context) -> None:
        self.subject, self.x, self.key = subject, example.x, context.key(f"{IndependentStreams.name} key")
        self.record = np.zeros(0)  # the errors of all calls, one after another
        self.period, self.sought = 0, 0  # 0: none is seen; how long the record was when one was sought
        self.shift = _Shift(example.d)

    def drawn(self) -> Products:
        """Return the products of a few calls."""
        for call in range(CALLS):
            error, before = _error(self.subject, self.x, self.key), self.record[-self.x.size :]
            if before.size and call < COMPARED:
                yield self.labels[0], error, before
                yield self.labels[1], error, self.shift.of(before)
                self.shift.add(before, error)
            if self.period:
                begin = self.record.size - self.period
                yield self.labels[2], error, self.record[begin : begin + error.size]
            self.record = np.concatenate([self.record, error])
            if self.record.size > AFRESH * self.sought:
                self.period, self.sought = _period(self.record, error.size), self.record.size


def _period(record: np.ndarray, least: int) -> int:
    """Return the lag, at least ``least``, at which a record correlates most with itself; 0 where none is telling."""
    lags = np.arange(least, record.size - least)
    energy = float(record @ record)
    if not lags.size or energy == 0:
        return 0
    spectrum = np.fft.rfft(record, 2 * record.size)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[lags]
    deviations = np.abs(products) * record.size / energy / np.sqrt(record.size - lags)
    best = int(deviations.argmax())
    return int(lags[best]) if deviations[best] > TELLING else 0


def _error(subject: Subject, x: np.ndarray, key: Key) -> np.ndarray:
    wide = x.astype(np.float64)
    return (subject.draw(x, key) - wide) / np.linalg.norm(wide)
