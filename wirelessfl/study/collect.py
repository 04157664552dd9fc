"""Table of all rounds of all runs, and the picture of a study, from its traces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wirelessfl.outputs import replacing
from wirelessfl.study.factors import column_texts, is_number, value_text
from wirelessfl.study.figure import draw_study
from wirelessfl.study.file import METRICS
from wirelessfl.study.record import RunRecord
from wirelessfl.study.result import Study
from wirelessfl.summary.axes import transmit_energy
from wirelessfl.summary.style import FigureOptions
from wirelessfl.trace import at_slot_start, read_values, trace_errors

_ROWS_AT_ONCE = 100_000


def write_results(study: Study, figures: FigureOptions) -> None:
    """Write of study.parquet and the study's figure, from the traces of the complete runs.

    Args:
        study: The study.
        figures: Format and width of the figure.

    Raises:
        OutputError: the place cannot be written.
    """
    write_table(study)
    write_figure(study, figures, figures.file(study.folder.figure))


def write_figure(study: Study, figures: FigureOptions, file: Path) -> None:
    """Write of the figure of a study whose table is written; nothing with the format "none".

    Raises:
        OutputError: the place cannot be written, or the study has not ended.
    """
    if figures.drawn:
        with replacing(file) as new:
            draw_study(study, new, figures.width_in)


def write_table(study: Study) -> None:
    """Write of study.parquet: one row a run and round, in the order of the design.

    Columns: ``run``, one for each key that varies, ``seed``, ``round``, every per-round variable of the trace, and
    ``tx_energy``, what all clients sent (noise = 1). A key whose values are no plain numbers or truth values is text;
    study.json has mappings in full. No more than a few runs are in memory at a time.
    """
    keys = _key_columns(study)
    schema = pa.schema(
        [
            ("run", pa.string()),
            *((name, kind) for name, (kind, _) in keys.items()),
            ("seed", pa.int64()),
            ("round", pa.int64()),
            *((name, pa.int64() if name == "participants" else pa.float64()) for name in (*METRICS, "tx_energy")),
        ]
    )
    with replacing(study.folder.table) as new, pq.ParquetWriter(new, schema) as writer:
        for batch in _batches(study):
            rows = [_rows(study, record, columns, keys, schema) for record, columns in batch]
            writer.write_table(pa.concat_tables(rows).combine_chunks())


def _key_columns(study: Study) -> dict[str, tuple[pa.DataType, list[Any]]]:
    # By varied key: the type of its column, and its value at every level of its factor
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {}
    for factor in study.factors:
        for index, name in enumerate(factor.keys):
            values = [level[index] for level in factor.levels]
            known = [value for value in values if value is not None]
            if all(isinstance(value, bool) for value in known):
                columns[name] = (pa.bool_(), values)
            elif all(is_number(value) for value in known):
                whole = all(isinstance(value, int) for value in known)
                columns[name] = (pa.int64() if whole else pa.float64(), values)
            elif all(isinstance(value, dict) for value in values):
                columns[name] = (pa.string(), column_texts(values))
            else:
                columns[name] = (pa.string(), [None if value is None else value_text(value) for value in values])
    return columns


def _batches(study: Study) -> Iterator[list[tuple[RunRecord, dict[str, NDArray[Any]]]]]:
    batch: list[tuple[RunRecord, dict[str, NDArray[Any]]]] = []
    rows = 0
    for record in study.complete:
        path = study.folder.trace(record.run)
        with read_values(path) as trace, trace_errors(path):
            # By round, at the beginning of its slot; NaN where an earlier version did not record it
            columns = {
                "round": trace["round"].values,
                **{
                    name: at_slot_start(trace[name]) if name in trace else np.full(trace.sizes["round"], np.nan)
                    for name in METRICS
                },
                "tx_energy": transmit_energy(trace),
            }
        batch.append((record, columns))
        rows += len(columns["round"])
        if rows >= _ROWS_AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _rows(
    study: Study,
    record: RunRecord,
    columns: dict[str, NDArray[Any]],
    keys: dict[str, tuple[pa.DataType, list[Any]]],
    schema: pa.Schema,
) -> pa.Table:
    level_of = {name: level for factor, level in zip(study.factors, record.levels, strict=True) for name in factor.keys}
    fixed = {"run": record.run, "seed": record.seed}
    fixed |= {name: values[level_of[name]] for name, (_, values) in keys.items()}
    arrays = [
        pa.array([fixed[field.name]] * len(columns["round"]), field.type)
        if field.name in fixed
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)
