"""Which factor goes where in the picture of a study."""

from __future__ import annotations

import itertools

import pytest

from wirelessfl.study import Factor
from wirelessfl.study.factors import MOST_ROWS, lay_out, spread


def factor(key: str, levels: int) -> Factor:
    return Factor((key,), tuple((level,) for level in range(levels)))


@pytest.mark.parametrize(
    ("counts", "columns", "rows", "colours"),
    [
        ((), None, (), None),
        ((1,), None, (), None),
        ((3,), None, (), 0),
        ((1, 3), None, (), 1),
        ((2, 3), 0, (), 1),
        ((2, 3, 4, 5), 0, (1, 2), 3),
        ((1, 2, 1, 3, 1, 4, 1), 1, (3,), 5),
    ],
)
def test_what_varies_has_a_place(
    counts: tuple[int, ...], columns: int | None, rows: tuple[int, ...], colours: int | None
) -> None:
    layout = lay_out(tuple(factor(f"f{at}", count) for at, count in enumerate(counts)))
    assert (layout.columns, layout.rows, layout.colours) == (columns, rows, colours)


def test_every_point_is_in_one_panel_and_colour() -> None:
    layout = lay_out((factor("a", 2), factor("b", 1), factor("c", 3), factor("d", 4)))
    places = itertools.product(layout.row_combinations(), range(2), range(4))
    points = [layout.point(row, column, colour) for row, column, colour in places]
    assert sorted(points) == list(itertools.product(range(2), range(1), range(3), range(4)))


def test_too_many_rows_are_thinned_out_with_both_ends() -> None:
    layout = lay_out((factor("a", 2), factor("b", 5), factor("c", 5), factor("d", 2)))
    rows = layout.row_combinations()
    assert len(rows) == MOST_ROWS and rows[0] == (0, 0) and rows[-1] == (4, 4)
    assert layout.row_text((1, 2)) == "b = 1\nc = 2"


@pytest.mark.parametrize(("count", "expected"), [(0, []), (3, [0, 1, 2]), (5, [0, 2, 4]), (101, [0, 50, 100])])
def test_spread(count: int, expected: list[int]) -> None:
    assert spread(count, 3) == expected
