"""The table of what is remembered of nodes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.memory import Memory, NodeMemory, forgotten

node_lists = st.lists(st.integers(0, 10**12), unique=True, max_size=8)


def table() -> NodeMemory:
    return NodeMemory(place=np.full(2, np.nan), count=0, gain=0j)


def filled(nodes: np.ndarray, offset: int = 0) -> dict[str, np.ndarray]:
    count = nodes + offset
    return {"place": np.stack([count, -count], axis=1) / 3, "count": count, "gain": count * (1 + 2j)}


@given(writes=st.lists(node_lists, max_size=6), asked=node_lists)
def test_it_behaves_like_a_dictionary(writes: list[list[int]], asked: list[int]) -> None:
    memory, model = table(), {}
    for offset, nodes in enumerate(writes):
        array = np.array(nodes, dtype=np.int64)
        memory.write(array, **filled(array, offset))
        model.update(dict.fromkeys(nodes, offset))
    known, columns = memory.recall(np.array(asked, dtype=np.int64))
    assert known.tolist() == [node in model for node in asked]
    for row, node in enumerate(asked):
        if node not in model:
            assert np.isnan(columns["place"][row]).all() and columns["count"][row] == 0
            continue
        expected = filled(np.array([node]), model[node])
        assert all(np.array_equal(columns[name][row], expected[name][0]) for name in expected)


@given(nodes=node_lists, later=node_lists)
def test_a_restored_table_goes_on_in_the_same_way(nodes: list[int], later: list[int]) -> None:
    first, second = table(), table()
    array, more = np.array(nodes, dtype=np.int64), np.array(later, dtype=np.int64)
    first.write(array, **filled(array))
    second.restore(first.state())
    for memory in (first, second):
        memory.write(more, **filled(more, 7))
    one, other = first.state(), second.state()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one)


def test_what_is_read_is_a_copy() -> None:
    memory, nodes = table(), np.array([4])
    memory.write(nodes, **filled(nodes))
    memory.recall(nodes)[1]["count"][:] = 99
    memory.state()["count"][:] = 99
    assert memory.recall(nodes)[1]["count"] == 4


def test_only_nodes_that_were_written_have_rows() -> None:
    memory = table()
    memory.recall(np.arange(1000))
    memory.write(np.array([10**9]), **filled(np.array([10**9])))
    assert [len(column) for column in memory.state().values()] == [1, 1, 1, 1]


def test_a_trial_leaves_no_trace() -> None:
    memory, nodes = table(), np.array([1, 2])
    assert isinstance(memory, Memory)
    memory.write(nodes, **filled(nodes))
    with forgotten({"it": memory}):
        memory.write(np.array([2, 3]), **filled(np.array([2, 3]), 5))
    assert memory.recall(np.array([1, 2, 3]))[0].tolist() == [True, True, False]
    assert memory.recall(nodes)[1]["count"].tolist() == [1, 2]
