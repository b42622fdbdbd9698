"""Accidents of the command: every one has an exit status of its own, one sentence, and keeps what was measured."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpu_validation.cli import main
from gpu_validation.judging.verdict import read_comparisons
from gpu_validation.records.exit_status import COMPARISONS, MEASUREMENTS, Terminated, UsageError
from gpu_validation.records.results_folder import claimed, set_aside
from gpu_validation.records.storage import DamagedRecords, JsonLines, plain, read_lines, write_atomically
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.record_file import StaleResultsError
from ratedist.interfaces.exit_status import CRASHED, FAILED, FILES, INTERRUPTED, OK, STATUSES, TERMINATED, USAGE
from tests.gpu_validation.studies.test_study import Squares

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run a study of squares by the command line: (exit status, lines of the error output)."""

    def act(study, *options):
        monkeypatch.setattr("gpu_validation.studies.outside.all_presets", lambda: {"squares": study})
        status = main(["run", "squares", "--out", str(tmp_path), *options])
        return status, capsys.readouterr().err.splitlines()

    return act


def measured(folder):
    return [line["unit"] for line in read_lines(folder / "squares" / MEASUREMENTS) if "unit" in line]


# -- exit statuses ---------------------------------------------------------------------------------------------
def test_a_crash_is_no_verdict(run, tmp_path):
    status, lines = run(Squares(failing={"2": TypeError("mauve")}))

    assert status == CRASHED
    assert lines[0].startswith("Traceback")
    assert lines[-1].startswith(
        f"gpu-validation: crashed (TypeError: mauve); 1 of 3 units were measured and kept in {tmp_path / 'squares'}; "
        f"go on: ratedist run squares --out {tmp_path}"
    )
    assert measured(tmp_path) == ["1"]


def test_a_value_error_deep_within_is_no_usage_error(run):
    assert run(Squares(failing={"2": ValueError("a matrix is singular")}))[0] == CRASHED


@pytest.mark.parametrize("missing", ["matplotlib", "sklearn"])
def test_a_missing_extra_is_named_before_anything_is_measured(run, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    study = Squares()
    status, (words,) = run(study)

    assert status == USAGE
    assert words.endswith('pip install "ratedist[validate]"')
    assert study.calls == []


@pytest.mark.thorough
def test_quick_without_the_extra_is_one_line_and_status_2(tmp_path):
    code = "import sys; sys.modules['sklearn'] = sys.modules['matplotlib'] = None\n"
    code += "from gpu_validation.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", "quick", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)

    assert result.returncode == USAGE
    assert result.stderr == (
        'gpu-validation: a run needs matplotlib and scikit-learn: pip install "ratedist[validate]"\n'
    )


def test_a_package_that_a_study_needs_is_named(run):
    status, (words,) = run(Squares(failing={"1": ModuleNotFoundError("no", name="mauve")}))
    assert (status, words) == (USAGE, "gpu-validation: squares needs the package mauve: install it")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), INTERRUPTED), (Terminated(), TERMINATED)])
def test_what_ends_a_run_from_outside_leaves_a_report_and_the_records(run, tmp_path, error, status):
    assert run(Squares(failing={"3": error}))[0] == status
    assert measured(tmp_path) == ["1", "2"]
    assert "2 of 3 units" in (tmp_path / "squares" / "report.html").read_text()


def test_a_second_ctrl_c_while_the_report_is_written_says_that_there_is_none(run, tmp_path, monkeypatch):
    def impatient(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpu_validation.studies.carry_out.page", impatient)
    status, (words,) = run(Squares(failing={"3": KeyboardInterrupt()}))

    assert status == INTERRUPTED
    assert words == f"gpu-validation: interrupted before a report was written; the measurements are in {tmp_path}"
    assert measured(tmp_path) == ["1", "2"]


def test_sigterm_is_left_as_it_was(run):
    before = signal.getsignal(signal.SIGTERM)
    run(Squares())
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("command", [["--help"], ["list"]])
def test_help_names_every_exit_status(capsys, command):
    try:
        assert main(command) == OK
    except SystemExit:
        text = capsys.readouterr().out
        assert all(f"{code:3}  {words}" in text for code, words in STATUSES.items())


# -- files -----------------------------------------------------------------------------------------------------
@contextmanager
def small_disk(folder, kilobytes):
    """A disk of its own for the folder; whether this user may make one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
    made = subprocess.run(command, capture_output=True, timeout=20, check=False).returncode
    try:
        yield made == 0
    finally:
        if made == 0:
            subprocess.run(["umount", "-l", folder], check=True, timeout=20)


def test_a_full_disk_has_its_own_status_and_names_the_file(tmp_path, run):
    class Long(Squares):
        def measure(self, unit):
            return {"square": 1, "ballast": "x" * 20_000}

    with small_disk(tmp_path, 48) as real:
        if real:
            status, (words,) = run(Long(numbers=tuple(range(9))))
            path = tmp_path / "squares" / MEASUREMENTS
            assert status == FILES
            assert words.startswith(f"gpu-validation: cannot read or write {path}: No space left on device; unit ")
            assert f"kept in {path.parent}; go on: ratedist run squares --out {tmp_path}" in words
            assert measured(tmp_path) == ["0"] or len(measured(tmp_path)) == 2


def test_an_error_of_the_disk_carries_the_name_of_the_file(tmp_path):
    path = tmp_path / "full.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*full\.jsonl'"), JsonLines(path) as file:
        file.write({"a": 1})


def test_a_page_that_does_not_fit_leaves_the_old_one_and_no_rest(tmp_path):
    path = tmp_path / "page"
    write_atomically(path, "old")
    (tmp_path / "page.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*page'"):
        write_atomically(path, "new" * 10**5)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page"]


def test_a_damaged_line_is_named_and_a_last_one_is_measured_again(tmp_path, run):
    run(Squares())
    path = tmp_path / "squares" / MEASUREMENTS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], "\0\0\0\n"]))
    assert run(Squares())[0] == OK
    assert measured(tmp_path) == ["1", "2", "3"]

    for rubbish in ("rubbish\n", "[]\n", "\udcff\n"):
        path.write_bytes("".join([lines[0], rubbish, *lines[2:]]).encode(errors="surrogateescape"))
        status, (words,) = run(Squares())
        assert status == FILES
        assert words.startswith(f"gpu-validation: {path}, line 2, is not a record (")
        assert words.endswith("): remove the line, and what it held is measured again")
    path.write_text("".join([lines[0], *lines[2:]]))
    assert run(Squares())[0] == OK
    assert sorted(measured(tmp_path)) == ["1", "2", "3"]


def test_read_lines_names_the_line(tmp_path):
    path = tmp_path / "x"
    path.write_text('{"a": 1}\n{"b"\n{"c": 3}\n')
    with pytest.raises(DamagedRecords, match=r"x, line 2, is not a record \(Expecting"):
        list(read_lines(path))


# -- one run at a time, of one version of the code -------------------------------------------------------------
def test_a_second_run_in_the_same_folder_is_refused_and_writes_nothing(tmp_path, run):
    (tmp_path / "squares").mkdir()
    with claimed(tmp_path / "squares"):
        study = Squares()
        status, (words,) = run(study)
    assert status == USAGE
    held = f"another run is writing to {tmp_path / 'squares'}"
    assert words == f"gpu-validation: {held}: wait until it ends, or choose another --out"
    assert study.calls == []
    assert run(Squares())[0] == OK, "nothing of the lock is left"


def test_a_lock_ends_with_its_process(tmp_path):
    child = os.fork()
    if not child:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with claimed(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write results to .*: Not a directory: choose another --out"):
        carry_out(Squares(), tmp_path / "file")


@pytest.mark.parametrize("change", [{"code": "0ldc0de"}, {"versions": {"torch": "1.0"}}])
def test_units_of_other_code_are_not_mixed_in(tmp_path, change):
    carry_out(Squares(), tmp_path, seconds=0)
    path = tmp_path / "squares" / MEASUREMENTS
    head, *rest = path.read_text().splitlines()
    old = json.loads(head)
    old |= {key: (old[key] | value if isinstance(value, dict) else value) for key, value in change.items()}
    path.write_text("\n".join([json.dumps(old), *rest]) + "\n")

    with pytest.raises(StaleResultsError, match=r"holds units measured with (code 0ldc0de|torch 1\.0), and this is"):
        carry_out(Squares(), tmp_path)
    assert measured(tmp_path) == ["1"]


def test_complete_results_of_other_code_are_judged_again(tmp_path):
    carry_out(Squares(), tmp_path)
    path = tmp_path / "squares" / MEASUREMENTS
    path.write_text(path.read_text().replace('"code": "', '"code": "0'))
    assert carry_out(Squares(), tmp_path).exit_code == OK


def test_records_of_an_earlier_run_get_another_name(tmp_path):
    path = tmp_path / "a.jsonl"
    assert set_aside(path) is None
    for number in (1, 2):
        path.write_text(str(number))
        assert set_aside(path) == tmp_path / f"a-{number}.jsonl"
    assert [(tmp_path / f"a-{n}.jsonl").read_text() for n in (1, 2)] == ["1", "2"]


# -- a real run ------------------------------------------------------------------------------------------------
@contextmanager
def started(study, folder, *options):
    """The command in a process group of its own, of which nothing is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu_validation", "run", study, "--out", str(folder), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def await_(condition, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.thorough
def test_sigterm_ends_every_process_leaves_a_report_and_the_next_run_keeps_the_records(tmp_path):
    path = tmp_path / "smoke" / MEASUREMENTS
    with started("smoke", tmp_path) as process:
        await_(lambda: path.exists() and len(path.read_text().splitlines()) > 1, process)
        os.killpg(process.pid, signal.SIGTERM)  # also to the ranks, as a batch system does
        _, errors = process.communicate(timeout=60)
        assert process.returncode == TERMINATED, errors
        assert "ended by SIGTERM; all processes were ended" in errors
        assert re.search(r"\d+ of 12 units were measured and kept in", errors), errors
        assert (tmp_path / "smoke" / "report.html").exists()
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    kept = path.read_text().splitlines()
    with started("smoke", tmp_path) as process:
        await_(lambda: len(path.read_text().splitlines()) > len(kept), process)
    assert path.read_text().splitlines()[: len(kept)] == kept


@pytest.fixture
def undisturbed(request):
    """The shared run of seed 0; this file has a function of the fixture's name."""
    return request.getfixturevalue("smoke_run")


def untimed(rows):
    """The rows that do not depend on seconds or on counters of the machine."""
    return [
        plain(row.line())
        for row in rows
        if row.unit != "s" and "times faster" not in row.quantity and "bytes" not in row.quantity
    ]


def children_of(parent):
    """Living processes that a process has started."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                fields = (Path("/proc") / entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent and fields[0] != "Z":
                    yield int(entry)


@pytest.mark.slow  # each runs the real command twice, about 15 s
@pytest.mark.parametrize(
    ("units", "victim", "number", "status"),
    [(1, "run", signal.SIGKILL, -9), (5, "run", signal.SIGINT, INTERRUPTED), (8, "rank", signal.SIGKILL, FAILED)],
)
def test_a_run_that_is_ended_goes_on_with_its_seed_to_the_rows_of_an_undisturbed_one(
    tmp_path, undisturbed, units, victim, number, status
):
    path = tmp_path / "smoke" / MEASUREMENTS
    with started("smoke", tmp_path, "--seed", "0") as process:
        await_(lambda: path.exists() and path.read_text().count('"unit"') >= units, process)
        os.kill(process.pid if victim == "run" else max(children_of(process.pid)), number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == status, errors
    if status != -9:
        assert re.search(r"\d+ of 12 units were measured and kept in .*; go on: ratedist run smoke --out", errors)
        assert " on " in errors.split(" at ")[-1] if victim == "rank" else "rank" in errors
    command = [sys.executable, "-m", "gpu_validation", "run", "smoke", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert result.returncode == OK, result.stderr
    assert re.search(r"goes on: \d+ of 12 units of seed 0 are in", result.stdout)
    assert untimed(read_comparisons(path.with_name(COMPARISONS))) == untimed(
        read_comparisons(undisturbed.folder / COMPARISONS)
    )


@contextmanager
def busy(n):
    """Run n other processes that compute until the block ends."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def n_units(path):
    """How many units are recorded so far."""
    return path.read_text().count('"unit"') if path.exists() else 0


def disturbed(folder, seed, others=30):
    """End runs of ``quick`` after so many units: three by kills, one by Ctrl-C, one that other processes starve."""
    path, options = folder / "quick" / MEASUREMENTS, ("--seed", str(seed))
    statuses = []
    for units, victim, number, starving in (
        (6, "run", signal.SIGKILL, 0),
        (14, "rank", signal.SIGKILL, 0),
        (22, "run", signal.SIGINT, 0),
        (30, "run", signal.SIGKILL, 0),
        (38, "run", signal.SIGTERM, others),
    ):
        with busy(starving), started("quick", folder, *options) as process:
            await_(lambda least=units: n_units(path) >= least, process, 1800)
            os.kill(process.pid if victim == "run" else max(children_of(process.pid)), number)
            process.communicate(timeout=300)
            statuses.append(process.returncode)
        options = ()  # the seed is that of the results
    return statuses


@pytest.mark.slow  # the whole of quick twice: five minutes on two quiet cores
@pytest.mark.timeout(7200)
def test_quick_killed_three_times_interrupted_and_starved_ends_with_the_rows_of_an_undisturbed_run(tmp_path):
    quick = [sys.executable, "-m", "gpu_validation", "run", "quick", "--out"]
    whole = subprocess.run([*quick, tmp_path / "whole", "--seed", "5"], capture_output=True, text=True, check=False)
    assert whole.returncode == OK, whole.stderr

    assert disturbed(tmp_path / "ended", 5) == [-9, FAILED, INTERRUPTED, -9, TERMINATED]
    result = subprocess.run([*quick, tmp_path / "ended"], capture_output=True, text=True, check=False)
    assert result.returncode == OK, result.stderr
    assert re.search(r"goes on: \d+ of 77 units of seed 5 are in", result.stdout)
    rows = [untimed(read_comparisons(tmp_path / run / "quick" / COMPARISONS)) for run in ("whole", "ended")]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 300
