# SPDX-License-Identifier: Apache-2.0
"""What a Mac needs to say the rest: a script without Arenite, and golden vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import Contract
from arenite.coreml_package import eight_bit, read_package

__all__ = ["write_mac_folder"]

_VECTORS = 16
SCRIPT = Path(__file__).with_name("verify_on_mac.py")


def write_mac_folder(
    folder: Path,
    package: Path,
    contract: Contract,
    samples: Sequence[npt.NDArray[Any]],
    references: Sequence[npt.NDArray[Any]],
    limits: tuple[float, float],
) -> None:
    """Write `verify_on_mac.py` and `golden.npz`.

    Args:
        folder: Made when it is not there.
        package: Where the package is; the script looks for its name beside the folder.
        contract: Of the package.
        samples: Real values in the contract's shape.
        references: The trained model's output for each.
        limits: Least SQNR in decibels, least share of equal best classes.
    """
    file = read_package(package)
    picture = contract.input.picture
    chosen = range(0, len(samples), -(-len(samples) // _VECTORS))
    given = [samples[i] if picture is None else eight_bit(samples[i], picture.normalisation)[0] for i in chosen]
    about = {
        "package": package.name,
        "input": file.inputs[0].name,
        "output": next(feature.name for feature in file.outputs if feature.kind != "text"),
        "colour": None if picture is None else picture.colour,
        "labels": list(contract.outputs[0].labels),
        "min_sqnr_db": limits[0],
        "min_top1": limits[1],
    }
    folder.mkdir(exist_ok=True)
    np.savez_compressed(
        folder / "golden.npz",
        about=np.array(json.dumps(about, sort_keys=True)),
        inputs=np.stack(given),
        outputs=np.stack([np.asarray(references[i]).reshape(-1) for i in chosen]),
    )
    (folder / SCRIPT.name).write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
