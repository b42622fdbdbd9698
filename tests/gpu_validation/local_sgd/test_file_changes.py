"""The path of one compressed averaging is straight: a reader who follows it opens few files."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[3] / "docs" / "benchmarks" / "file_changes.py"


def test_one_compressed_averaging_changes_file_forty_times_at_most():
    spec = importlib.util.spec_from_file_location("file_changes", PATH)
    file_changes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file_changes)

    changes = file_changes.changes_of_file(file_changes.workers_at_work())

    assert sum(changes.values()) <= 40, changes
    called = {called for _, called in changes}
    assert {"operators/compressors/qsgd.py", "operators/kernels/elias/decoder.py"} <= called, "both directions count"
