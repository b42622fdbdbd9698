"""Comparisons of a run's numbers with the claims behind it: rows with verdicts and their power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..judging.comparisons import exact_row, interval_row, unknown_row
from ..judging.compression import ROUNDING, compression_rows
from ..judging.intervals import anytime_interval
from ..judging.judge import rows_of
from ..judging.verdict import MARGIN, Comparison
from ..records.compression import Compression
from .account import Account, Header, of_messages
from .samples import KeptRound, pooled

ON = "movements of this run"
ALONE = "only one rank has reported: give all ranks one folder, or copy their files into one"
UNSEEN = "no kept round has the contributions of all ranks and a mean larger than the rounding error"
UNSENT = "the bytes of this mode of averaging cannot be predicted"


def judged(accounts: Sequence[Account], *, false_alarm: float) -> list[Comparison]:
    """Return every comparison that the accounts allow.

    Parameters
    ----------
    accounts : sequence of Account
        Accounts of the reporting ranks.
    false_alarm : float
        Probability that any row rejects a true claim, at whatever times the report is read.
    """
    about = _about(accounts[0].header)
    return [
        *rows_of(lambda: _compression(accounts, false_alarm / 2), "distortion", **about),
        *rows_of(lambda: _direction(accounts, false_alarm / 2), "<C(x), x>/|x|^2, mean", **about),
        *rows_of(lambda: _bytes(accounts), "bytes", **about),
        *rows_of(lambda: _agreement(accounts), "agreement of the ranks", **about),
    ]


def _about(header: Header, **fields: Any) -> dict[str, Any]:
    return {"operator": header.operator or "whole models", "workload": ON, **fields}


# -- the compressor ----------------------------------------------------------------------------------------
def _compression(accounts: Sequence[Account], level: float) -> list[Comparison]:
    header, states = accounts[0].header, [account.state for account in accounts]
    bits, ratio, coordinate = (pooled(getattr(s, name) for s in states) for name in ("bits", "ratio", "coordinate"))
    if header.declared is None or bits is None or ratio is None or coordinate is None:
        return []
    compression = Compression(ON, header.d, header.declared, bits, ratio, coordinate)
    return compression_rows(compression, operator=header.operator, workload=ON, false_alarm=level)


def _direction(accounts: Sequence[Account], level: float) -> list[Comparison]:
    """Compare the mean of <C(x), x>/|x|^2 with 1: a shrunken output has a small squared error and fails here."""
    header = accounts[0].header
    along = pooled(account.state.along for account in accounts)
    if header.declared is None or along is None:
        return []
    rows = []
    if header.projects:
        worst = max(account.state.oblique for account in accounts)
        about = _about(header, quantity="|<C(x), C(x) - x>|/|x|^2, largest", theorem="Operator.projects")
        rows.append(exact_row(worst, 0.0, worst <= ROUNDING, **about))
    if header.declared.kind != "Unbiased" or header.declared.constant is None:
        return rows
    about = _about(header, quantity="<C(x), x>/|x|^2, mean", theorem="Unbiased claim", n=along.n)
    omega = header.declared.constant
    if omega == 0:
        worst = max(abs(along.low - 1), abs(along.high - 1))
        return [*rows, exact_row(1 + worst, 1.0, worst <= ROUNDING, **about)]
    interval = anytime_interval(along, omega, below=level / 2, above=level / 2)
    return [*rows, interval_row(along.mean, interval, 1.0, "tight", margin=MARGIN, **about)]


# -- bytes -------------------------------------------------------------------------------------------------
def _bytes(accounts: Sequence[Account]) -> list[Comparison]:
    header = accounts[0].header
    if header.extra_bytes is None:
        return [unknown_row(UNSENT, **_about(header, quantity="bytes", unit="byte"))]
    rows = []
    for way in ("sent", "received"):
        counted = sum(getattr(account.state, f"{way}_bytes") for account in accounts)
        expected = sum(getattr(account.state, f"expected_{way}_bytes") for account in accounts)
        about = _about(header, unit="byte", n=sum(account.state.predicted for account in accounts))
        words = "bytes from all pairs, by the messages' lengths"
        about |= {"quantity": f"bytes {way}, whole run"}
        rows.append(exact_row(counted, expected, counted == expected, theorem=words, structural=True, **about))
        rows += _promised(accounts, way, counted, about)
    return rows


def _promised(accounts: Sequence[Account], way: str, counted: int, about: dict[str, Any]) -> list[Comparison]:
    """Compare the counted bytes with those of the operator's declared size, independently of the actual messages."""
    header = accounts[0].header
    declared = header.declared
    if declared is None or header.members < header.size:
        return []
    bits = declared.exact_bits if declared.exact_bits is not None else declared.worst_case_bits
    if bits is None or not math.isfinite(bits):
        return []
    about = {**about, "quantity": f"bytes {way}, by the operator's size"}
    length = math.floor(bits) + header.carried_bits
    total = sum(
        account.state.predicted * _by_length(account.header, length)[way]
        + getattr(account.state, f"beside_{way}_bytes")
        for account in accounts
    )
    if declared.exact_bits is not None:
        return [exact_row(counted, total, counted == total, theorem="Operator.bits", **about)]
    return [exact_row(counted, total, counted <= total, "upper", theorem="Operator.bits", **about)]


def _by_length(h: Header, bits: int) -> dict[str, int]:
    """Return the bytes of one averaging without buffers, if every message has this length."""
    everyone = range(h.size)
    sent, received = of_messages([bits] * h.size, rank=h.rank, members=everyone, front=h.front)
    extra = (h.size - 1) * (h.extra_bytes or 0)
    return {"sent": sent + extra, "received": received + extra}


# -- agreement ---------------------------------------------------------------------------------------------
def _agreement(accounts: Sequence[Account]) -> list[Comparison]:
    header = accounts[0].header
    if header.size == 1:
        return []
    together = shared_rounds(accounts)
    rows = [_alike(header, "local steps, rounds that differ", [[kept.steps for kept in r] for r in together])]
    if header.common:
        sums = [[kept.checksum for kept in r] for r in together if min(kept.checksum for kept in r) >= 0]
        rows.append(_alike(header, "averaged models, rounds that differ", sums))
    return [*rows, *_local(accounts, together), *_keys(accounts), *_applied(accounts, together)]


def _known(together: Sequence[Sequence[KeptRound]], name: str) -> list[list[Any]]:
    """Return a field of all ranks in the rounds in which all of them have it."""
    values = [[getattr(kept, name) for kept in of_ranks] for of_ranks in together]
    return [v for v in values if all(math.isfinite(x) and (x >= 0 or name == "rates") for x in v)]


def _local(accounts: Sequence[Account], together: Sequence[Sequence[KeptRound]]) -> list[Comparison]:
    """Compare the ranks between averagings: rates, steps, movement, and the start of each round."""
    header, rows = accounts[0].header, []
    theorem = "all ranks make the same local steps"
    steps = [] if header.uneven else _known(together, "optimizer_steps")
    still = [] if header.uneven else _known(together, "still")
    rates = _known(together, "rates")
    for quantity, values in (
        ("learning rates, rounds that differ", rates),
        ("optimizer steps, rounds that differ", steps if any(map(any, steps)) else []),
        ("models that did not move, rounds that differ", still),
    ):
        if values and len(values[0]) > 1:
            rows.append(_alike(header, quantity, values, theorem=theorem))
    begun = [kept.begun for account in accounts for kept in account.rounds if kept.begun >= 0]
    if begun:
        about = _about(header, quantity="first steps away from the averaged model", n=len(begun))
        about["theorem"] = "a round begins where the last one ended"
        rows.append(exact_row(begun.count(0), 0.0, all(begun), **about))
    return rows


def _keys(accounts: Sequence[Account]) -> list[Comparison]:
    """Count messages whose key was used before, by any rank."""
    header = accounts[0].header
    keys = [kept.key for account in accounts for kept in account.rounds if kept.key >= 0]
    if not keys:
        return []
    repeated = len(keys) - len(set(keys))
    allowed = 1 + len(keys) ** 2 // 2**33  # 32-bit digests may be equal by chance
    about = _about(header, quantity="keys of messages, used twice", n=len(keys))
    return [exact_row(repeated, 0.0, repeated <= allowed, theorem="one key for each rank and round", **about)]


def _applied(accounts: Sequence[Account], together: Sequence[Sequence[KeptRound]]) -> list[Comparison]:
    """Compare the mean of the ranks' contributions with the returned mean and the change of the parameters."""
    header = accounts[0].header
    if not header.common or header.size == 1:
        return []
    quantity = "averagings that are not the mean of the messages"
    about = _about(header, quantity=quantity, theorem="every rank applies the mean")
    wrong = judged = 0
    for of_ranks in together if len(accounts) == header.size else []:
        sent = [kept.sent for kept in of_ranks if math.isfinite(kept.sent)]
        if not sent or (len(sent) != header.members and not header.uneven):
            continue
        mean = math.fsum(sent) / len(sent)
        left = (
            [kept.merged for kept in of_ranks] if header.outer else [v for k in of_ranks for v in (k.merged, k.applied)]
        )
        allowed = _rounding(header, of_ranks, sent)
        if abs(mean) <= 2 * allowed:
            continue  # half of the mean is within the rounding error
        judged += 1
        wrong += any(abs(value - mean) > allowed for value in left if math.isfinite(value))
    if judged:
        return [exact_row(wrong, 0.0, wrong == 0, n=judged, **about)]
    return [unknown_row(ALONE if len(accounts) < header.size else UNSEEN, bound=0.0, n=0, **about)]


def _rounding(header: Header, of_ranks: Sequence[KeptRound], sent: Sequence[float]) -> float:
    """Return the largest rounding error of projections: entries are rounded when added, stored and subtracted."""
    eps = 2.0 ** {2: -7, 4: -23, 8: -23}[header.value_bytes]
    model = max((math.sqrt(kept.model2) for kept in of_ranks if math.isfinite(kept.model2)), default=0.0)
    moved = max((math.sqrt(kept.norm2) for kept in of_ranks if math.isfinite(kept.norm2)), default=0.0)
    return eps * math.sqrt(header.d) * (4 * model + 8 * (moved + max(map(abs, sent)))) * (1 + len(sent)) / 2


AGREE = "ranks agree after an averaging"


def _alike(header: Header, quantity: str, values: Sequence[Sequence[Any]], theorem: str = AGREE) -> Comparison:
    different = sum(len(set(of_ranks)) > 1 for of_ranks in values)
    about = _about(header, quantity=quantity, theorem=theorem, n=len(values))
    if values and len(values[0]) > 1:
        return exact_row(different, 0.0, different == 0, **about)
    return unknown_row(ALONE, bound=0.0, **about)


def shared_rounds(accounts: Sequence[Account]) -> list[list[KeptRound]]:
    """Return the rounds that all these ranks have kept, each as a list in rank order."""
    tables = [{kept.index: kept for kept in account.rounds} for account in accounts]
    common = set(tables[0]).intersection(*tables[1:]) if tables else set()
    return [[table[index] for table in tables] for index in sorted(common)]
