# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs through NVML: a counter of millijoules since the driver was loaded (Volta and later), else milliwatts.

It sees the graphics card and nothing else of the machine. Package: `nvidia-ml-py`, which is imported as `pynvml`.
API: NVIDIA's NVML reference, nvmlDeviceGetTotalEnergyConsumption and nvmlDeviceGetPowerUsage.
"""

from __future__ import annotations

from typing import Any

from arenite.meters.base import CounterMeter, Meter, PowerMeter

__all__ = ["NvmlCounter", "NvmlPower", "find"]

_POLL_S = 0.05


class NvmlCounter(CounterMeter):
    """The card's own counter."""

    def __init__(self, nvml: Any, handle: Any, source: str, rail: str) -> None:
        super().__init__(source, rail, _POLL_S)
        self._nvml, self._handle = nvml, handle

    def start(self) -> None:
        """Takes the first reading."""
        self.read()

    def counters_j(self) -> list[float | None]:
        """The counter."""
        try:
            return [self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1e3]
        except self._nvml.NVMLError:
            return [None]


class NvmlPower(PowerMeter):
    """The card's sensor, which averages over some tens of milliseconds."""

    def __init__(self, nvml: Any, handle: Any, source: str, rail: str) -> None:
        super().__init__(source, rail, _POLL_S)
        self._nvml, self._handle = nvml, handle

    def power_w(self) -> float | None:
        """Watts now."""
        try:
            return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3
        except self._nvml.NVMLError:
            return None


def find(nvml: Any = None) -> list[Meter]:
    """`nvml:N` for each card; none without the package or the driver."""
    nvml = _import() if nvml is None else nvml
    if nvml is None:
        return []
    try:
        nvml.nvmlInit()
        return [_meter(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        return []


def _meter(nvml: Any, index: int) -> Meter:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = nvml.nvmlDeviceGetName(handle)
    name = name.decode(errors="replace") if isinstance(name, bytes) else name
    source, rail = f"nvml:{index}", f"GPU {index} only ({name})"
    try:
        nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except nvml.NVMLError:
        return NvmlPower(nvml, handle, source, rail)
    return NvmlCounter(nvml, handle, source, rail)


def _import() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
