# SPDX-License-Identifier: Apache-2.0
"""For programs under test: a pty has neither parity nor modem lines, so pyserial leaves both out on one."""

from typing import Any

try:
    from serial import serialposix
except ImportError:
    pass
else:
    _port, _configure = serialposix.Serial, serialposix.Serial._reconfigure_port

    def _without_parity(self: Any, force_update: bool = False) -> None:
        parity, self._parity = self._parity, "N"
        try:
            _configure(self, force_update)
        finally:
            self._parity = parity

    _port._reconfigure_port = _without_parity
    _port._update_rts_state = _port._update_dtr_state = lambda self: None
