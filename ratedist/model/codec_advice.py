"""How fast the codec of a plan's winner has to be."""

from __future__ import annotations

from dataclasses import replace

from .ranking import Choice

SLOWER = 0.1
LEAD = 0.45  # of the seconds of what needs no codec


def with_coding(ranked: tuple[Choice, ...], d: int, by: str) -> tuple[Choice, ...]:
    """Return the same; the winner says how fast its codec has to be, if it has one and seconds count.

    Parameters
    ----------
    ranked : tuple of Choice
        Best first.
    d : int
        Number of coordinates.
    by : str
        What choices cost, "seconds" or "error".
    """
    first = ranked[0]
    if by != "seconds" or not first.feasible or not first.coded:
        return ranked
    uncoded_s = first.seconds - first.rounds * (first.encode_s + first.decode_s)
    work = first.rounds * first.coded * d
    pace = work / (SLOWER * uncoded_s)
    text = (
        f"codecs of {pace:.3g} coordinates/s, coding {first.coded:.3g} vectors a round, make it {SLOWER:.0%} slower "
        "than free ones"
    )
    rival = next((c for c in ranked[1:] if c.feasible and not c.coded), None)
    if rival is None or rival.seconds <= uncoded_s:
        return (replace(first, reasons=(*first.reasons, text)), *ranked[1:])
    even = work / (rival.seconds - uncoded_s)
    text += f"; above {_pace_text(even)} it leads {rival.operator}"
    kept = work / (LEAD * rival.seconds - uncoded_s) if uncoded_s < LEAD * rival.seconds else None
    if kept is not None:
        text += f", above {_pace_text(kept)} it takes at most {LEAD:.0%} of its seconds"
    winner = replace(first, reasons=(*first.reasons, text), break_even_coordinates_per_s=even)
    return (replace(winner, lead_coordinates_per_s=kept), *ranked[1:])


def _pace_text(coordinates_per_s: float) -> str:
    """Return a throughput in coordinates, bytes of binary32 and nanoseconds."""
    gigabytes_per_s, ns = 4e-9 * coordinates_per_s, 1e9 / coordinates_per_s
    return f"{coordinates_per_s:.3g} coordinates/s ({gigabytes_per_s:.3g} GB/s of binary32, {ns:.2g} ns each)"
