# SPDX-License-Identifier: Apache-2.0
"""Updates in the field: signed images for the slots of a board."""

from __future__ import annotations

from arenite.device.updating.bundles import factory_segments, sign_bundle
from arenite.device.updating.image import Header, Kind, read_header, sign_image
from arenite.device.updating.keys import make_key, public_key_of, read_private_key, read_public_key
from arenite.device.updating.session import SlotState, UpdateReport, read_state, send_image

__all__ = [
    "Header",
    "Kind",
    "SlotState",
    "UpdateReport",
    "factory_segments",
    "make_key",
    "public_key_of",
    "read_header",
    "read_private_key",
    "read_public_key",
    "read_state",
    "send_image",
    "sign_bundle",
    "sign_image",
]
