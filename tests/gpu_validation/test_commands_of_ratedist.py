"""``ratedist`` has the commands of measurements beside the calculator, with one table of exit statuses."""

from importlib import metadata

import pytest

from gpu_validation import cli as measurements
from ratedist.interfaces import cli, commands
from ratedist.interfaces.exit_status import STATUSES, USAGE


def both(capsys, *words):
    """Status and outputs of the same words by ``ratedist`` and by ``gpu-validation``."""
    found = []
    for main in (cli.main, measurements.main):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = end.code
        found.append((status, *capsys.readouterr()))
    return found


def test_every_command_of_measurements_is_one_of_ratedist():
    assert commands.added_commands() == measurements.COMMANDS
    assert commands.added_command("bits") is None


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["studies"], 0),
        (["run", "no-such-study"], USAGE),
        (["run", "quick", "--minutes", "0"], USAGE),
        (["run", "quick", "--patience", "-1"], USAGE),
        (["run"], USAGE),
        (["attach"], USAGE),
        (["attach", "no/such/folder", "--once"], USAGE),
        (["run", "quick", "--seed", "1.5"], USAGE),
    ],
)
def test_both_programs_say_the_same(capsys, words, status):
    (here, out, err), (there, other_out, other_err) = both(capsys, *words)
    assert (here, out) == (there, other_out)
    assert here == status
    assert err == other_err.replace(measurements.PROGRAM, "ratedist")


def test_a_folder_that_cannot_be_written_has_the_same_status(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    (here, *_), (there, *_) = both(capsys, "run", "quick", "--out", str(tmp_path / "file" / "below"), "--seed", "0")
    assert here == there == USAGE


@pytest.mark.parametrize("main", [cli.main, measurements.main])
def test_help_has_the_whole_table(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for status, words in STATUSES.items():
        assert f"{status:3}  {words}" in text
    for name in measurements.COMMANDS:
        assert f"    {name} " in text


def test_the_calculator_does_not_import_measurements(monkeypatch, capsys):
    monkeypatch.setattr(commands, "entry_points", lambda **_: pytest.fail("looked up"))
    assert cli.main(["bits", "--d", "10", "--omega", "1"]) == 0
    assert capsys.readouterr().out


@pytest.fixture(
    params=[
        ("no_such_module:COMMAND", "No module named 'no_such_module'"),
        ("builtins:print", "must be an AddedCommand"),
    ]
)
def unusable(request, monkeypatch):
    """Register a command ``mine`` that cannot be used beside those of measurements; return what is said of it."""
    value, reason = request.param
    group = [metadata.EntryPoint("mine", value, commands.GROUP), *metadata.entry_points(group=commands.GROUP)]
    monkeypatch.setattr(commands, "entry_points", lambda **by: metadata.EntryPoints(group).select(**by))
    return value, reason


def test_help_names_a_command_that_cannot_be_used_and_lists_the_others(unusable, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0
    assert all(words in text for words in ("mine cannot be used: ", *unusable))
    assert all(f" {name} {command.summary}" in text for name, command in measurements.COMMANDS.items())


def test_a_command_that_cannot_be_used_ends_in_one_sentence(unusable, capsys):
    assert cli.main(["mine", "--any", "1"]) == USAGE
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("ratedist mine: cannot be used: ")
    assert err.count("\n") == 1
    assert all(words in err for words in unusable)


def test_other_commands_work_beside_one_that_cannot_be_used(unusable, capsys):
    assert cli.main(["studies"]) == 0
    assert cli.main(["bits", "--d", "10", "--omega", "1"]) == 0
    assert not capsys.readouterr().err
