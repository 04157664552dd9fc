"""The costs of secure aggregation are counted to the bit."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.secagg_costs import DIMENSION, QUICK, draw, measure, seeded_round, shared_round, write_csv

HEADER = 8 * (1 + 16 + 4 + 4 + 16)  # kind, session, sender, receiver, tag
NAME, KEY, SHARE = 32, 256, 9 * 32
SEALED = 2 * SHARE + 128  # the shares of two secrets, and the tag of their encryption


@pytest.mark.parametrize("n", [5, 9])
def test_everybody_with_everybody(n: int) -> None:
    """Four stages; nobody is lost. The masked inputs count without their elements."""
    cost = shared_round("secagg", n, lost=0)
    others = n - 1
    up = [2 * KEY, others * (NAME + SEALED), 0, n * (NAME + SHARE)]
    down = [others * (NAME + 2 * KEY), others * (NAME + SEALED), n * NAME]
    assert cost.bits == n * sum(HEADER + bits for bits in (*up, *down))
    assert cost.messages == 7 * n and cost.neighbours == others


def test_neighbours_alone() -> None:
    """On k neighbours in place of n - 1; one client vanishes before its masked input."""
    n, lost = 20, 1
    cost = shared_round("secagg_plus", n, lost)
    k = cost.neighbours
    assert k < n - 1
    shared = [2 * KEY, k * (NAME + 2 * KEY), k * (NAME + SEALED), k * (NAME + SEALED)]
    survivors = [0, (k + 1) * NAME, (k + 1) * (NAME + SHARE)]
    assert cost.bits == n * sum(HEADER + b for b in shared) + (n - lost) * sum(HEADER + b for b in survivors)
    assert cost.messages == 4 * n + 3 * (n - lost)


def test_seeds_once_and_one_message_a_round() -> None:
    n = 7
    cost = seeded_round(n)
    assert cost.set_up_bits == n * (HEADER + KEY) + n * (HEADER + (n - 1) * (NAME + KEY))
    assert cost.bits == n * (HEADER + n * NAME) + n * HEADER
    assert cost.messages == 2 * n


def test_table_and_pictures(tmp_path: Path) -> None:
    costs = list(measure(QUICK))
    write_csv(costs, tmp_path / "costs.csv")
    with (tmp_path / "costs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["protocol"], int(row["n"])) for row in rows] == [
        (name, n) for name, all_n in QUICK.items() for n in all_n
    ]
    assert [int(row["bits"]) for row in rows] == [cost.bits for cost in costs]
    draw(costs, tmp_path)
    assert (tmp_path / "secagg-costs.png").read_bytes().startswith(b"\x89PNG")
    picture = (tmp_path / "secagg-costs.svg").read_text(encoding="utf-8")
    draw(costs, tmp_path)
    assert (tmp_path / "secagg-costs.svg").read_text(encoding="utf-8") == picture  # nothing but the numbers in it
    assert all(name in picture for name in ("secagg_plus", "n log n", "clients n"))
    assert max(cost.bits / cost.n for cost in costs if cost.protocol == "pairwise_prf") < DIMENSION * 32


def test_the_published_table_is_that_of_this_code() -> None:
    """Bits do not depend on the machine: what is in the results is what is counted now."""
    path = Path(__file__).resolve().parents[2] / "results" / "benchmarks" / "secagg-costs.csv"
    with path.open(encoding="utf-8") as file:
        recorded = {(row["protocol"], int(row["n"])): row for row in csv.DictReader(file)}
    sizes = dict.fromkeys(QUICK, (10,))
    for cost in measure(sizes):
        row = recorded[cost.protocol, cost.n]
        assert {"bits": cost.bits, "messages": cost.messages, "set_up_bits": cost.set_up_bits} == {
            name: int(row[name]) for name in ("bits", "messages", "set_up_bits")
        }
