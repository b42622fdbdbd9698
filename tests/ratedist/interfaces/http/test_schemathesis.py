"""Thousands of generated requests, valid and not: no server error, and every answer as it is described."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
LEAST_CASES = 2000
LIMIT_S = 1500


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 60)
def test_generated_requests_find_no_server_error(server, tmp_path):
    if importlib.util.find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed; it comes with the extra test")
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("run", f"{server.url}/openapi.json", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"),
        *("--max-examples", "250", "--seed", "1", "--no-color", "--request-timeout", "120"),
    ]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    found = re.search(r"(\d+) generated, (\d+) passed", result.stdout)

    assert result.returncode == 0, result.stdout[-4000:]
    assert found is not None
    assert found[1] == found[2]
    assert int(found[1]) >= LEAST_CASES
