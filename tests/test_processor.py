"""The kind of the processor, as Linux describes it on common machines."""

from __future__ import annotations

import pytest

from wirelessfl.processor import is_wide_amd, is_wide_intel, name_of, processor_name

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu sse2 avx avx2 avx512f{further}

processor\t: 1
model\t\t: 1
model name\t: another
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd crc32\nCPU architecture: 8\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (X86.format(further=""), "Intel(R) Xeon(R) Processor, family 6, model 143, avx512f"),
        (X86.format(further=" amx_tile"), "Intel(R) Xeon(R) Processor, family 6, model 143, amx_tile"),
        (ARM, "asimd"),
        ("", ""),
        ("nothing that is known", ""),
    ],
)
def test_model_and_instructions_are_told(text: str, name: str) -> None:
    assert name_of(text) == name


def test_this_one_has_a_name() -> None:
    assert processor_name()


def test_a_gpu_is_told_behind_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: f"a GPU at {device}")
    assert processor_name("cuda") == f"{processor_name()}; a GPU at cuda"
    processor_name.cache_clear()


@pytest.mark.parametrize(
    ("processor", "wide"),
    [
        ("AMD EPYC 9655, family 26, model 2, avx512f", "AMD"),
        ("AMD Ryzen AI, family 27, model 1, avx512f", "AMD"),
        ("AMD EPYC, family 26, model 2, avx2", None),
        ("AMD EPYC 9654, family 25, model 17, avx512f", None),
        ("AMD EPYC, family 25, model 1, avx2", None),
        ("Intel(R) Xeon(R) Processor, family 6, model 143, amx_tile", "Intel"),
        ("Intel(R) Xeon(R) Processor, family 6, model 207, avx512f", "Intel"),
        ("Intel(R) Core(TM), family 6, model 183, avx2", None),
        ("family 26, avx512f", None),
        ("arm64", None),
        ("", None),
    ],
)
def test_processors_that_compute_with_512_bits(processor: str, wide: str | None) -> None:
    assert (is_wide_amd(processor), is_wide_intel(processor)) == (wide == "AMD", wide == "Intel")
