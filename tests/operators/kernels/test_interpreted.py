"""The Triton kernels without a GPU: interpreted, they agree with the others; compiled, they are machine code."""

import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HAS_WHEELS = sys.platform == "linux" and platform.machine() == "x86_64"
pytestmark = pytest.mark.skipif(
    find_spec("triton") is None and not HAS_WHEELS, reason="Triton is not made for this platform"
)
HERE = Path(__file__).parent


def pytest_here(*arguments, **environment):
    """A process of its own: Triton reads the variable when it is imported."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, cwd=HERE.parents[2], capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="this is the interpreted process")
def test_interpreted_kernels_pass_the_equality_tests():
    result = pytest_here(str(HERE), "-k", "cuda", TRITON_INTERPRET="1")
    assert result.returncode == 0, result.stdout[-4000:]
    assert "passed" in result.stdout or "." in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="interpreted kernels are not compiled")
@pytest.mark.parametrize("capability", [80, 90])
def test_every_kernel_compiles_to_machine_code(capability):
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); from compiling import main; main({capability})"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE.parents[2], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
