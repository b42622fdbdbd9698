import subprocess

import pytest

from gpu_validation.network import NetworkUnavailable
from gpu_validation.network.compiled import cache_folder, compiled

PROGRAM = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "hello.c"
    path.write_text(PROGRAM)
    return path


def test_a_program_is_compiled_once_for_each_version_of_its_source(source):
    with compiled(source) as first:
        stamp = first.stat().st_mtime_ns
        assert subprocess.run([first], capture_output=True, text=True, timeout=10, check=True).stdout == "hello\n"
    with compiled(source) as second:
        assert second == first
        assert second.stat().st_mtime_ns == stamp

    source.write_text(PROGRAM.replace("hello", "goodbye"))
    with compiled(source) as third:
        assert third != first
    assert {path.name.partition("-")[0] for path in cache_folder().iterdir()} == {"hello"}  # no scratch is left


def test_a_cache_that_is_not_ours_is_not_used_and_the_program_is_gone_afterwards(source, monkeypatch):
    monkeypatch.setattr("gpu_validation.network.compiled.os.geteuid", lambda: 4_000_000_000)
    with compiled(source) as program:
        assert program.exists()
        assert program.parent != cache_folder()
    assert not program.parent.exists()


def test_without_a_compiler_the_message_says_what_to_do(source, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NetworkUnavailable, match="install cc or set CC"), compiled(source):
        pass


def test_a_compilers_complaint_is_passed_on(source):
    source.write_text("int main(void) { return nonsense; }\n")
    with pytest.raises(NetworkUnavailable, match="nonsense"), compiled(source):
        pass
