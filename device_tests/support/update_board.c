/* SPDX-License-Identifier: Apache-2.0 */
/* Two slots in memory for the link's harness. Version 1 runs, as a factory that signed nothing leaves it: no slot counts. */
#include <string.h>

#include "update_link.h"

#define SECTOR_BYTES 1024u
#define WRITE_BYTES 8u
#define SLOT_BYTES 16384u

static uint8_t flash[2 * SLOT_BYTES];

static bool read(void *context, uint32_t address, uint8_t *to, uint32_t bytes) {
    (void)context;
    memcpy(to, flash + address, bytes);
    return true;
}

static bool erase(void *context, uint32_t address) {
    (void)context;
    memset(flash + address, 0xFF, SECTOR_BYTES);
    return true;
}

static bool write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    for (uint32_t i = 0; i < bytes; i++) {
        flash[address + i] &= from[i];
    }
    return true;
}

/* Of the private key 00 01 02 ... 1f. */
static const uint8_t key[ED25519_KEY_BYTES] = {
    0x03, 0xa1, 0x07, 0xbf, 0xf3, 0xce, 0x10, 0xbe, 0x1d, 0x70, 0xdd, 0x18, 0xe7, 0x4b, 0xc0, 0x99,
    0x67, 0xe4, 0xd6, 0x30, 0x9b, 0xa5, 0x0d, 0x5f, 0x1d, 0xdc, 0x86, 0x64, 0x12, 0x55, 0x31, 0xb8,
};
static const update_flash_t device = {NULL, SECTOR_BYTES, WRITE_BYTES, read, erase, write};
static const update_slots_t slots = {
    &device, {key, "host", NULL, IMAGE_FIRMWARE, 0}, {0, SLOT_BYTES}, SLOT_BYTES, false};
static update_boot_t running = {.slot = -1};

const update_slots_t *board_update_slots(image_kind_t kind) { return kind == IMAGE_FIRMWARE ? &slots : NULL; }
update_boot_t *board_update_running(image_kind_t kind) { return kind == IMAGE_FIRMWARE ? &running : NULL; }

void harness_restart(void);
void harness_restart(void) { running = update_boot(&slots); }
