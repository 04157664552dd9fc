"""The YAML reader: its types, its places, and what it refuses."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.yamltree import MAX_BYTES, dump_yaml, inline_yaml, parse_yaml, read_text


def place(number: int) -> str:
    return f"f.yaml:{number}"


def parse(text: str) -> Any:
    return parse_yaml(text, place).tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.0e-5", 1e-5),
        ("1E5", 1e5),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("+3", 3),
        ("0", 0),
        ("1_000_000", 1_000_000),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("''", ""),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("[]", []),
        ("{}", {}),
        ("{1: a}", {1: "a"}),
        # the traps of YAML 1.1
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("e5", "e5"),
        ("1e", "1e"),
        ("=", "="),
        ("<<", "<<"),
        ("1__0", "1__0"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    found = parse(text)
    assert found == value
    assert type(found) is type(value)


def test_places_of_keys_items_and_aliases() -> None:
    document = parse_yaml("a: 1\nb:\n  c: [1,\n    2]\n  d: &x {e: 1}\nf: *x\n", place)
    places = {".".join(map(str, path)): text for path, text in document.places.items()}
    assert places["b"] == "f.yaml:2"
    assert places["b.c.0"] == "f.yaml:3"
    assert places["b.c.1"] == "f.yaml:4"
    assert places["f"] == "f.yaml:6"
    assert places["f.e"] == "f.yaml:5"
    assert document.place(("b", "c", 0, "deeper")) == "f.yaml:3"
    assert document.place(("unknown",)) == "f.yaml:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3: a: found the key a second time, after f.yaml:1; allowed: every key once"),
        ("a:\n  b: 1\n  b: 1", "f.yaml:3: a.b: found the key a second time, after f.yaml:2; allowed: every key once"),
        ("1: a\n!!int '1': b", "f.yaml:2: 1: found the key a second time"),
        ("a: !!python/object/apply:os.system ['true']", "f.yaml:1: a: found the tag !!python/object/apply:os.system;"),
        ("a: !!python/name:os.system", "found the tag !!python/name:os.system; allowed: plain values: no tag builds"),
        ("a: !mine 3", "f.yaml:1: a: found the tag !mine"),
        ("a: !!set {b}", "found the tag !!set"),
        ("a: !!timestamp 2024-01-01", "found the tag !!timestamp"),
        ("a: !!binary aGk=", "found the tag !!binary"),
        ("a: !!int x", "f.yaml:1: a: found x; allowed: a value of the type !!int"),
        ("a: .inf", "f.yaml:1: a: found .inf; allowed: a finite number"),
        ("a: -.INF", "allowed: a finite number"),
        ("a: [1, .nan]", "f.yaml:1: a.1: found .nan; allowed: a finite number"),
        ("a: 1e999", "f.yaml:1: a: found 1e999; allowed: a finite number"),
        ("a: " + "9" * 5000, "allowed: a value of the type !!int"),
        ("true: 1", "found a key that is neither text nor a whole number"),
        ("1.5: 1", "found a key that is neither text nor a whole number"),
        ("? [a]\n: 1", "found a key that is neither text nor a whole number"),
        ("? !mine a\n: 1", "found the tag !mine"),
        ("a: 1\n---\na: 2", "f.yaml:2: not valid YAML (but found another document); allowed: one valid YAML document"),
        ("a:\n\t- b", "f.yaml:2: not valid YAML (a tab where a line begins; indent with spaces)"),
        ("a: 1\n  b: 2", "f.yaml:2: not valid YAML (a key where none can stand: a line that is indented more than its"),
        ("a:\n  b: 1\n c: 2", "f.yaml:3: not valid YAML (a line whose indentation fits none of the lines above)"),
        ("a: 1\nb\nc: 2", "f.yaml:3: not valid YAML (a line that is neither a key with a colon nor"),
        ("a: [1", "f.yaml:1: not valid YAML"),
        ("a: *b", "f.yaml:1: not valid YAML (found undefined alias 'b')"),
        ("a: 1\nb: \x00", "f.yaml:2: found a control character; allowed: plain text"),
        ("&a [*a]", "found more than 24 levels of nesting"),
        ("a: &a {b: *a}", "found more than 24 levels of nesting"),
        ("[" * 30 + "]" * 30, "found more than 24 levels of nesting"),
        ("[" * 3000, "f.yaml:1: found nesting without end"),
        ("x" * (MAX_BYTES + 1), "found more than 128 KiB"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_small_file_cannot_expand_into_a_large_tree() -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 15)]
    with pytest.raises(ScenarioError, match="more than 20000 values, aliases expanded"):
        parse("\n".join(["a0: &a0 x", *levels]))


def test_an_empty_text_is_nothing() -> None:
    assert parse("") is None
    assert parse("# only a comment\n") is None


def test_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: x")
    assert parse(read_text(file)) == {"name": "x"}


def test_unreadable_files(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: x\n# Zürich\n".encode("latin-1"))
    utf16 = tmp_path / "utf16.yaml"
    utf16.write_bytes("name: x".encode("utf-16"))
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    expected = {
        latin: f"{latin}:2: found the byte 0xfc; allowed: UTF-8 text",
        utf16: "allowed: UTF-8 text",
        large: "found more than 128 KiB",
        tmp_path: f"{tmp_path}: cannot be read: Is a directory",
        tmp_path / "none.yaml": "cannot be read: No such file or directory",
        Path("/dev/zero"): "a pipe, socket or device",
    }
    for path, message in expected.items():
        with pytest.raises(ScenarioError) as caught:
            read_text(path)
        assert message in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("name: x")
    file.chmod(0)
    with pytest.raises(ScenarioError, match="cannot be read: Permission denied"):
        read_text(file)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=["Cs", "Cc"]))
    | st.sampled_from(
        ["1e5", "010", "yes", "off", "~", "null", "1:30", "2024-01-01", "0x1", "=", ".5", "1_0", "-", ""]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc1e5.", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_what_is_written_is_read_back(tree: object) -> None:
    text = dump_yaml(tree)
    assert parse(text) == tree
    assert yaml.safe_load(text) == tree, "an ordinary reader gets the same"
    assert math.isfinite(len(inline_yaml(tree)))


@given(plain)
def test_a_value_on_one_line_reads_back(tree: object) -> None:
    text = inline_yaml(tree, limit=10**6)
    assert "\n" not in text
    assert parse(text) == tree
    assert len(inline_yaml(tree, limit=40)) <= 40
