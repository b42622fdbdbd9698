"""The command that shows a run of one's own: after a crash, until the end, as JSON, as a page, in clear sentences."""

import json
import os
import signal

import pytest

from gpu_validation.cli import main
from gpu_validation.processes.launch import RunFailed
from gpu_validation.telemetry import attach, recorder
from operators import ScaledSign

from ..ranks import in_ranks
from .test_reports_of_real_runs import run

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run of two processes that came to its end."""
    folder = tmp_path_factory.mktemp("ended")
    in_ranks(lambda place: run(place, 10, operator=ScaledSign(), schedule=2, telemetry=folder) and None, processes=2)
    return folder


def test_a_run_killed_in_the_middle_still_gives_its_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recorder, "EVERY_S", 0.0)

    def work(place):
        averaging, _ = run(place, 30, operator=ScaledSign(), schedule=2, telemetry=tmp_path)
        if place.rank == 1:
            with (tmp_path / "rank-1.jsonl").open("a") as file:
                file.write('{"kind": "state", "time": 17')  # as if killed in the middle of a line
            os.kill(os.getpid(), signal.SIGKILL)
        averaging.average()

    with pytest.raises(RunFailed, match=r"rank [01]"):
        in_ranks(work, processes=2)

    assert main(["attach", str(tmp_path), "--once"]) == 0
    text = capsys.readouterr().out
    assert "30 steps, 15 synchronisations" in text
    assert "1 has ended before the end of the run; the report covers what it had written" in text
    assert "HOLDS         codec bits, every message" in text
    assert main(["attach", str(tmp_path)]) == 0, "a run that is over is shown once, without being asked to"


def test_a_run_is_watched_until_it_is_over(ended, monkeypatch):
    over = attach.view(ended)
    going = attach.View(over.report.__class__(**{**vars(over.report), "progress": _unended(over)}), ())
    shown, waited = [], []
    monkeypatch.setattr(attach.time, "sleep", waited.append)

    last = attach.watch(iter([going, going, over]).__next__, shown.append, once=False)

    assert last is over
    assert shown == [going, going, over]
    assert waited == [attach.REFRESH_S] * 2
    assert attach.watch(lambda: going, shown.append, once=True) is going


def _unended(view):
    progress = view.report.progress
    return progress.__class__(**{**vars(progress), "ended": 0})


def test_ctrl_c_ends_the_watching_and_keeps_the_verdict(ended, monkeypatch):
    over = attach.view(ended)
    going = attach.View(over.report.__class__(**{**vars(over.report), "progress": _unended(over)}), ())

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(attach.time, "sleep", interrupted)
    assert attach.watch(lambda: going, lambda _: None, once=False) is going


def test_json_and_page_say_what_the_text_says(ended, tmp_path, capsys):
    page = tmp_path / "run.html"
    assert main(["attach", str(ended), "--once", "--json", "--html", str(page), "--L", "1", "--time_s", "60"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert (found["version"], found["ranks"], found["progress"]["steps"]) == (1, [0, 1], 10)
    assert {row["verdict"] for row in found["comparisons"]} <= {"HOLDS", "INCONCLUSIVE", "OUT_OF_SCOPE"}
    assert any(a["rule"] == "tau_star" and "L =" not in " ".join(a["assuming"]) for a in found["advice"])
    html = page.read_text()
    assert "averaged models, rounds that differ" in html
    assert "10 steps" in html


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nowhere", "--once"], 2, "nowhere is not a folder: pass the folder of PeriodicAveraging"),
        (["{ended}", "--once", "--L", "0"], 2, "L must be finite and > 0; got L = 0.0: leave unknown ones out"),
        (["{ended}", "--once", "--html", "/proc/page.html"], 6, "cannot read or write /proc/page.html"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(ended, arguments, status, words, capsys):
    assert main(["attach", *(a.format(ended=ended) for a in arguments)]) == status
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1
