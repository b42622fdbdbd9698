"""A module of the user that has the name of a package of ours is named in one sentence."""

import subprocess
import sys

import pytest

import ratedist
from ratedist.interfaces.cli import main


def started(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def run(folder, code):
    return started(folder, "-c", code)


@pytest.mark.parametrize("name", ["operators", "bounds"])
@pytest.mark.parametrize("package", ["ratedist", "gpu_validation"])
def test_a_file_that_hides_a_package_is_named(name, package, tmp_path):
    (tmp_path / f"{name}.py").write_text("pass\n")
    done = run(tmp_path, f"import {package}")
    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"ImportError: ratedist needs its own package {name!r}, which {tmp_path.resolve()}")
    assert sentence.endswith(": rename that file, or start Python from another folder")


@pytest.mark.parametrize("name", ["operators", "bounds"])
@pytest.mark.parametrize(("package", "command"), [("ratedist", "ratedist"), ("gpu_validation", "gpu-validation")])
def test_a_command_says_so_in_one_line_and_status_2(package, command, name, tmp_path):
    (tmp_path / f"{name}.py").write_text("pass\n")
    done = started(tmp_path, "-m", package, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    (words,) = done.stderr.splitlines()
    assert words.startswith(f"{command}: ratedist needs its own package {name!r}, which {tmp_path.resolve()}")


def test_a_console_script_that_finds_such_a_file_says_so_too(tmp_path):
    (tmp_path / "bounds.py").write_text("pass\n")
    code = f"import sys; sys.argv[0] = '/any/bin/ratedist'; sys.path.insert(0, {str(tmp_path)!r})"
    code += "; import ratedist.interfaces.cli"
    done = run(tmp_path, code)
    assert done.returncode == 2
    (words,) = done.stderr.splitlines()
    assert words.startswith("ratedist: ratedist needs its own package 'bounds'")


def test_the_users_own_program_gets_an_exception(tmp_path):
    (tmp_path / "bounds.py").write_text("pass\n")
    program = tmp_path / "program"
    program.mkdir()
    (program / "__init__.py").write_text("try:\n    import ratedist\nexcept ImportError as error:\n    print(error)\n")
    (program / "__main__.py").write_text("")
    done = started(tmp_path, "-m", "program")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ratedist needs its own package 'bounds'")


def test_a_compressor_in_a_file_that_a_package_hides_is_refused_with_the_reason(tmp_path, monkeypatch, capsys):
    (tmp_path / "operators.py").write_text("def f(x):\n    return x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command puts the folder there
    assert main(["check", "operators:f", "--budget", "quick"]) == 2
    (words,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path.resolve() / 'operators.py'} is hidden by a package of the same name" in words
    assert "rename the file" in words


def test_a_folder_without_such_a_file_is_no_matter(tmp_path):
    (tmp_path / "mine.py").write_text("pass\n")
    assert run(tmp_path, "import ratedist, gpu_validation, operators, bounds").returncode == 0


def test_what_is_checked_is_what_is_imported():
    import bounds
    import operators

    assert {bounds.__name__, operators.__name__} == set(ratedist.hidden.PACKAGES)
