"""No stable name goes away unnoticed."""

from __future__ import annotations

from tests.golden.surfaces import surfaces, written


def test_every_stable_name_is_still_there() -> None:
    now = surfaces()
    gone = {kind: missing for kind, names in written().items() if (missing := sorted(set(names) - set(now[kind])))}
    assert not gone, (
        f"{gone}: what docs/reference/stability.md calls stable is deprecated first; one that was goes with a line "
        "'Removed:' in CHANGELOG.md, and out of tests/golden/surfaces.json by hand"
    )


def test_all_kinds_are_written_down() -> None:
    assert written().keys() == surfaces().keys() and all(written().values())
