# SPDX-License-Identifier: Apache-2.0
"""Updates on an emulated flash: power that fails at every operation, images that must not be taken, rollback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from arenite.device.updating import Kind, sign_image
from arenite.device.updating.image import HEADER_BYTES
from support.host_compiler import HostCompiler
from support.update_harness import MANNERS, Cut, Flash, Slots, UpdateCode, build_update_code

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

OWNER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OWNER.public_key().public_bytes_raw()
STRANGER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
BOARD, BUILD = "nucleo", b"\x5a" * 32
GEOMETRIES = [(256, 4), (512, 8), (1024, 32)]
SLOT_BYTES, PAYLOAD_AT = 4096, 1024


@pytest.fixture(scope="module")
def code(compiler: HostCompiler, tmp_path_factory: pytest.TempPathFactory) -> UpdateCode:
    return build_update_code(compiler, tmp_path_factory.mktemp("update"))


def image_of(version: int, size: int = 700, kind: Kind = Kind.FIRMWARE, **changes: Any) -> bytes:
    payload = bytes((version * 31 + i * 7) & 0xFF for i in range(size))
    given: dict[str, Any] = {"private_key": OWNER, "kind": kind, "version": version, "board": BOARD, "build": BUILD}
    return sign_image(payload, **given | changes)


def fresh(
    code: UpdateCode, geometry: tuple[int, int] = (1024, 32), kind: Kind = Kind.FIRMWARE, build: bytes | None = None
) -> Slots:
    """Version 1 in the first slot, as a factory leaves it; the second was never erased."""
    flash = Flash(2 * SLOT_BYTES, *geometry)
    image = image_of(1, kind=kind)
    flash.data[:HEADER_BYTES] = image[:HEADER_BYTES]
    flash.data[PAYLOAD_AT : PAYLOAD_AT + len(image) - HEADER_BYTES] = image[HEADER_BYTES:]
    slots = code.slots(flash, KEY, BOARD, kind, build)
    assert (slots.boot().slot, slots.boot().version) == (0, 1)
    return slots


def update(slots: Slots, image: bytes) -> None:
    """All of an update: install, start on trial, confirm, start again."""
    status = slots.install(slots.boot(), image)
    assert status == "OK", status
    trial = slots.boot()
    assert trial.on_trial
    assert slots.confirm(trial.slot) == "OK"
    assert slots.boot().confirmed


def test_an_update_goes_to_the_other_slot_and_the_next_one_back(code: UpdateCode) -> None:
    slots = fresh(code)
    for version, slot in ((2, 1), (5, 0), (6, 1)):
        update(slots, image_of(version))
        boot = slots.boot()
        assert (boot.slot, boot.version, boot.confirmed, boot.rolled_back) == (slot, version, True, False)


def test_what_does_not_confirm_itself_is_rolled_back_and_may_be_replaced(code: UpdateCode) -> None:
    slots = fresh(code)
    assert slots.install(slots.boot(), image_of(2)) == "OK"
    assert slots.boot().on_trial
    again = slots.boot()
    assert (again.slot, again.version, again.rolled_back) == (0, 1, True)
    update(slots, image_of(3))
    assert slots.boot().version == 3


def test_what_is_on_trial_does_not_replace_what_it_would_fall_back_to(code: UpdateCode) -> None:
    slots = fresh(code)
    assert slots.install(slots.boot(), image_of(2)) == "OK"
    trial = slots.boot()
    before = bytes(slots.flash.data)
    assert slots.begin(trial, image_of(3)) == "UNCONFIRMED"
    assert bytes(slots.flash.data) == before
    assert slots.confirm(trial.slot) == "OK"
    assert slots.install(trial, image_of(3)) == "OK"


def damaged(change: Callable[[bytearray], None]) -> bytes:
    image = bytearray(image_of(2))
    change(image)
    return bytes(image)


def flip(place: int) -> Callable[[bytearray], None]:
    def change(image: bytearray) -> None:
        image[place] ^= 1

    return change


@pytest.mark.parametrize(
    ("image", "status"),
    [
        (image_of(2, private_key=STRANGER), "BAD_SIGNATURE"),
        (damaged(flip(12)), "BAD_SIGNATURE"),
        (damaged(flip(100)), "BAD_SIGNATURE"),
        (damaged(flip(191)), "BAD_SIGNATURE"),
        (damaged(flip(192)), "BAD_SIGNATURE"),
        (damaged(flip(255)), "BAD_SIGNATURE"),
        (damaged(flip(0)), "NO_IMAGE"),
        (damaged(flip(4)), "NO_IMAGE"),
        (image_of(1), "OLD_VERSION"),
        (image_of(2, kind=Kind.MODEL), "OTHER_KIND"),
        (image_of(2, board="nucleo-2"), "OTHER_BOARD"),
        (image_of(2, board="nucle"), "OTHER_BOARD"),
        (image_of(2, address=0x100), "OTHER_BUILD"),
        (image_of(2, size=4096), "TOO_LARGE"),
    ],
)
def test_a_header_that_is_refused_leaves_the_flash_as_it_is(code: UpdateCode, image: bytes, status: str) -> None:
    slots = fresh(code)
    before = bytes(slots.flash.data)
    assert slots.install(slots.boot(), image) == status
    assert bytes(slots.flash.data) == before
    assert slots.boot().version == 1


def test_a_payload_that_was_not_signed_or_is_cut_short_never_counts(code: UpdateCode) -> None:
    slots = fresh(code)
    assert slots.install(slots.boot(), damaged(flip(HEADER_BYTES + 699))) == "DAMAGED"
    assert slots.install(slots.boot(), image_of(2)[:-1]) == "TRUNCATED"
    assert slots.install(slots.boot(), image_of(2) + b"x") == "OUT_OF_ORDER"
    assert slots.begin(slots.boot(), image_of(2)) == "OK"
    assert slots.take(1, b"x") == "OUT_OF_ORDER"
    assert slots.take(0, b"x" * 701) == "OUT_OF_ORDER"
    boot = slots.boot()
    assert (boot.slot, boot.version, boot.rolled_back) == (0, 1, False)
    update(slots, image_of(2))


def test_an_older_image_is_refused_however_it_is_signed(code: UpdateCode) -> None:
    slots = fresh(code)
    update(slots, image_of(7))
    for version in (1, 6, 7):
        assert slots.install(slots.boot(), image_of(version)) == "OLD_VERSION"
    assert slots.boot().version == 7


def test_a_model_for_other_kernels_is_refused(code: UpdateCode) -> None:
    slots = fresh(code, kind=Kind.MODEL, build=BUILD)
    assert slots.install(slots.boot(), image_of(2, kind=Kind.MODEL, build=b"\x5b" * 32)) == "OTHER_BUILD"
    update(slots, image_of(2, kind=Kind.MODEL))
    assert slots.boot().version == 2


def test_an_image_may_fill_its_slot_and_be_empty(code: UpdateCode) -> None:
    slots = fresh(code)
    update(slots, image_of(2, size=slots.payload_limit))
    assert slots.install(slots.boot(), image_of(3, size=slots.payload_limit + 1)) == "TOO_LARGE"
    update(slots, image_of(3, size=0))
    assert slots.boot().version == 3


def test_marks_of_an_old_image_do_not_become_those_of_a_new_one(code: UpdateCode) -> None:
    slots = fresh(code)
    update(slots, image_of(2))
    update(slots, image_of(3))
    assert slots.install(slots.boot(), image_of(4)) == "OK"
    assert slots.boot().on_trial, "the confirmation of version 2 was in this slot"


def _cut_points(code: UpdateCode, geometry: tuple[int, int], kind: Kind, image: bytes) -> int:
    slots = fresh(code, geometry, kind)
    slots.flash.power_up()
    update(slots, image)
    return slots.flash.operations


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_power_may_fail_at_every_operation_of_an_update(
    code: UpdateCode, geometry: tuple[int, int], kind: Kind, manner: str
) -> None:
    """Whatever is cut short, a signed image starts, and the update can be done again to its end."""
    image = image_of(2, kind=kind)
    total = _cut_points(code, geometry, kind, image)
    assert total > 700 // geometry[1]
    seen = set()
    for cut_at in range(total):
        slots = fresh(code, geometry, kind)
        slots.flash.power_up(cut_at, manner)
        with pytest.raises(Cut):
            update(slots, image)
        slots.flash.power_up()
        boot = slots.boot()
        assert boot.slot in (0, 1)
        assert boot.version == (2 if boot.slot else 1)
        assert boot.status[boot.slot] == 0
        seen.add((boot.version, bool(boot.on_trial), bool(boot.rolled_back)))
        _finish(slots, boot, image)
    assert (1, False, False) in seen, "before the header is there, nothing has changed"
    assert (1, False, True) in seen, "a start on trial that was cut short is rolled back"


def never_updated(code: UpdateCode, geometry: tuple[int, int] = (1024, 32)) -> Slots:
    """Firmware with a model inside, whose slots for models were never erased."""
    slots = code.slots(Flash(2 * SLOT_BYTES, *geometry), KEY, BOARD, Kind.MODEL, BUILD, has_own=True)
    assert (slots.boot().slot, slots.boot().version) == (-1, 0)
    return slots


def test_a_first_model_is_on_trial_against_the_one_in_the_firmware(code: UpdateCode) -> None:
    slots = never_updated(code)
    image = image_of(2, kind=Kind.MODEL)
    assert slots.install(slots.boot(), image) == "OK"
    trial = slots.boot()
    assert (trial.slot, trial.version, trial.on_trial) == (0, 2, True)
    assert slots.begin(trial, image_of(3, kind=Kind.MODEL)) == "UNCONFIRMED"
    for _ in range(2):
        back = slots.boot()
        assert (back.slot, back.version, back.confirmed, back.rolled_back) == (-1, 0, False, True)
    update(slots, image_of(3, kind=Kind.MODEL))
    assert (slots.boot().slot, slots.boot().version) == (0, 3)
    update(slots, image_of(4, kind=Kind.MODEL))
    assert (slots.boot().slot, slots.boot().version) == (1, 4)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_power_may_fail_at_every_operation_of_a_first_model(
    code: UpdateCode, geometry: tuple[int, int], manner: str
) -> None:
    """The model inside the firmware runs, or the new one, which may then be confirmed; the update can be done again."""
    image = image_of(2, kind=Kind.MODEL)
    slots = never_updated(code, geometry)
    slots.flash.power_up()
    update(slots, image)
    total = slots.flash.operations
    assert total > 700 // geometry[1]
    seen = set()
    for cut_at in range(total):
        slots = never_updated(code, geometry)
        slots.flash.power_up(cut_at, manner)
        with pytest.raises(Cut):
            update(slots, image)
        slots.flash.power_up()
        boot = slots.boot()
        assert (boot.slot, boot.version) in ((-1, 0), (0, 2))
        seen.add((boot.version, bool(boot.on_trial), bool(boot.rolled_back)))
        _finish(slots, boot, image)
    assert (0, False, False) in seen, "before the header is there, nothing has changed"
    assert (0, False, True) in seen, "a start on trial that was cut short goes back to the firmware's own"


def _finish(slots: Slots, boot: Any, image: bytes) -> None:
    """From wherever a cut left it, to version 2."""
    if boot.version == 2:
        assert slots.confirm(boot.slot) == "OK"
    else:
        assert slots.install(boot, image) == "OK"
        assert slots.confirm(slots.boot().slot) == "OK"
    done = slots.boot()
    assert (done.version, done.confirmed) == (2, True)


def test_power_may_fail_again_while_the_update_is_done_again(code: UpdateCode) -> None:
    image = image_of(2)
    total = _cut_points(code, (1024, 32), Kind.FIRMWARE, image)
    for first in range(0, total, 3):
        for second in range(0, total, 5):
            slots = fresh(code)
            for cut_at in (first, second):
                slots.flash.power_up(cut_at, "torn")
                with pytest.raises(Cut):
                    boot = slots.boot()
                    _finish(slots, boot, image)
                    raise Cut  # done before the cut
            slots.flash.power_up()
            boot = slots.boot()
            assert boot.status[boot.slot] == 0
            assert boot.version in (1, 2)
