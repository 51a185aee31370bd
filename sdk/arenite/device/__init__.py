# SPDX-License-Identifier: Apache-2.0
"""Boards: the serial link to one, emulated ones, and the proof that a bundle computes what it should."""

from __future__ import annotations

from arenite.device.client import Device, Identity, RunResult, open_device
from arenite.device.protocol import TensorInfo
from arenite.device.streams import SerialStream, Stream
from arenite.device.verify import FirstDifference, ModelProof, VerifyReport, verify

__all__ = [
    "Device",
    "FirstDifference",
    "Identity",
    "ModelProof",
    "RunResult",
    "SerialStream",
    "Stream",
    "TensorInfo",
    "VerifyReport",
    "open_device",
    "verify",
]
