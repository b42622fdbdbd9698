"""The Triton kernels without a GPU: interpreted, they agree with the others; compiled, they are machine code."""

import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HAS_WHEELS = sys.platform == "linux" and platform.machine() == "x86_64"
pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None and not HAS_WHEELS, reason="Triton is not made for this platform"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="this is the interpreted process"),
]


def process(*arguments, **environment):
    """A Python process of its own, in the root of the project: Triton reads its variable when it is imported."""
    command, environment = [sys.executable, *arguments], {**os.environ, **environment}
    result = subprocess.run(command, env=environment, cwd=HERE.parents[2], capture_output=True, text=True, check=False)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]


@pytest.mark.thorough
def test_interpreted_kernels_pass_the_equality_tests():
    everything = ("-m", "not slow")
    process("-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE), "-k", "cuda", *everything, TRITON_INTERPRET="1")


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_every_kernel_compiles_to_machine_code(capability):
    process("-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); from compiling import main; main({capability})")
