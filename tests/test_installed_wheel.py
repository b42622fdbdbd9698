"""Who installs the wheel with code for a level of x86-64 compiles nothing, not even where nothing can be written."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from operators.compilation.processors import features_of
from operators.precompile import levels_of_this_machine

ROOT = Path(__file__).parents[1]
CODE = "operators/compilation/code"
COMPILE = "from operators.precompile import send_examples; send_examples('signsgd')"
MESSAGE = """
import hashlib, sys
import torch
from numba.core import event
from operators import Key, compilation, parse

class Compilations(event.Listener):
    count = 0
    def on_start(self, event):
        Compilations.count += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Compilations())
operator, x = parse("signsgd"), torch.linspace(-1, 1, 10_000)
y = operator.decode(operator.encode(x, key=Key(0)), d=x.numel(), key=Key(0))
assert torch.equal(y, torch.where(x < 0, -1.0, 1.0))
folder = compilation.code_cache.writable_folder()
sys.stdout.write(f"{compilation.__file__} {Compilations.count} {folder}")
"""


def run(command, *, packages, **settings):
    """What a process prints that takes the four packages from this folder."""
    environment = os.environ | {"PYTHONPATH": str(packages), "NUMBA_CACHE_DIR": ""} | settings
    result = subprocess.run(command, env=environment, cwd=packages, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a tree in which the loops of one operator were compiled for the lowest level."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / ".gitignore", tree)  # by which the build leaves compiled code out, as it does in a checkout
    for line in re.findall("^COPY (.*) ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE):
        for name in line.split():
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "code"))
            else:
                shutil.copy(source, tree)
    level = levels_of_this_machine()[-1]
    settings = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features_of(level)}
    run([sys.executable, "-c", COMPILE], packages=tree, **settings)
    assert list((tree / CODE).glob(f"*.{level}.bin"))
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", str(tree)], packages=tree)
    return next((tree / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder in which pip has installed the wheel, beside a home."""
    site = tmp_path_factory.mktemp("user") / "site"
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(command, capture_output=True, check=True)
    (site.parent / "home").mkdir()
    return site


@contextmanager
def read_only(*folders):
    """Take the right to write in these folders away for a while."""
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o755)


def first_message(site):
    """What a first message says, of a user who may write nowhere: root, too, without the right to overrule modes."""
    command = [sys.executable, "-c", MESSAGE]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override", *command]
    home = site.parent / "home"
    with read_only(home, site / "operators/compilation", site / CODE):
        words, told = run(command, packages=site, HOME=str(home), XDG_CACHE_HOME=str(home))
    return *words.split(), told


@pytest.mark.thorough
def test_the_wheel_brings_the_code_and_its_tag_says_for_which_machines(wheel):
    assert re.search(rf"-cp3{sys.version_info.minor}-cp3\d+-linux_x86_64\.whl$", wheel.name)


@pytest.mark.thorough
def test_the_first_message_of_a_read_only_installation_compiles_nothing(installed):
    place, compilations, folder, told = first_message(installed)

    assert Path(place).is_relative_to(installed)
    assert (compilations, folder, told) == ("0", "None", "")


@pytest.mark.thorough
def test_without_the_code_the_same_message_is_compiled(installed, tmp_path):
    shutil.move(installed / CODE, tmp_path / "code")
    (installed / CODE).mkdir()
    try:
        _, compilations, folder, _ = first_message(installed)
    finally:
        (installed / CODE).rmdir()
        shutil.move(tmp_path / "code", installed / CODE)

    assert int(compilations) > 0
    assert folder == "None"
