"""A module of the user that has the name of a package of ours is named in one sentence."""

import subprocess
import sys

import pytest

import ratedist


def run(folder, code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("name", ["operators", "bounds"])
@pytest.mark.parametrize("package", ["ratedist", "gpu_validation"])
def test_a_file_that_hides_a_package_is_named(name, package, tmp_path):
    (tmp_path / f"{name}.py").write_text("pass\n")
    done = run(tmp_path, f"import {package}")
    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"ImportError: ratedist needs its own package {name!r}, which {tmp_path.resolve()}")
    assert sentence.endswith(": rename that file, or start Python from another folder")


def test_a_folder_without_such_a_file_is_no_matter(tmp_path):
    (tmp_path / "mine.py").write_text("pass\n")
    assert run(tmp_path, "import ratedist, gpu_validation, operators, bounds").returncode == 0


def test_what_is_checked_is_what_is_imported():
    import bounds
    import operators

    assert {bounds.__name__, operators.__name__} == set(ratedist.hidden.PACKAGES)
