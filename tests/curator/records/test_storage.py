"""Where encoded rows are kept: in memory, or in files that have no name and go with the process."""

import os
from pathlib import Path

import numpy as np
import pytest

from discreet.curator.lattice import COARSE
from discreet.curator.records import storage
from discreet.curator.records.storage import (
    MEMORY,
    TIGHT_MEMORY,
    OnDisk,
    bytes_in_memory,
    bytes_of_rows,
    current_limits,
    limited,
    storage_for,
)
from discreet.errors import Unsupported


def test_a_scratch_file_has_no_name_and_no_reader(tmp_path):
    array = OnDisk(tmp_path).zeros((100, 7), np.int16)
    assert list(tmp_path.iterdir()) == []
    array[:] = np.arange(700).reshape(100, 7)
    assert array.sum() == sum(range(700))
    assert type(array) is np.ndarray  # compiled code knows these
    open_here = {fd: _link(fd) for fd in os.listdir("/proc/self/fd")}
    mapped = {fd: name for fd, name in open_here.items() if name.startswith(str(tmp_path))}
    assert mapped
    assert all(name.endswith("(deleted)") for name in mapped.values())
    assert {os.stat(f"/proc/self/fd/{fd}").st_mode & 0o777 for fd in mapped} == {0o600}


def _link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def test_a_folder_without_room_is_refused_in_words(tmp_path):
    for folder, size in ((tmp_path / "missing", 10), (tmp_path, 1 << 60)):
        with pytest.raises(Unsupported, match="DISCREET_SCRATCH") as refusal:
            OnDisk(folder).zeros(size, np.int8)
        assert str(folder) not in str(refusal.value)


def test_memory_decides_unless_it_is_said(monkeypatch, tmp_path):
    room = bytes_in_memory(1000, 8, COARSE)
    monkeypatch.setattr(storage, "available_memory", lambda: room)
    assert storage_for(1000, 8, COARSE) is MEMORY
    assert storage_for(1001, 8, COARSE).on_disk
    many = 10**7
    monkeypatch.setattr(storage, "available_memory", lambda: bytes_in_memory(many, 8, COARSE) - 1)
    assert storage_for(many, 8, COARSE) is TIGHT_MEMORY
    monkeypatch.setattr(storage, "available_memory", lambda: bytes_of_rows(many, 8, COARSE) - 1)
    assert storage_for(many, 8, COARSE).on_disk
    monkeypatch.setattr(storage, "available_memory", lambda: room)
    with limited(memory=room + 1000):
        assert storage_for(1001, 8, COARSE) is MEMORY
    monkeypatch.setattr(storage, "available_memory", lambda: None)
    assert storage_for(10**12, 8, COARSE) is MEMORY
    monkeypatch.setenv("DISCREET_MEMORY", "1KB")
    monkeypatch.setenv("DISCREET_SCRATCH", str(tmp_path))
    assert storage_for(1000, 8, COARSE) == OnDisk(tmp_path)
    with limited(memory="1GB"):
        assert storage_for(1000, 8, COARSE) is MEMORY
        with limited(folder="elsewhere"):
            assert current_limits().folder == Path("elsewhere")
            assert current_limits().memory == 10**9
