"""Progress in a log: one line in ten seconds, whatever the units take."""

import io

from rich.console import Console

from gpu_validation.judging.console import advancing


def test_a_log_gets_one_line_in_ten_seconds():
    log, now = io.StringIO(), [100.0]
    with advancing(Console(file=log), [f"unit [{n}]" for n in range(40)], clock=lambda: now[0]) as advance:
        for number in range(40):
            now[0] += 0.75
            advance(f"unit [{number}]")
    assert log.getvalue().splitlines() == [
        "14 of 40 units after 10 s, about 20 s left; running unit [14]",
        "28 of 40 units after 21 s, about 9 s left; running unit [28]",
    ]


def test_a_short_run_says_nothing_between():
    log = io.StringIO()
    with advancing(Console(file=log), ["one", "two"], clock=lambda: 0.0) as advance:
        advance("one")
    assert log.getvalue() == ""


def test_units_of_an_earlier_run_do_not_shorten_the_remaining_time():
    log, now = io.StringIO(), [0.0]
    units = [str(n) for n in range(100)]
    with advancing(Console(file=log), units, 90, clock=lambda: now[0]) as advance:
        for unit in units[:90]:
            advance(unit)
        now[0] = 12.0
        advance(units[90])
    assert log.getvalue() == "91 of 100 units after 12 s, about 108 s left; running 91\n"
