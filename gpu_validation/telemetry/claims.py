"""What a run's own numbers say about the promises behind it: rows with verdicts and their power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..records.compression import Compression
from ..verdicts.compression import ROUNDING, compression_rows
from ..verdicts.intervals import anytime_interval
from ..verdicts.verdict import MARGIN, Comparison, Verdict, exact_verdict, tight_verdict, wide
from .account import Account, Header
from .samples import KeptRound, pooled
from .traffic import of_messages

ON = "movements of this run"
ALONE = "only one rank has been heard: give all ranks one folder, or bring their files together"
UNSENT = "the bytes of this mode of averaging are not foretold"


def judged(accounts: Sequence[Account], *, false_alarm: float) -> list[Comparison]:
    """Return every comparison that the accounts allow.

    Parameters
    ----------
    false_alarm : float
        Chance that any of them accuses a true claim, however often and whenever one looks.
    """
    return [
        *_compression(accounts, false_alarm / 2),
        *_direction(accounts, false_alarm / 2),
        *_bytes(accounts),
        *_agreement(accounts),
    ]


def _about(header: Header, **fields: Any) -> dict[str, Any]:
    return {"operator": header.operator or "whole models", "workload": ON, **fields}


def _exact(measured: float, bound: float, holds: bool, **about: Any) -> Comparison:
    """Return a number without chance in it."""
    ends = measured, measured
    return Comparison(measured=measured, interval=ends, bound=bound, verdict=exact_verdict(holds), **about)


# -- the compressor ----------------------------------------------------------------------------------------
def _compression(accounts: Sequence[Account], level: float) -> list[Comparison]:
    header, states = accounts[0].header, [account.state for account in accounts]
    bits, ratio, coordinate = (pooled(getattr(s, name) for s in states) for name in ("bits", "ratio", "coordinate"))
    if header.declared is None or bits is None or ratio is None or coordinate is None:
        return []
    compression = Compression(ON, header.d, header.declared, bits, ratio, coordinate)
    return compression_rows(compression, operator=header.operator, workload=ON, false_alarm=level)


def _direction(accounts: Sequence[Account], level: float) -> list[Comparison]:
    """Return what a squared error alone cannot show: an output that is shrunk has a smaller one."""
    header = accounts[0].header
    along = pooled(account.state.along for account in accounts)
    if header.declared is None or along is None:
        return []
    rows = []
    if header.projects:
        worst = max(account.state.oblique for account in accounts)
        about = _about(header, quantity="|<C(x), C(x) - x>|/|x|^2, largest", theorem="Operator.projects", side="tight")
        rows.append(_exact(worst, 0.0, worst <= ROUNDING, **about))
    if header.declared.kind != "Unbiased" or header.declared.constant is None:
        return rows
    about = _about(header, quantity="<C(x), x>/|x|^2, mean", theorem="Unbiased claim", side="tight", n=along.n)
    omega = header.declared.constant
    if omega == 0:
        worst = max(abs(along.low - 1), abs(along.high - 1))
        return [*rows, _exact(1 + worst, 1.0, worst <= ROUNDING, **about)]
    interval = anytime_interval(along, omega, below=level / 2, above=level / 2)
    verdict = tight_verdict(interval, 1.0, MARGIN)
    reason = wide(MARGIN) if verdict is Verdict.INCONCLUSIVE else ""
    return [
        *rows,
        Comparison(measured=along.mean, interval=interval, bound=1.0, verdict=verdict, reason=reason, **about),
    ]


# -- bytes -------------------------------------------------------------------------------------------------
def _bytes(accounts: Sequence[Account]) -> list[Comparison]:
    header = accounts[0].header
    if header.extra_bytes is None:
        nothing: dict[str, Any] = {
            "measured": math.nan,
            "interval": (-math.inf, math.inf),
            "bound": None,
            "side": "tight",
        }
        about = _about(header, quantity="bytes", unit="byte", verdict=Verdict.OUT_OF_SCOPE, reason=UNSENT)
        return [Comparison(**nothing, **about)]
    rows = []
    for way in ("sent", "received"):
        counted = sum(getattr(account.state, f"{way}_bytes") for account in accounts)
        expected = sum(getattr(account.state, f"expected_{way}_bytes") for account in accounts)
        about = _about(header, unit="byte", n=sum(account.state.foretold for account in accounts))
        words = "bytes from all pairs, by the messages' lengths"
        about |= {"quantity": f"bytes {way}, whole run"}
        exact = {"theorem": words, "structural": True, "side": "tight"}
        rows.append(_exact(counted, expected, counted == expected, **exact, **about))
        rows += _promised(accounts, way, counted, about)
    return rows


def _promised(accounts: Sequence[Account], way: str, counted: int, about: dict[str, Any]) -> list[Comparison]:
    """Return the same against what the operator says its messages need, which knows nothing of those sent."""
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
        account.state.foretold * _by_length(account.header, length)[way] + getattr(account.state, f"beside_{way}_bytes")
        for account in accounts
    )
    if declared.exact_bits is not None:
        return [_exact(counted, total, counted == total, side="tight", theorem="Operator.bits", **about)]
    return [_exact(counted, total, counted <= total, side="upper", theorem="Operator.bits", **about)]


def _by_length(h: Header, bits: int) -> dict[str, int]:
    """Return bytes of one averaging, without its buffers, if every message has so many bits."""
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
    return rows


def _alike(header: Header, quantity: str, values: Sequence[Sequence[int]]) -> Comparison:
    different = sum(len(set(of_ranks)) > 1 for of_ranks in values)
    about = _about(header, quantity=quantity, theorem="ranks agree after an averaging", n=len(values), side="tight")
    if values and len(values[0]) > 1:
        return _exact(different, 0.0, different == 0, **about)
    nothing: dict[str, Any] = {"measured": math.nan, "interval": (-math.inf, math.inf), "bound": 0.0}
    return Comparison(verdict=Verdict.OUT_OF_SCOPE, reason=ALONE, **nothing, **about)


def shared_rounds(accounts: Sequence[Account]) -> list[list[KeptRound]]:
    """Return the rounds that all these ranks have kept, each as a list in rank order."""
    tables = [{kept.index: kept for kept in account.rounds} for account in accounts]
    common = set(tables[0]).intersection(*tables[1:]) if tables else set()
    return [[table[index] for table in tables] for index in sorted(common)]
