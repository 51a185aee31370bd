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

#ifdef UPDATE_SLOT
static const update_slots_t firmware_slots = {&flash,
                                              {key, BOARD_NAME, NULL, IMAGE_FIRMWARE, 0},
                                              {UPDATE_SLOT_0, UPDATE_SLOT_1},
                                              UPDATE_SLOT_BYTES,
                                              false};
static update_boot_t firmware_running;

static void look_for_firmware(void) { firmware_running = update_look(&firmware_slots, UPDATE_SLOT); }
#endif

#ifdef UPDATE_MODEL_SLOT_0
/* What the kernels of this firmware are: the build's digest, which a model states that was linked against them. */
static const uint8_t build[IMAGE_BUILD_BYTES] = {ARENITE_BUILD_DIGEST};
static const update_slots_t model_slots = {&flash,
                                           {key, BOARD_NAME, build, IMAGE_MODEL, 0},
                                           {UPDATE_MODEL_SLOT_0, UPDATE_MODEL_SLOT_1},
                                           UPDATE_MODEL_SLOT_BYTES,
                                           true};
static update_boot_t model_running;

static void choose_model(void) { model_running = update_boot(&model_slots); }
#endif

const update_slots_t *board_update_slots(image_kind_t kind) {
#ifdef UPDATE_SLOT
    if (kind == IMAGE_FIRMWARE) {
        return &firmware_slots;
    }
#endif
#ifdef UPDATE_MODEL_SLOT_0
    if (kind == IMAGE_MODEL) {
        return &model_slots;
    }
#endif
    return NULL;
}

/* Looked for when it is first asked for: it takes the digest of both slots. */
update_boot_t *board_update_running(image_kind_t kind) {
#ifdef UPDATE_SLOT
    static bool looked;
    if (kind == IMAGE_FIRMWARE) {
        if (!looked) {
            look_for_firmware();
            looked = true;
        }
        return &firmware_running;
    }
#endif
#ifdef UPDATE_MODEL_SLOT_0
    static bool chosen;
    if (kind == IMAGE_MODEL) {
        if (!chosen) {
            choose_model();
            chosen = true;
        }
        return &model_running;
    }
#endif
    return NULL;
}
