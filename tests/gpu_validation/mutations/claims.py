"""Wrong records and wrong claims: numbers of an honest run, changed before they are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bounds.claims import NoClaim
from gpu_validation.judging.compression import LEAST_ERROR
from gpu_validation.judging.verdict import Comparison
from gpu_validation.records.compression import Compression
from gpu_validation.records.storage import Record
from gpu_validation.studies.grid.planned import PER_SEED
from gpu_validation.studies.grid.records import Traffic, Training
from gpu_validation.studies.grid.rows import BOTH
from gpu_validation.studies.grid.theory import AT_MEAN, AT_WORKERS, LOSS, paired
from operators.ddp.collectives import HEADER_BYTES
from tests.gpu_validation.mutations import scaled
from tests.gpu_validation.mutations.bench import Bench
from tests.gpu_validation.mutations.mutation import Mutation

SHARP = "the interval of so many draws is wider than that"


def _traffic(change: Callable[[Training], Traffic]) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_trainings(lambda r: replace(r, traffic=change(r)))


def _rounds(record: Training) -> int:
    return record.steps // record.tau


def _one_byte_more(record: Training) -> Traffic:
    return replace(record.traffic, payload_bytes=record.traffic.payload_bytes + 1)


def _without_headers(record: Training) -> Traffic:
    headers = _rounds(record) * HEADER_BYTES * record.processes * (record.processes - 1)
    return replace(record.traffic, payload_bytes=record.traffic.payload_bytes - headers)


def _as_all_reduce(record: Training) -> Traffic:
    vectors = 2 * (record.processes - 1) * 4 * record.compression.d
    return replace(record.traffic, predicted_payload_bytes=_rounds(record) * vectors)


def _once_for_all_receivers(record: Training) -> Traffic:
    return replace(record.traffic, payload_bytes=record.traffic.payload_bytes // 2)


def _bodies_four_times(record: Training) -> Traffic:
    assert record.traffic.stream_bytes is not None  # the bench counts them
    bodies = record.traffic.payload_bytes - _rounds(record) * HEADER_BYTES * record.processes * (record.processes - 1)
    return replace(record.traffic, stream_bytes=record.traffic.stream_bytes + 3 * bodies)


def _interface_halved(record: Training) -> Traffic:
    return replace(record.traffic, interface_bytes=record.traffic.payload_bytes // 2)


def _bits_of_one_rank(record: Training) -> Traffic:
    return replace(record.traffic, codec_bits=record.traffic.codec_bits // record.processes)


TRAFFIC = (
    Mutation("payload + 1 byte", "record", _traffic(_one_byte_more)),
    Mutation("payload counted without headers", "record", _traffic(_without_headers)),
    Mutation("all-gather charged as an all-reduce of whole vectors", "claim", _traffic(_as_all_reduce)),
    Mutation("payload counted once for two receivers", "record", _traffic(_once_for_all_receivers)),
    Mutation("every body sent four times, counted once", "record", _traffic(_bodies_four_times)),
    Mutation("interface counts half of the payload", "record", _traffic(_interface_halved)),
    Mutation("codec bits at one rank only", "record", _traffic(_bits_of_one_rank)),
)


# -- messages ----------------------------------------------------------------------------------------------------
def _declared(**factors: float) -> Callable[[Bench], list[Comparison]]:
    def change(c: Compression) -> Compression:
        declared = {k: getattr(c.declared, k) for k in factors}
        return replace(c, declared=replace(c.declared, **{k: v and v * factors[k] for k, v in declared.items()}))

    return lambda bench: bench.with_compressions(change)


def _lengths(factor: float) -> Callable[[Bench], list[Comparison]]:
    return _declared(exact_bits=factor, expected_upper_bits=factor, worst_case_bits=factor)


def _constant(kind: str, factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(c: Compression) -> Compression:
        declared = c.declared
        if declared.kind != kind:
            return c
        return replace(c, declared=replace(declared, constant=declared.constant and declared.constant * factor))

    return lambda bench: bench.with_compressions(change)


def _eight_bits_off(c: Compression) -> Compression:
    exact = c.declared.exact_bits
    return replace(c, declared=replace(c.declared, exact_bits=exact and exact + 8))


def _no_claim(c: Compression) -> Compression:
    return replace(c, declared=replace(c.declared, kind=NoClaim.__name__, constant=None))


def _errors(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(c: Compression) -> Compression:
        ratio, error = (scaled.sample(sample, factor) for sample in (c.ratio, c.error_per_coordinate))
        return replace(c, ratio=ratio, error_per_coordinate=error)

    return lambda bench: bench.with_compressions(change)


MESSAGES = (
    Mutation("claims dropped", "record", lambda bench: bench.with_compressions(_no_claim)),
    Mutation("errors recorded as 0", "record", _errors(0.0)),
    Mutation("errors of messages x .1", "record", _errors(0.1), 0.1, (LEAST_ERROR,), measured=True),
    Mutation("declared length x .95", "claim", _lengths(0.95), 0.95, ("codec bits, every message",)),
    Mutation("declared length + 8 bits", "claim", lambda b: b.with_compressions(_eight_bits_off)),
    Mutation(
        *("declared mean length x .95", "claim", _declared(expected_upper_bits=0.95), 0.95, ("codec bits, mean",)),
        survives=SHARP,
    ),
    Mutation("declared mean length x .8", "claim", _declared(expected_upper_bits=0.8), 0.8, ("codec bits, mean",)),
    Mutation(
        "declared worst case x .95", "claim", _declared(worst_case_bits=0.95), 0.95, ("codec bits, longest message",)
    ),
    Mutation(
        "declared worst case x .5", "claim", _declared(worst_case_bits=0.5), 0.5, ("codec bits, longest message",)
    ),
    Mutation("omega x .95", "claim", _constant("Unbiased", 0.95), 0.95, ("Unbiased claim",), survives=SHARP),
    Mutation("omega x .9", "claim", _constant("Unbiased", 0.9), 0.9, ("Unbiased claim",)),
    Mutation("omega x .5", "claim", _constant("Unbiased", 0.5), 0.5, ("Unbiased claim",)),
    Mutation("alpha x .99", "claim", _constant("StrictlyContractive", 0.99), 0.99, ("StrictlyContractive claim",)),
    Mutation("alpha x .9", "claim", _constant("StrictlyContractive", 0.9), 0.9, ("StrictlyContractive claim",)),
)


# -- runs --------------------------------------------------------------------------------------------------------
def _norms(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        mean, local = (scaled.numbers(v, factor) for v in (record.gradient_norm2, record.local_gradient_norm2))
        return replace(record, gradient_norm2=mean, local_gradient_norm2=local)

    return lambda bench: bench.with_trainings(change)


def _losses(value: float) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_trainings(lambda r: replace(r, final_loss=(value,) * len(r.final_loss)))


def _final_losses(factor: float) -> Callable[[Bench], list[Comparison]]:
    return lambda b: b.with_trainings(lambda r: replace(r, final_loss=scaled.numbers(r.final_loss, factor)))


def _accuracy(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        return replace(record, accuracy=tuple(a and a * factor for a in record.accuracy))

    return lambda bench: bench.with_trainings(change)


def _compressed_accuracy(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        lossless = record.compression.declared.constant == 0
        return record if lossless else replace(record, accuracy=tuple(a and a * factor for a in record.accuracy))

    return lambda bench: bench.with_trainings(change)


def _parameter(name: str, factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        changed = {name: factor * record.parameters[name]} if name in record.parameters else {}
        return replace(record, parameters=record.parameters | changed)

    return lambda bench: bench.with_trainings(change)


def _steps(more: int) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_trainings(lambda r: replace(r, steps=r.steps + more))


def _one_seed_for_all(record: Training) -> Training:
    mean, local = (values[:1] * len(values) for values in (record.gradient_norm2, record.local_gradient_norm2))
    return replace(record, gradient_norm2=mean, local_gradient_norm2=local)


def _copied_seeds(record: Training) -> Training:
    """Return the record with every second seed's run in the place of the next."""
    taken = [i - i % 2 for i in range(len(record.seeds))]
    fields = ("gradient_norm2", "local_gradient_norm2", "final_loss")
    copies: dict[str, Any] = {
        name: tuple(values[i] for i in taken) if (values := getattr(record, name)) else () for name in fields
    }
    return replace(record, **copies)


def _tau(more: int) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_trainings(lambda r: replace(r, tau=r.tau + more))


def _processes(more: int) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_trainings(lambda r: replace(r, processes=r.processes + more))


NORM = (AT_MEAN, AT_WORKERS, paired(AT_MEAN, 1), paired(AT_WORKERS, 1), BOTH)
RUNS = (
    Mutation("every gradient norm x 2", "record", _norms(2), 2, NORM, measured=True),
    Mutation("every gradient norm x 1.1", "record", _norms(1.1), 1.1, NORM, measured=True),
    Mutation("every gradient norm x .9", "record", _norms(0.9), 0.9, NORM, measured=True),
    Mutation("every gradient norm x 1.02", "record", _norms(1.02), 1.02, NORM, measured=True, survives=SHARP),
    Mutation("losses of 1e9", "record", _losses(1e9)),
    Mutation("losses at the end x .8", "record", _final_losses(0.8), 0.8, (LOSS,), measured=True),
    Mutation("accuracies of 0", "record", _accuracy(0.0)),
    Mutation("accuracy of compressed runs x .9", "record", _compressed_accuracy(0.9)),
    Mutation("gap F(x0) - F* x .5 in the theorems", "claim", _parameter("gap", 0.5)),
    Mutation("sigma^2 x .5 in the theorems", "claim", _parameter("sigma2", 0.5)),
    Mutation("noise x .9 in the exact laws", "claim", _parameter("noise", 0.9)),
    Mutation("learning rate x 1.1 in the record", "record", _parameter("eta", 1.1)),
    Mutation("learning rate x .9 in the record", "record", _parameter("eta", 0.9)),
    Mutation("one round of eight steps too many in the step counter", "record", _steps(8)),
    Mutation("one round of eight steps missing in the step counter", "record", _steps(-8)),
    Mutation("one worker more in the record", "record", _processes(1)),
    Mutation("one seed counted as all", "record", lambda bench: bench.with_trainings(_one_seed_for_all)),
    Mutation("every second seed copied", "record", lambda bench: bench.with_trainings(_copied_seeds)),
    Mutation("tau + 1 in the record", "record", _tau(1)),
    Mutation("tau - 1 in the record", "record", _tau(-1)),
)


# -- lines of the file -------------------------------------------------------------------------------------------
def _messages(change: Callable[[Record], Record]) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_lines(lambda r: {**r, "compression": r["compression"] | change(r["compression"])})


def _samples(change: Callable[[Record], Record], *names: str) -> Callable[[Bench], list[Comparison]]:
    return _messages(lambda c: {name: c[name] | change(c[name]) for name in names})


def _easier_claim(c: Record) -> Record:
    """Return errors twice as large, and a claim that allows them."""
    declared, doubled = c["declared"], {}
    for name in (RATIO, ERROR):
        sample = c[name]
        atoms = [[2 * low, 2 * high, n] for low, high, n in sample["atoms"]]
        doubled[name] = {"n": sample["n"], "atoms": atoms, **{k: 2 * sample[k] for k in ("mean", "sd", "low", "high")}}
    return {**doubled, "declared": {**declared, "constant": declared["constant"] and 2 * declared["constant"]}}


def _smaller(sample: Record) -> Record:
    numbers = {k: 0.1 * sample[k] for k in ("mean", "sd", "low", "high")}
    return {**numbers, "atoms": [[0.1 * low, 0.1 * high, n] for low, high, n in sample["atoms"]]}


def _larger_constants(record: Record) -> Record:
    larger = {name: 4 * record["parameters"][name] for name in ("sigma2", "gap", "L")} if "parameters" in record else {}
    return {**record, "parameters": record.get("parameters", {}) | larger} if larger else record


def _half_of(*names: str) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_lines(lambda r: {**r, **{name: r[name][::2] for name in names if name in r}})


def _curve(name: str, factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Record) -> Record:
        if "curve" not in record:
            return record
        kind = type(record["curve"][name][0])
        return {**record, "curve": {**record["curve"], name: [kind(factor * x) for x in record["curve"][name]]}}

    return lambda bench: bench.with_lines(change)


def _part(part: str, change: Callable[[Record], Record]) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: bench.with_lines(lambda r: {**r, part: r[part] | change(r[part])} if part in r else r)


def _reversed(*names: str, first: int = 0) -> Callable[[Bench], list[Comparison]]:
    """Return the rows when some lists are reversed from a place on."""

    def change(record: Record) -> Record:
        lists = {name: record[name] for name in names if name in record}
        return {**record, **{name: [*values[:first], *values[first:][::-1]] for name, values in lists.items()}}

    return lambda bench: bench.with_lines(change)


def _less(name: str, factor: float) -> Callable[[Record], Record]:
    return lambda part: {name: part[name] and type(part[name])(factor * part[name])}


def _all_right(record: Record) -> Record:
    return {**record, "accuracy": [a and 1.0 for a in record["accuracy"]]} if "accuracy" in record else record


POSSIBLE = "a possible share of the held-out data; a record has no other number that depends on it"
EXCHANGEABLE = "independent draws are as likely in any order; only the first one has a curve"
BITS, RATIO, ERROR = "bits", "ratio", "error_per_coordinate"
LINES = (
    Mutation("dimension of the messages halved", "record", _messages(lambda c: {"d": c["d"] // 2})),
    Mutation("errors x 2, and the claims with them", "record", _messages(_easier_claim)),
    Mutation(
        "every draw counted a hundred times", "record", _samples(lambda s: {"n": 100 * s["n"]}, BITS, RATIO, ERROR)
    ),
    Mutation("standard deviation of the errors 0", "record", _samples(lambda s: {"sd": 0.0}, RATIO)),
    Mutation("errors relative to the norm x .1, errors per coordinate kept", "record", _samples(_smaller, RATIO)),
    Mutation("constants of the theorems x 4", "record", lambda bench: bench.with_lines(_larger_constants)),
    Mutation("numbers of every second seed missing", "record", _half_of(*PER_SEED)),
    Mutation("every second seed missing", "record", _half_of("seeds", *PER_SEED)),
    Mutation("losses of the curve x .5", "record", _curve("loss", 0.5)),
    Mutation("bits of the curve x .5", "record", _curve("codec_bits", 0.5)),
    Mutation("seconds of the curve x .5", "record", _curve("seconds", 0.5)),
    Mutation("bytes of the TCP streams x .99", "record", _part("traffic", _less("stream_bytes", 0.99))),
    Mutation("bytes of the interface x .5", "record", _part("traffic", _less("interface_bytes", 0.5))),
    Mutation("padding of the local steps x .5", "record", _part("timing", _less("wanted_step_s", 0.5))),
    Mutation("seeds in reverse order", "record", _reversed("seeds")),
    Mutation("losses at the end in reverse order", "record", _reversed("final_loss")),
    Mutation("norms at the workers in reverse order", "record", _reversed("local_gradient_norm2")),
    Mutation(
        *("numbers of all seeds but the first in reverse order", "record", _reversed(*PER_SEED, first=1)),
        survives=EXCHANGEABLE,
    ),
    Mutation("accuracies of 1", "record", lambda bench: bench.with_lines(_all_right), survives=POSSIBLE),
)


# -- seconds -----------------------------------------------------------------------------------------------------
QUIET = "seconds accuse only beyond a factor of 1.5 on a quiet machine, and never decide"


def _rounds_s(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        return replace(record, timing=replace(record.timing, round_s=scaled.numbers(record.timing.round_s, factor)))

    return lambda bench: bench.with_trainings(change)


def _delay_s(factor: float) -> Callable[[Bench], list[Comparison]]:
    def change(record: Training) -> Training:
        delay = scaled.sample(record.timing.delay_s, factor)
        return replace(record, timing=replace(record.timing, delay_s=delay))

    return lambda bench: bench.with_trainings(change)


TIMES = (
    Mutation("seconds per iteration x 1.1", "record", _rounds_s(1.1), 1.1, survives=QUIET),
    Mutation("seconds per iteration x 2", "record", _rounds_s(2)),
    Mutation("delay D x .5", "record", _delay_s(0.5)),
    Mutation("delay D x 1.2", "record", _delay_s(1.2), survives=QUIET),
)
CLAIMS = (*TRAFFIC, *MESSAGES, *RUNS, *LINES, *TIMES)
