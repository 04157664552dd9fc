"""The engine's text: no tensor made of numbers and no value read, but where the reason is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wirelessfl
from tests.learning.device_lint import Finding, findings

PACKAGE = Path(wirelessfl.__file__).parent
ENGINE = (
    *("learning/cohort", "learning/private", "learning/optimizers.py", "learning/flat.py"),
    *("learning/population.py", "learning/evaluation.py", "radio/superposition.py", "privacy/clipping"),
    *("privacy/mechanisms/gaussian.py", "privacy/mechanisms/haar.py", "privacy/mechanisms/haar_norms"),
    *("privacy/mechanisms/haar_noise", "normals/operations.py", "transfers.py"),
)
HOST = {"peak.py", "planning.py", "memory.py", "execution.py", "conformance.py"}
"""Files that hold no tensor of a device, or that no run calls."""

UPLOAD, REPORT = "numbers of the host, before the upload", "numbers of the host, after the report"
SENT = "numbers of the host, for a worker in another process"
LOOK = "on a CPU, or where a block is repeated, alone"
ALLOWED: dict[str, dict[Finding, str]] = {
    "transfers.py": {
        Finding("aligned", "tensor"): UPLOAD,
        Finding("sent", "from_numpy"): UPLOAD,
        Finding("upload", "from_numpy"): UPLOAD,
        Finding("pack", "from_numpy"): UPLOAD,
        Finding("unpack", "from_numpy"): UPLOAD,
        Finding("download", "numpy"): "the report",
        Finding("_on_host", "cpu"): "the report, of a device that is no GPU",
        Finding("_on_host", "synchronize"): "the report",
    },
    "learning/cohort/block.py": {
        Finding("BlockData.of", "numpy"): UPLOAD,
        Finding("_consecutive", "int"): UPLOAD,
        Finding("_per_step", "tolist"): UPLOAD,
        Finding("_per_step", "int"): UPLOAD,
        Finding("_with_counts", "tolist"): "on a CPU alone",
        Finding("_with_counts", "int"): "on a CPU alone",
        Finding("_with_counts", "from_numpy"): "on a CPU alone",
    },
    "learning/cohort/engine.py": {
        Finding("train_cohort", "numpy"): UPLOAD,
        Finding("Cohort.part", "numpy"): SENT,
        Finding("Cohort.part", "cpu"): SENT,
        Finding("_rows_of", "numpy"): UPLOAD,
        Finding("_rows_of", "from_numpy"): UPLOAD,
    },
    "learning/cohort/gram/__init__.py": {Finding("_compiled_agrees", "bool"): "on a CPU alone"},
    "learning/cohort/patches/__init__.py": {Finding("_compiled_agrees", "equal"): "on a CPU alone"},
    "learning/cohort/pooling/__init__.py": {Finding("_compiled_agrees", "equal"): "on a CPU alone"},
    "learning/cohort/products.py": {
        Finding("add_product", "numpy"): "on a CPU alone",
        Finding("batched_product", "numpy"): "on a CPU alone",
    },
    "learning/cohort/run.py": {
        Finding("Trained.report", "from_numpy"): REPORT,
        Finding("clip_rows", "bool"): LOOK,
    },
    "learning/cohort/softmax_regression/__init__.py": {Finding("_can_be_read", "int"): "on a CPU alone"},
    "learning/private/descent.py": {Finding("descent_bound", "float"): "numbers of the host, before the first round"},
    "learning/private/transform.py": {
        Finding("PrivateGradients.__call__", "bool"): LOOK,
        Finding("FiniteGradients.weighted_sum", "tensor"): LOOK,
        Finding("FiniteGradients.weighted_sum", "repeat_interleave"): LOOK,
        Finding("proxy_median_norm", "float"): REPORT,
    },
    "learning/optimizers.py": {Finding("AdaGrad.step", "tensor"): "on a CPU alone"},
    "learning/population.py": {
        Finding("PartitionedData.shards", "from_numpy"): UPLOAD,
        Finding("SyntheticPopulation.shards", "from_numpy"): UPLOAD,
    },
    "learning/evaluation.py": {Finding("evaluate", "tolist"): "the one report of an evaluation"},
    "radio/superposition.py": {
        Finding("Superposition.received", "cpu"): "what the server heard: one vector a slot",
        Finding("row_norms", "cpu"): "one number a client, for powers that follow from norms",
        Finding("_on_host", "cpu"): "the sum of a block that other processes trained, or that goes there: one vector",
        Finding("_like", "new_tensor"): "on the host, to be sent from pinned memory",
        Finding("_side_by_side", "tolist"): "edges of ranges, on the host",
    },
    "privacy/mechanisms/haar_norms/__init__.py": {Finding("_compiled_agrees", "equal"): "on a CPU alone"},
    "privacy/mechanisms/haar_norms/pieces.py": {
        Finding("_energy", "numpy"): "on a CPU alone",
        Finding("_energy", "from_numpy"): "on a CPU alone",
    },
    "privacy/mechanisms/haar_noise/__init__.py": {
        Finding("add_haar_noise", "numpy"): "on a CPU alone",
        Finding("_compiled_agrees", "equal"): "on a CPU alone",
        Finding("_compiled_agrees", "from_numpy"): "on a CPU alone",
    },
    "normals/operations.py": {
        Finding("logarithm", "int"): "a constant",
        Finding("logarithm", "float"): "a constant",
        Finding("cosine_and_sine", "float"): "a constant",
    },
    "privacy/clipping/adaptive.py": {
        Finding("moo_clips", "numpy"): "on a CPU alone",
        Finding("moo_clips", "from_numpy"): "on a CPU alone",
    },
    "privacy/clipping/base.py": {
        Finding("Geometric.at", "float"): "a public number of the host",
    },
}


def engine() -> Iterator[Path]:
    for name in ENGINE:
        path = PACKAGE / name
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        yield from (file for file in files if file.name not in HOST)


@pytest.mark.parametrize("path", list(engine()), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_file_of_the_engine(path: Path) -> None:
    """Nothing that is not allowed, and nothing allowed that is no longer there."""
    found = set(findings(path.read_text(encoding="utf-8")))
    assert found == set(ALLOWED.get(path.relative_to(PACKAGE).as_posix(), {}))


def test_what_is_allowed_lies_in_the_engine() -> None:
    assert set(ALLOWED) <= {path.relative_to(PACKAGE).as_posix() for path in engine()}


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        ("torch.tensor([1.0, 2.0], device=there.device)", "tensor"),
        ("torch.as_tensor(3, device=there.device)", "as_tensor"),
        ("there.new_tensor(clip)", "new_tensor"),
        ("torch.from_numpy(rows).to(there.device)", "from_numpy"),
        ("there.sum().item()", "item"),
        ("there.tolist()", "tolist"),
        ("torch.cuda.synchronize()", "synchronize"),
        ("there.cpu()", "cpu"),
        ("there.detach().numpy()", "numpy"),
        ("torch.equal(there, there)", "equal"),
        ("bool((there > 0).any())", "bool"),
        ("float(there[0])", "float"),
        ("int(there.max())", "int"),
        ("there.nonzero()", "nonzero"),
        ("torch.unique(there)", "unique"),
        ("there.repeat_interleave(sizes)", "repeat_interleave"),
        ("there[[0, 2]]", "index by a list"),
        ("there[:, [0, 2]]", "index by a list"),
        ("there[[row for row in rows]]", "index by a list"),
        ("there[0] = 1.0", "number into a tensor"),
        ("there[rows, 2] = -1", "number into a tensor"),
        ("there[3] += 2", "number into a tensor"),
    ],
)
def test_the_lint_finds_what_is_planted(planted: str, what: str) -> None:
    source = f"class Engine:\n    def step(self, there):\n        x = 1\n        {planted}\n"
    assert findings(source) == [Finding("Engine.step", what)]


@pytest.mark.parametrize(
    "innocent",
    [
        "there[0:3, None].mul_(2.0)",
        "there[rows] = there[rows] * 2.0",
        "torch.full((), 1.0, device=there.device)",
        "there.new_full((3,), 0.5)",
        "float('inf')",
        "np.asarray(rows)",
        "np.repeat(rows, [1, 2])",
        "np.unique(rows)",
        "there[first]",
        "work: Callable[[Tensor], Tensor]",
    ],
)
def test_the_lint_leaves_alone_what_stays_where_it_is(innocent: str) -> None:
    assert findings(innocent) == []
