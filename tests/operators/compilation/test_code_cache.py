"""Machine code is kept in the first folder that can be written, and never used where it is stale or damaged."""

import logging
import sys
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from numba.core import config

from operators.compilation import code_cache as places
from operators.compilation import jit
from operators.compilation.code_cache import CodeCache, Notice, sentence

STEP = 2


def steps(x):
    return x + STEP


def constant(x):
    return x + 10


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "package")
    return places.folders()[0]


def hits(loop):
    return sum(loop.stats.cache_hits.values())


def test_code_is_compiled_once_and_loaded_afterwards(folder):
    first, second = jit(steps), jit(steps)

    assert first(1) == second(1) == 3
    assert (hits(first), hits(second)) == (0, 1)
    assert len(list(folder.iterdir())) == 1


def test_other_types_of_arguments_have_code_of_their_own(folder):
    loop = jit(steps)

    assert loop(1) == 3
    assert loop(1.5) == 3.5
    assert len(list(folder.iterdir())) == 2
    assert jit(steps)(1.5) == 3.5


def test_code_made_from_another_constant_is_not_used(folder, monkeypatch):
    assert jit(steps)(1) == 3
    monkeypatch.setitem(globals(), "STEP", 7)
    anew = jit(steps)

    assert anew(1) == 8
    assert hits(anew) == 0
    assert len(list(folder.iterdir())) == 1  # overwritten


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: content[:40], lambda content: b""])
def test_a_damaged_file_is_compiled_anew(folder, damage):
    jit(steps)(1)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    anew, later = jit(steps), jit(steps)

    assert anew(1) == later(1) == 3
    assert (hits(anew), hits(later)) == (0, 1)


def first_entry(pair):
    return pair.first


def test_code_that_names_a_type_which_has_moved_is_compiled_again(folder, monkeypatch):
    for home in ("old_home", "new_home"):
        module = ModuleType(home)
        monkeypatch.setitem(sys.modules, home, module)
        module.Pair = NamedTuple("Pair", [("first", int), ("second", int)])
        module.Pair.__module__ = home
        loop = jit(first_entry)
        assert loop(module.Pair(3, 4)) == 3
        assert hits(loop) == 0
        monkeypatch.delitem(sys.modules, home)
    assert len(list(folder.iterdir())) == 1


def test_code_that_came_with_the_package_is_used_from_a_folder_that_nobody_can_write(folder, monkeypatch):
    jit(steps)(1)
    folder.rename(places.PACKAGE)
    (places.PACKAGE.parent / "file").write_text("")
    monkeypatch.setattr(config, "CACHE_DIR", str(places.PACKAGE.parent / "file" / "below"))
    monkeypatch.setattr(places, "_is_writable", lambda folder: False)
    loaded = jit(steps)

    assert loaded(1) == 3
    assert hits(loaded) == 1


def test_without_a_folder_code_is_compiled_in_every_process_and_the_user_is_told(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "below"
    monkeypatch.setattr(config, "CACHE_DIR", str(nowhere))
    monkeypatch.setattr(places, "PACKAGE", nowhere)
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    first, second = jit(steps), jit(steps)

    assert first(1) == second(1) == 3
    assert hits(second) == 0
    assert CodeCache(steps, {}).cache_path is None
    assert "again in every process" in sentence()
    assert "set NUMBA_CACHE_DIR" in sentence()


def test_the_users_cache_folder_serves_a_package_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "file" / "code")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jit(steps)(1)

    assert str(places.writable_folder()).startswith(str(tmp_path / "cache"))
    assert len(list(places.writable_folder().iterdir())) == 1


@pytest.mark.parametrize("stated", ["", "cache"])
def test_a_cache_home_that_is_no_absolute_path_counts_for_nothing(stated, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", stated)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert places.folders()[-1].parent == tmp_path / ".cache/ratedist"


class Compiled:
    """An event of numba, of a loop of a module."""

    def __init__(self, module):
        loop = type("Loop", (), {"__module__": module})
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": loop})}


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("operators.compilation.code_cache.time.perf_counter", lambda: now[0])
    return now


def compile_for(notice, clock, seconds, module="operators.kernels.levels.cpu"):
    notice.on_start(Compiled(module))
    notice.on_start(Compiled("numba.np.arrayobj"))  # what a loop calls
    clock[0] += seconds
    notice.on_end(Compiled("numba.np.arrayobj"))
    notice.on_end(Compiled(module))


def test_a_second_of_compilation_is_told_once(clock, caplog):
    notice = Notice()
    with caplog.at_level(logging.WARNING, "operators"):
        compile_for(notice, clock, 0.6)
        assert not caplog.records
        compile_for(notice, clock, 0.5)
        compile_for(notice, clock, 5)

    assert [record.getMessage() for record in caplog.records] == [sentence()]
    assert "\n" not in sentence()


def test_loops_of_others_are_not_told(clock, caplog):
    notice = Notice()
    compile_for(notice, clock, 60, "somebody.elses")

    assert not caplog.records


def test_addresses_of_this_process_are_refused(folder):
    table = np.arange(200_000.0)  # too large to be copied into the code

    def look(i):
        return table[i]

    with pytest.raises(ValueError, match="look holds addresses of this process"):
        jit(look)(3)
