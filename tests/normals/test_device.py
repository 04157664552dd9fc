"""The normals of a GPU beside those of a CPU, as far as that can be seen without one.

Torch's operations run on a CPU. The Triton kernel runs in Triton's interpreter and is compiled, not run, for GPUs; its
tests are skipped where Triton is missing (`pip install --no-deps --target FOLDER triton` and FOLDER on the path).
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import wirelessfl
from tests.statistics import assert_follows, shifted
from wirelessfl.normals import fused, fused_works, nonces, operations, portable, state_words
from wirelessfl.privacy.clipping import Constant
from wirelessfl.privacy.clipping.conformance import ExampleStep
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism, NoiseMechanism
from wirelessfl.streams import Streams

KEY = bytes(range(32))
CLIENTS = np.array([7, 2**40 + 1, 2**62 + 2**31, 3])


@pytest.fixture(params=["operations", "Triton"])
def add(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Either way to add normals on a device, on a CPU."""
    return operations.add_by_operations if request.param == "operations" else interpreted(monkeypatch).add_fused


def interpreted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernel's module with the kernel in Triton's interpreter."""
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    spec = importlib.util.spec_from_file_location("interpreted", str(fused.__file__))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sent(clients: NDArray[np.int64], key: bytes = KEY) -> tuple[Tensor, Tensor]:
    head, members = state_words(key, clients)
    return torch.from_numpy(head), torch.from_numpy(members)


def expected(base: NDArray[np.float32], std: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    """``base`` (k, d) with the noise of the first k clients as NumPy draws it."""
    result = base.copy()
    portable.add_portably(result, std, KEY, nonces(CLIENTS[: len(base)], step))
    return result


def as_words(key_stream: Tensor) -> NDArray[np.uint32]:
    """(k, blocks · 16) in the order of the cipher."""
    by_block = key_stream.permute(1, 2, 0).contiguous().numpy().view(np.uint32)
    return by_block.reshape(len(by_block), -1)


@pytest.mark.parametrize(
    ("key", "counter", "nonce", "block"),
    [
        (  # RFC 8439, Section 2.3.2
            KEY,
            1,
            (0x09000000, 0x4A000000, 0),
            "e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3"
            "466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2",
        ),
        (  # RFC 8439, Appendix A.1, test vector 1
            bytes(32),
            0,
            (0, 0, 0),
            "ade0b876 903df1a0 e56a5d40 28bd8653 b819d2bd 1aed8da0 ccef36a8 c70d778b"
            "7c5941da 8d485751 3fe02477 374ad8b8 f4b8436a 1ca11815 69b687c3 8665eeb2",
        ),
    ],
)
def test_blocks_are_those_of_the_standard(key: bytes, counter: int, nonce: tuple[int, int, int], block: str) -> None:
    head, _ = sent(CLIENTS, key)
    members = torch.tensor([nonce[:2]], dtype=torch.int32)
    words = as_words(operations.key_stream(head, members, nonce[2], counter, 1))
    assert " ".join(f"{word:08x}" for word in words[0]).replace(" ", "") == block.replace(" ", "")


@pytest.mark.parametrize("first", [0, 5, 2**31 - 3, 2**31, 2**32 - 7])
@pytest.mark.parametrize("step", [0, 1, 2**31 - 1])
def test_words_are_those_of_the_cipher(first: int, step: int) -> None:
    words = as_words(operations.key_stream(*sent(CLIENTS), step, first, 7))
    for row, nonce in zip(words, nonces(CLIENTS, step), strict=True):
        start = first.to_bytes(4, "little") + nonce.astype("<u4").tobytes()
        stream = Cipher(algorithms.ChaCha20(KEY, start), mode=None).encryptor().update(bytes(7 * 64))
        np.testing.assert_array_equal(row, np.frombuffer(stream, dtype="<u4"))


@pytest.mark.parametrize("columns", [1, 2, 127, 129, 256, 257, 2049])
def test_the_numbers_are_those_of_the_cpu_bit_for_bit(add: Callable[..., None], columns: int) -> None:
    base = np.random.default_rng(6).standard_normal((4, columns), dtype=np.float32)
    std = np.array([0.7, 0.0, 3.0, 1e-3], dtype=np.float32)
    found = torch.from_numpy(base.copy())
    for step in (0, 1, 77):
        before = found.numpy().copy()
        add(found, torch.from_numpy(std), *sent(CLIENTS), step)
        np.testing.assert_array_equal(found.numpy(), expected(before, std, step))
        assert np.array_equal(found[1], base[1])


def test_float64_and_rows_with_gaps(add: Callable[..., None]) -> None:
    wide = torch.zeros(3, 2 * 700 + 9, dtype=torch.float64)
    rows = wide[:, 3:-6:2]
    add(rows, torch.ones(3, dtype=torch.float64), *sent(CLIENTS[:3]), 4)
    normals = expected(np.zeros((3, 700), np.float32), np.ones(3, np.float32), 4)
    np.testing.assert_array_equal(rows.numpy(), normals)
    assert not wide[:, 4:-6:2].any() and not wide[:, :3].any() and not wide[:, -6:].any()
    third = torch.full((3,), 1 / 3, dtype=torch.float64)
    add(rows, third, *sent(CLIENTS[:3]), 4)
    np.testing.assert_array_equal(rows.numpy(), normals + normals * np.float64(1 / 3))


def test_a_row_does_not_depend_on_the_others(add: Callable[..., None]) -> None:
    together, alone = torch.zeros(4, 3000), torch.zeros(1, 1000)
    add(together, torch.ones(4), *sent(CLIENTS), 1)
    add(alone, torch.ones(1), *sent(CLIENTS[1:2]), 1)
    assert torch.equal(together[1, :1000], alone[0])
    assert len({tuple(row[:4].tolist()) for row in together}) == 4
    add(together[:0], torch.ones(0), *sent(CLIENTS[:0]), 1)


@pytest.mark.parametrize("numbers", [1, 700, 3 * 2048])
def test_pieces_do_not_matter(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "NUMBERS", numbers)
    found, std = torch.zeros(4, 1999), np.array([1.0, 2.0, 0.0, 0.5], np.float32)
    operations.add_by_operations(found, torch.from_numpy(std), *sent(CLIENTS), 3)
    np.testing.assert_array_equal(found.numpy(), expected(np.zeros((4, 1999), np.float32), std, 3))


def test_words_of_all_kinds_give_the_numbers_of_the_cpu() -> None:
    generator = np.random.default_rng(7)
    edges = (2 ** np.arange(32)[:, None] + np.array([-1, 0, 1])).ravel()
    words = np.concatenate([edges % 2**32, generator.integers(2**32, size=10**5)]).astype(np.uint32)
    there = torch.from_numpy(words.view(np.int32))
    np.testing.assert_array_equal(operations.radii(there), portable.radii(words))
    np.testing.assert_array_equal(operations.cosine_and_sine(there), portable.cosine_and_sine(words))


def test_numbers_are_within_their_tolerance_of_the_exact_ones() -> None:
    """The logarithm is right to 4 roundings of 2⁻²³, its root to 2 and one half, sine and cosine to 2 of 1."""
    words = np.random.default_rng(8).integers(2**32, size=(2, 10**5), dtype=np.uint32)
    there = torch.from_numpy(words.view(np.int32))
    u, angle = ((words[0] >> 1) + 0.5) * 2.0**-31, words[1] * (2 * np.pi * 2.0**-32)
    radius, cosine = operations.radii(there[0]), operations.cosine_and_sine(there[1])[0]
    exact = np.sqrt(-2 * np.log(u))
    error = np.abs((radius * cosine).double().numpy() - exact * np.cos(angle))
    # Beside the polynomials', u near 1 is rounded to 2⁻²⁴, by which ln u, and so a small radius, is off in full.
    assert np.all(error <= 5 * 2.0**-23 * exact + 2.0**-24 / exact)


def test_the_law_is_standard_normal() -> None:
    out = torch.zeros(4, 100_001)
    operations.add_by_operations(out, torch.ones(4), *sent(CLIENTS, Streams(shifted(3))._digest("k", 32)), 2)
    assert_follows(out.double().numpy(), stats.norm.cdf)


class Recorder(TorchDispatchMode):
    """Operations: how many, which of them take something of the host to a device, and the largest new result."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self.crossings: list[str] = []
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += 1
        of_host = any(isinstance(value, Tensor) and value.device.type == "cpu" for value in args)
        if isinstance(result, Tensor) and result.device.type != "cpu":
            self.crossings += [func.overloadpacket.__name__] if of_host else []
            if func._schema.returns[0].alias_info is None:
                self.largest = max(self.largest, result.nbytes)
        return result


def recorded(
    mechanism: NoiseMechanism, clients: NDArray[np.int64], dimension: int, seed: int, active: tuple[int, ...]
) -> Recorder:
    """Steps of the first few of some clients on torch's meta device, where to ask for a value raises."""
    recorder = Recorder()
    for step, count in enumerate(active):
        rows = torch.ones(count, device="meta")
        total = torch.empty(count, dimension, device="meta")
        with recorder:
            mechanism.add(total, rows, ExampleStep(Streams(seed), 1, step, clients[:count], rows))
    return recorder


@pytest.mark.parametrize(
    "mechanism", [GaussianMechanism(Constant(1.0)), MeanGaussianMechanism(0.5), HaarMechanism(Constant(1.0))], ids=repr
)
def test_a_block_of_clients_is_sent_once_and_the_device_is_asked_for_nothing(mechanism: NoiseMechanism) -> None:
    recorded(mechanism, np.arange(2), 3000, 1, (2,))  # what is made once and kept
    few = recorded(mechanism, np.arange(3), 3000, 1, (3, 3, 2))
    many = recorded(mechanism, np.arange(300), 3000, 1, (300, 300, 2))
    assert few.crossings == many.crossings == ["_to_copy"]
    assert few.count == many.count
    assert recorded(mechanism, np.arange(300), 3000, 2, (300,)).crossings == ["_to_copy"]  # another key


@pytest.mark.parametrize(("clients", "dimension"), [(12, 10**6), (1, 10**7)])
def test_numbers_are_drawn_in_pieces_of_bounded_size(clients: int, dimension: int) -> None:
    recorder = recorded(GaussianMechanism(Constant(1.0)), np.arange(clients), dimension, 1, (clients,))
    assert recorder.largest <= 4 * operations.NUMBERS < 4 * clients * dimension


@pytest.mark.slow
def test_haar_noise_is_transformed_in_pieces_of_bounded_size() -> None:
    recorder = recorded(HaarMechanism(Constant(1.0)), np.arange(70), 10**6, 1, (70,))
    assert recorder.largest <= 2**28 < 4 * 70 * 2**20


def test_a_kernel_that_fails_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(fused, "THERE", True)

    def works(add_fused: Callable[..., None]) -> bool:
        monkeypatch.setattr(fused, "add_fused", add_fused)
        return fused_works.__wrapped__(cpu)

    def forgets_the_step(out: Tensor, std: Tensor, head: Tensor, members: Tensor, step: int) -> None:
        operations.add_by_operations(out, std, head, members, 0)

    def raises(*arguments: object) -> None:
        raise OSError("no compiler")

    assert works(operations.add_by_operations)
    with pytest.warns(RuntimeWarning, match="other numbers"):
        assert not works(forgets_the_step)
    with pytest.warns(RuntimeWarning, match="OSError: no compiler"):
        assert not works(raises)
    monkeypatch.setattr(fused, "THERE", False)
    assert not works(raises)


@pytest.mark.slow
def test_triton_is_imported_where_it_is_needed_only() -> None:
    """By one module, which on a CPU nothing imports."""
    package = Path(wirelessfl.__file__).parent
    naming = [
        path.name for path in package.rglob("*.py") if re.search(r"^\s*(import|from) triton", path.read_text(), re.M)
    ]
    assert naming == ["fused.py"]
    program = (
        "import sys, numpy, torch; from wirelessfl.streams import Streams;"
        "from wirelessfl.normals import add_normal;"
        "add_normal(torch.zeros(1, 5), torch.ones(1), Streams(1), 'noise', 1, numpy.arange(1), 0);"
        "assert not {'triton', 'wirelessfl.normals.fused'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": str(package.parent)})


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_the_compiled_kernel_rounds_every_operation_by_itself(
    dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Compiled, which needs no GPU, for the H100 and H200: nothing is contracted or approximate.

    Some versions of Triton flush numbers below 10⁻³⁸ under the square root to zero; there are none between 0 and 10⁻⁷.
    """
    triton = pytest.importorskip("triton")
    compiler, backend = pytest.importorskip("triton.compiler"), pytest.importorskip("triton.backends.compiler")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"out": f"*{dtype}", "std": f"*{dtype}", "head": "*i32", "members": "*i32", "BLOCKS": "constexpr"}
    signature = {name: types.get(name, "i32") for name in fused._add_normals.arg_names}
    source = compiler.ASTSource(fused._add_normals, signature, {"BLOCKS": 128})
    target = backend.GPUTarget("cuda", 90, 32)
    code = triton.compile(source, target=target, options={"enable_fp_fusion": False}).asm["ptx"]
    arithmetic = set(re.findall(r"\b(?:fma|mad|mul|add|sub|sqrt|div|rcp|ex2|lg2|sin|cos)\.\S*f32", code))
    assert arithmetic - {"sqrt.rn.ftz.f32"} <= {"mul.rn.f32", "add.rn.f32", "sub.rn.f32", "sqrt.rn.f32"}
    assert len(arithmetic) == 4
