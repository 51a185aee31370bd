/* SPDX-License-Identifier: Apache-2.0 */
#include "update.h"

#include <string.h>

#define CHUNK_BYTES 128u
#define ERASED 0xFFu

static const uint8_t confirmed_mark[4] = {'D', 'o', 'e', 's'};

uint32_t update_payload_limit(const update_flash_t *flash, uint32_t slot_bytes) {
    return slot_bytes - UPDATE_PAYLOAD_AT - flash->sector_bytes;
}

static uint32_t marks_at(const update_slots_t *slots, int slot) {
    return slots->start[slot] + slots->slot_bytes - slots->flash->sector_bytes;
}

/* Marks: one unit for `tried`, then the cells of `confirmed`. */
static uint32_t mark_at(const update_slots_t *slots, int slot, uint32_t cell) {
    return marks_at(slots, slot) + cell * slots->flash->write_bytes;
}

static bool read(const update_slots_t *slots, uint32_t address, uint8_t *to, uint32_t bytes) {
    return slots->flash->read(slots->flash->context, address, to, bytes);
}

static bool read_mark(const update_slots_t *slots, int slot, uint32_t cell, uint8_t *unit) {
    return read(slots, mark_at(slots, slot, cell), unit, slots->flash->write_bytes);
}

static bool write_mark(const update_slots_t *slots, int slot, uint32_t cell) {
    uint8_t unit[UPDATE_MOST_WRITE_BYTES];
    memset(unit, 0, sizeof unit);
    memcpy(unit, confirmed_mark, sizeof confirmed_mark);
    return slots->flash->write(slots->flash->context, mark_at(slots, slot, cell), unit,
                               slots->flash->write_bytes);
}

static bool is_erased(const uint8_t *unit, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        if (unit[i] != ERASED) {
            return false;
        }
    }
    return true;
}

static bool is_tried(const update_slots_t *slots, int slot) {
    uint8_t unit[UPDATE_MOST_WRITE_BYTES];
    return !read_mark(slots, slot, 0, unit) || !is_erased(unit, slots->flash->write_bytes);
}

static bool is_confirmed(const update_slots_t *slots, int slot) {
    uint8_t unit[UPDATE_MOST_WRITE_BYTES];
    for (uint32_t cell = 1; cell <= UPDATE_CONFIRM_CELLS; cell++) {
        if (read_mark(slots, slot, cell, unit) && memcmp(unit, confirmed_mark, sizeof confirmed_mark) == 0) {
            return true;
        }
    }
    return false;
}

static update_status_t check_payload(const update_slots_t *slots, uint32_t base, const image_t *image) {
    sha512_t hash;
    uint8_t chunk[CHUNK_BYTES];
    uint8_t digest[SHA512_BYTES];
    sha512_start(&hash);
    for (uint32_t at = 0; at < image->payload_bytes; at += CHUNK_BYTES) {
        const uint32_t left = image->payload_bytes - at;
        const uint32_t now = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        if (!read(slots, base + UPDATE_PAYLOAD_AT + at, chunk, now)) {
            return UPDATE_FLASH_FAILED;
        }
        sha512_add(&hash, chunk, now);
    }
    sha512_end(&hash, digest);
    return memcmp(digest, image->digest, sizeof digest) == 0 ? UPDATE_OK : UPDATE_DAMAGED;
}

static image_rules_t rules_of(const update_slots_t *slots) {
    image_rules_t rules = slots->rules;
    rules.payload_limit_bytes = update_payload_limit(slots->flash, slots->slot_bytes);
    return rules;
}

static update_status_t check_slot(const update_slots_t *slots, int slot, image_t *image) {
    uint8_t header[IMAGE_HEADER_BYTES];
    const image_rules_t rules = rules_of(slots);
    if (!read(slots, slots->start[slot], header, sizeof header)) {
        return UPDATE_FLASH_FAILED;
    }
    const update_status_t status = image_read(image, header, &rules, slots->start[slot]);
    return status == UPDATE_OK ? check_payload(slots, slots->start[slot], image) : status;
}

update_boot_t update_boot(const update_slots_t *slots) {
    update_boot_t boot = {.slot = -1};
    image_t images[UPDATE_SLOTS];
    for (int slot = 0; slot < UPDATE_SLOTS; slot++) {
        boot.status[slot] = check_slot(slots, slot, &images[slot]);
        if (boot.status[slot] == UPDATE_OK &&
            (boot.slot < 0 || images[slot].version > images[boot.slot].version)) {
            boot.slot = slot;
        }
    }
    if (boot.slot < 0) {
        return boot;
    }
    const int other = 1 - boot.slot;
    const bool has_other = boot.status[other] == UPDATE_OK;
    boot.confirmed = is_confirmed(slots, boot.slot);
    if (!boot.confirmed && (has_other || slots->has_own)) {
        if (is_tried(slots, boot.slot) || !write_mark(slots, boot.slot, 0)) {
            boot.rolled_back = true;
            boot.slot = has_other ? other : -1;
            boot.confirmed = has_other && is_confirmed(slots, other);
        } else {
            boot.on_trial = true;
        }
    }
    boot.version = boot.slot >= 0 ? images[boot.slot].version : 0u;
    return boot;
}

update_boot_t update_look(const update_slots_t *slots, int running) {
    const int other = 1 - running;
    update_boot_t found = {.slot = running};
    image_t images[UPDATE_SLOTS];
    memset(images, 0, sizeof images);
    for (int slot = 0; slot < UPDATE_SLOTS; slot++) {
        found.status[slot] = check_slot(slots, slot, &images[slot]);
    }
    const bool has_other = found.status[other] == UPDATE_OK;
    const bool is_older = has_other && images[other].version > images[running].version;
    found.version = found.status[running] == UPDATE_OK ? images[running].version : 0;
    found.confirmed = is_confirmed(slots, running);
    found.on_trial = has_other && !is_older && !found.confirmed;
    found.rolled_back = is_older && is_tried(slots, other) && !is_confirmed(slots, other);
    return found;
}

update_status_t update_confirm(const update_slots_t *slots, int slot) {
    uint8_t unit[UPDATE_MOST_WRITE_BYTES];
    for (uint32_t cell = 1; cell <= UPDATE_CONFIRM_CELLS && !is_confirmed(slots, slot); cell++) {
        if (read_mark(slots, slot, cell, unit) && is_erased(unit, slots->flash->write_bytes)) {
            (void)write_mark(slots, slot, cell);
        }
    }
    return is_confirmed(slots, slot) ? UPDATE_OK : UPDATE_FLASH_FAILED;
}

update_status_t update_begin(update_install_t *install, const update_slots_t *slots,
                             const update_boot_t *running, const uint8_t header[IMAGE_HEADER_BYTES]) {
    const int slot = running->slot == 0 ? 1 : 0;
    const image_rules_t rules = rules_of(slots);
    memset(install, 0, sizeof *install);
    const update_status_t status = image_read(&install->image, header, &rules, slots->start[slot]);
    if (status != UPDATE_OK) {
        return status;
    }
    if (running->slot >= 0 && install->image.version <= running->version) {
        return UPDATE_OLD_VERSION;
    }
    if (running->on_trial && !is_confirmed(slots, running->slot)) {
        return UPDATE_UNCONFIRMED;
    }
    memcpy(install->header, header, IMAGE_HEADER_BYTES);
    install->base = slots->start[slot];
    /* First the old header, so that the old image does not count while its marks are gone; then the marks, which must not
     * become those of the new image. */
    const update_flash_t *flash = slots->flash;
    if (!flash->erase(flash->context, install->base) ||
        !flash->erase(flash->context, marks_at(slots, slot))) {
        return UPDATE_FLASH_FAILED;
    }
    install->erased_bytes = flash->sector_bytes;
    install->slots = slots;
    return UPDATE_OK;
}

/* Erases up to the sector that holds the last of `bytes` bytes of the slot. */
static bool erase_for(update_install_t *install, uint32_t bytes) {
    const update_flash_t *flash = install->slots->flash;
    while (install->erased_bytes < bytes) {
        if (!flash->erase(flash->context, install->base + install->erased_bytes)) {
            return false;
        }
        install->erased_bytes += flash->sector_bytes;
    }
    return true;
}

/* Writes the unit that is full, or at the end filled up. */
static bool write_pending(update_install_t *install) {
    const update_flash_t *flash = install->slots->flash;
    const uint32_t at = UPDATE_PAYLOAD_AT + install->taken_bytes - install->pending_bytes;
    memset(install->pending + install->pending_bytes, ERASED, flash->write_bytes - install->pending_bytes);
    install->pending_bytes = 0;
    return erase_for(install, at + flash->write_bytes) &&
           flash->write(flash->context, install->base + at, install->pending, flash->write_bytes);
}

update_status_t update_take(update_install_t *install, uint32_t offset, const uint8_t *data, uint32_t bytes) {
    if (install->slots == NULL || offset != install->taken_bytes ||
        bytes > install->image.payload_bytes - install->taken_bytes) {
        return UPDATE_OUT_OF_ORDER;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        install->pending[install->pending_bytes++] = data[i];
        install->taken_bytes++;
        if (install->pending_bytes == install->slots->flash->write_bytes && !write_pending(install)) {
            install->slots = NULL;
            return UPDATE_FLASH_FAILED;
        }
    }
    return UPDATE_OK;
}

static update_status_t finish(update_install_t *install) {
    const update_slots_t *slots = install->slots;
    if (install->taken_bytes != install->image.payload_bytes) {
        return UPDATE_TRUNCATED;
    }
    if (install->pending_bytes != 0 && !write_pending(install)) {
        return UPDATE_FLASH_FAILED;
    }
    const update_status_t status = check_payload(slots, install->base, &install->image);
    if (status != UPDATE_OK) {
        return status;
    }
    if (!slots->flash->write(slots->flash->context, install->base, install->header, IMAGE_HEADER_BYTES)) {
        return UPDATE_FLASH_FAILED;
    }
    image_t image;
    return check_slot(slots, install->base == slots->start[0] ? 0 : 1, &image);
}

update_status_t update_finish(update_install_t *install) {
    if (install->slots == NULL) {
        return UPDATE_OUT_OF_ORDER;
    }
    const update_status_t status = finish(install);
    install->slots = NULL;
    return status;
}
