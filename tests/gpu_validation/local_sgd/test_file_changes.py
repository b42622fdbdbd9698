"""The path of one compressed averaging is straight: a reader who follows it opens few files."""

from ... import scripts


def test_one_compressed_averaging_changes_file_58_times_at_most():
    file_changes = scripts.load("benchmarks", "file_changes")

    changes = file_changes.changes_of_file(file_changes.workers_at_work())

    # 40, one function that reads every vector, for two workers, and 16 by way of the file that shares work over threads
    assert sum(changes.values()) <= 58, changes
    called = {called for _, called in changes}
    assert {"operators/compressors/qsgd.py", "operators/kernels/elias/cpu.py"} <= called, "both directions count"
