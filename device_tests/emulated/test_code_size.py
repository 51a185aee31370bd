# SPDX-License-Identifier: Apache-2.0
"""Flash beside the weights, of whole images for a Cortex-M4: start-up, serial link, executor, tables, kernels.

The bytes belong to the compiler named; docs/kernels.md has them for every level.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arenite.device import verify
from arenite.errors import MissingToolError
from arenite_codegen import bundle
from arenite_codegen.build import build

BOARD, COMPILER = "qemu-mps2-an386", "arm-none-eabi-gcc 12.2.1"
MOBILENET_V2 = "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq"
LIMIT_BYTES = {
    **{
        (f"mlperf_tiny/{name}", "size"): 16_000
        for name in ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8")
    },
    (MOBILENET_V2, "size"): 20_000,
    (MOBILENET_V2, "balanced"): 28_000,
}


@pytest.mark.reference
@pytest.mark.parametrize(("name", "optimise"), LIMIT_BYTES)
def test_code_stays_below_its_limit(shared_data: Path, tmp_path: Path, name: str, optimise: str) -> None:
    bundle(shared_data / f"{name}.tflite", BOARD, tmp_path / "b", vectors=1, optimise=optimise)
    try:
        report = build(tmp_path / "b", "gcc")
    except MissingToolError as error:
        pytest.skip(str(error))
    if report.toolchain != COMPILER:
        pytest.skip(f"the limit is that of {COMPILER}, this is {report.toolchain}")
    assert report.code_bytes <= LIMIT_BYTES[name, optimise]
    assert report.data_bytes == 0, "code that is copied to RAM lies in flash too"
    assert json.loads((tmp_path / "b" / "build" / "build.json").read_text())["optimize"] == optimise
    assert verify(tmp_path / "b").identical
