# SPDX-License-Identifier: Apache-2.0
"""Boards: the serial link to one, emulated ones, and the proof that a bundle computes what it should."""

from __future__ import annotations

from arenite.device.client import Device, Identity, RunResult, open_device
from arenite.device.first_layer import LayerDifference
from arenite.device.messages import About, Fault, Heartbeat, LayerTrace, ResetCause
from arenite.device.profile import LayerProfile, ProfileReport, profile
from arenite.device.protocol import TensorInfo
from arenite.device.streams import SerialStream, Stream
from arenite.device.tracing import trace_run
from arenite.device.verify import FirstDifference, ModelProof, VerifyReport, verify

__all__ = [
    "About",
    "Device",
    "Fault",
    "FirstDifference",
    "Heartbeat",
    "Identity",
    "LayerDifference",
    "LayerProfile",
    "LayerTrace",
    "ModelProof",
    "ProfileReport",
    "ResetCause",
    "RunResult",
    "SerialStream",
    "Stream",
    "TensorInfo",
    "VerifyReport",
    "open_device",
    "profile",
    "trace_run",
    "verify",
]
