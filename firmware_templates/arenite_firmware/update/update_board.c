/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of this board, as its board.toml and the owner's key say. */
#include <stddef.h>

#include "board.h"
#include "flash_driver.h"
#include "update_config.h"
#include "update_link.h"

static const uint8_t key[ED25519_KEY_BYTES] = UPDATE_KEY;
static const update_flash_t flash = {NULL,       UPDATE_SECTOR_BYTES, UPDATE_WRITE_BYTES,
                                     flash_read, flash_erase,         flash_write};
static const update_slots_t slots = {
    &flash, {key, BOARD_NAME, NULL, IMAGE_FIRMWARE, 0}, {UPDATE_SLOT_0, UPDATE_SLOT_1}, UPDATE_SLOT_BYTES};

const update_slots_t *board_update_slots(void) { return &slots; }

/* Looked for when it is first asked for: it takes the digest of both slots. */
update_boot_t *board_update_running(void) {
    static update_boot_t running;
    static bool looked;
    if (!looked) {
        running = update_look(&slots, UPDATE_SLOT);
        looked = true;
    }
    return &running;
}
