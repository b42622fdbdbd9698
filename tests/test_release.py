"""One version everywhere, install lines that name what exists, and workflows that try a release without secrets."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from hatchling import build

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
OPTIONAL = PROJECT["optional-dependencies"]


def stated(path, pattern):
    """The version that a file states."""
    (version,) = re.findall(pattern, (ROOT / path).read_text(), flags=re.MULTILINE | re.DOTALL)
    return version


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        ("bounds/references.bib", r"^@software\{ratedist,[^@]*?version = \{([^}]*)\}"),
        ("uv.lock", r'^name = "ratedist"\nversion = "([^"]*)"'),
        ("CHANGELOG.md", r"\A[^#]*# Changelog.*?^## ([\d.]+)[^\n]*$(?:.*)"),
    ],
)
def test_every_file_states_the_version_of_the_project(path, pattern):
    assert stated(path, pattern) == VERSION


def test_the_command_prints_the_version_that_the_wheel_has(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = build.prepare_metadata_for_build_wheel(str(tmp_path))
    assert f"\nVersion: {VERSION}\n" in (tmp_path / folder / "METADATA").read_text()
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "ratedist", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"ratedist {VERSION}\n"


def test_the_release_is_built_and_tried_without_secrets():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = " ".join(step.get("run", "") for step in job["steps"])
    assert "secrets" not in text.partition("\njobs:")[2]
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "python -m build --outdir dist" in commands
    assert "for file in dist/*; do .ci/try" in commands
    assert os.access(ROOT / ".ci/try", os.X_OK)
    assert PROJECT["requires-python"].removeprefix(">=") in job["strategy"]["matrix"]["python"]


def test_the_pages_are_built_elsewhere_as_they_are_built_locally():
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert (ROOT / settings["sphinx"]["configuration"]).exists()
    assert settings["sphinx"]["fail_on_warning"]
    (line,) = settings["build"]["jobs"]["install"]
    assert set(re.search(r"\.\[([\w,]+)\]", line)[1].split(",")) <= set(OPTIONAL)


def test_the_oldest_versions_that_are_allowed_are_those_that_are_tested():
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "tests/oldest.txt").read_text(), flags=re.MULTILINE))
    asked = [
        *PROJECT["dependencies"],
        *(line for extra in ("operators", "laws", "validate", "pep") for line in OPTIONAL[extra]),
    ]
    least = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(asked), flags=re.MULTILINE))
    assert least.keys() == pins.keys()
    assert all(re.fullmatch(rf"{re.escape(least[name])}(\.0)*", pins[name]) for name in least)
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())["jobs"]["oldest"]
    pythons = [step["with"]["python-version"] for step in workflow["steps"] if "python-version" in step.get("with", {})]
    assert pythons == [PROJECT["requires-python"].removeprefix(">=")]
    assert "make test-oldest" in [step.get("run") for step in workflow["steps"]]


def install_lines():
    """Every line of README and pages that installs this project."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [page.read_text().replace("\\\n", " ") for page in pages]
    return [line for text in texts for line in re.findall(r"^.*pip install.*$", text, flags=re.MULTILINE)]


def test_install_lines_name_extras_that_exist():
    lines = install_lines()
    assert len(lines) >= 4
    for line in lines:
        for extras in re.findall(r"(?:\.|ratedist|\})\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= set(OPTIONAL), line
