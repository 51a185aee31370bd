# SPDX-License-Identifier: Apache-2.0
"""The contract as C: constants of what it says, and the tables that make the input of a camera's frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from arenite.contract import Contract
from arenite_codegen.camera import Preprocessing
from arenite_codegen.render import render

__all__ = ["CAMERA_SOURCES", "contract_files"]

CAMERA_SOURCES = ("arenite_camera.h", "arenite_camera.c", "arenite_pixels.h")
"""Hand-written C of every bundle with a camera, beside the file that reads its format."""


def contract_files(symbol: str, contract: Contract | None, camera: Preprocessing | None) -> Mapping[str, str]:
    """Generated files of one model by name; none without a contract.

    Args:
        symbol: The model's name in C.
        camera: Its preprocessing, if it has a camera.
    """
    if contract is None:
        return {}
    shape = contract.input.shape
    height, width = (shape[1:3] if contract.input.layout == "NHWC" else shape[2:4]) if len(shape) == 4 else (0, 0)
    context = {
        "symbol": symbol,
        "contract": contract,
        "digest": hashlib.sha256(contract.to_json().encode()).hexdigest(),
        "width": width,
        "height": height,
    }
    files = {f"{symbol}_contract.h": render("contract.h.j2", context)}
    if camera is not None:
        values = {"symbol": symbol, **camera.context()}
        files |= {f"{symbol}_camera.{suffix}": render(f"camera.{suffix}.j2", values) for suffix in "hc"}
    return files
