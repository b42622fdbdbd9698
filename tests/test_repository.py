"""Files that others' tools read: the workflow, hooks, templates, the image, the lock file."""

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


def commands(workflow):
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_the_workflow_runs_targets_that_exist_on_versions_that_are_supported():
    workflow = read(".github/workflows/ci.yml")
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, flags=re.MULTILINE))
    asked = {name for line in commands(workflow) for name in re.findall(r"make ([\w-]+)", line)}
    assert asked <= targets
    assert {"test-all", "docs-test"} <= asked
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert oldest in workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    assert "${{ secrets" not in (ROOT / ".github/workflows/ci.yml").read_text()


def test_hooks_call_what_lint_calls():
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    called = {Path(hook["entry"].split()[0]).name for hook in repository["hooks"]}
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)[1]
    assert called == set(re.findall(r"\$\(BIN\)/([\w-]+)", lint))


@pytest.mark.parametrize("path", [form for form in FORMS if form.name != "config.yml"], ids=lambda path: path.stem)
def test_issue_forms_ask_for_what_is_needed(path):
    form = read(path.relative_to(ROOT))
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names) >= 3
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_image_copies_what_exists_and_nothing_else_is_sent_to_it():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)
    extras = re.search(r'"\.\[([\w,]+)\]"', "\n".join(lines))[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    assert next(line for line in lines if line.startswith("USER")) == "USER ratedist"


def test_the_lock_file_has_every_requirement_from_the_public_index_alone():
    locked = {package["name"]: package for package in LOCK["package"]}
    (own,) = (package for package in LOCK["package"] if package["source"] == {"editable": "."})
    stated = {entry["name"] for entry in own["metadata"]["requires-dist"]}
    asked = [*PROJECT["project"]["dependencies"], *chain(*PROJECT["project"]["optional-dependencies"].values())]
    names = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in asked}
    assert names == stated
    assert names - {"ratedist"} <= set(locked)
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
    (pin,) = PROJECT["tool"]["uv"]["constraint-dependencies"]
    assert pin == f"torch=={locked['torch']['version']}"
    assert f"\n{pin}\n" in (ROOT / "constraints.txt").read_text()


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("program", ["ratedist", "gpu-validation"])
def test_completion_is_a_script_that_names_the_commands(program, shell, tmp_path):
    module = {"ratedist": "ratedist.interfaces.cli", "gpu-validation": "gpu_validation.cli"}[program]
    code = f"import sys; from {module} import main; sys.exit(main(['--print-completion', {shell!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("--print-completion", "plan" if program == "ratedist" else "attach"):
        assert word in done.stdout
    if shell == "bash":
        script = tmp_path / "completion"
        script.write_text(done.stdout)
        subprocess.run(["bash", "-n", str(script)], check=True, timeout=60)
