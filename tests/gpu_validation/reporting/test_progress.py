"""Progress in a log: one line in ten seconds, whatever the units take."""

import io

from rich.console import Console

from gpu_validation.reporting.progress import advancing


def test_a_log_gets_one_line_in_ten_seconds():
    log, now = io.StringIO(), [100.0]
    with advancing(Console(file=log), 40, clock=lambda: now[0]) as advance:
        for number in range(40):
            now[0] += 0.75
            advance(f"unit [{number}]")
    assert log.getvalue().splitlines() == [
        "14 of 40 units after 10 s: unit [13]",
        "28 of 40 units after 21 s: unit [27]",
    ]


def test_a_short_run_says_nothing_between():
    log = io.StringIO()
    with advancing(Console(file=log), 2, clock=lambda: 0.0) as advance:
        advance("one")
    assert log.getvalue() == ""
