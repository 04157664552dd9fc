"""Names of the compiled kernels in a trace."""

from pathlib import Path

import pytest

import wirelessfl
from wirelessfl.assembly import compiled
from wirelessfl.learning.cohort import gram


def test_every_kernel_in_c_is_named() -> None:
    sources = Path(wirelessfl.__file__).parent.rglob("kernel.c")
    assert sorted(compiled._KERNELS) == sorted(source.parent.name for source in sources)


def test_a_kernel_that_is_absent_is_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = compiled.compiled_kernels()
    gram.kernel.cache_clear()
    monkeypatch.setattr(gram, "LIBRARY", tmp_path / "kernel.bin")
    try:
        assert compiled.compiled_kernels() == [name for name in before if name != "gram"]
    finally:
        gram.kernel.cache_clear()
