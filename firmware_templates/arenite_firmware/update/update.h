/* SPDX-License-Identifier: Apache-2.0 */
/* Two slots that take turns: which one to start, and how the other gets a new image.
 *
 * A slot is whole sectors of flash: header, payload, and in its last sector the marks `tried` and `confirmed`. Nothing is
 * moved and no table says which slot counts; that follows from the slots themselves, so there is no moment at which power
 * may not fail:
 *
 *   - An image counts if its header is signed and its payload has the digest that the header says. The header is written
 *     last, so a slot that is being filled does not count.
 *   - Of two that count, the newer starts; it is marked `tried` before. Unless it then marks itself `confirmed`, the next
 *     start goes back to the older one.
 *   - A mark that power cut short is `tried`, and is not `confirmed`. There are several cells for the latter, so it can
 *     be made again.
 *
 * The same holds for images of firmware and of models. */
#ifndef ARENITE_UPDATE_H
#define ARENITE_UPDATE_H

#include "update_image.h"

#define UPDATE_SLOTS 2
/* From the start of a slot to its payload: the largest distance at which a Cortex-M wants its table of vectors. */
#define UPDATE_PAYLOAD_AT 1024u
#define UPDATE_MOST_WRITE_BYTES 32u
#define UPDATE_CONFIRM_CELLS 4u

/* The flash. Each function is false when the flash reports a failure. */
typedef struct {
    void *context;
    uint32_t sector_bytes; /* smallest part that can be erased; a slot is some of them, at least two */
    uint32_t
        write_bytes; /* smallest part that can be written, once after each erase: a power of two, 4 to 32 */
    bool (*read)(void *context, uint32_t address, uint8_t *to, uint32_t bytes);
    bool (*erase)(void *context, uint32_t address);
    bool (*write)(void *context, uint32_t address, const uint8_t *from, uint32_t bytes); /* whole units */
} update_flash_t;

typedef struct {
    const update_flash_t *flash;
    image_rules_t rules;
    uint32_t start[UPDATE_SLOTS];
    uint32_t slot_bytes;
    bool has_own; /* what starts where no slot counts works too: a first image is on trial like any other */
} update_slots_t;

/* What a start found. */
typedef struct {
    int slot;         /* to start; -1: none, so what is there without slots, if anything */
    uint32_t version; /* 0 without a slot */
    bool confirmed;
    bool on_trial;    /* it was just marked as tried, and must confirm itself */
    bool rolled_back; /* the newer image did not confirm itself */
    update_status_t status[UPDATE_SLOTS];
} update_boot_t;

/* Bytes that a payload may have in these slots. */
uint32_t update_payload_limit(const update_flash_t *flash, uint32_t slot_bytes);

/* Looks at both slots, chooses one and marks it. Call it once a start. */
update_boot_t update_boot(const update_slots_t *slots);

/* The same of what runs already, without choosing or marking. */
update_boot_t update_look(const update_slots_t *slots, int running);

/* The image that runs works: later starts keep it. */
update_status_t update_confirm(const update_slots_t *slots, int slot);

/* One image on its way into a slot. */
typedef struct {
    const update_slots_t *slots;
    image_t image;
    uint32_t base; /* of the slot */
    uint32_t taken_bytes;
    uint32_t erased_bytes;
    uint32_t pending_bytes;
    uint8_t header[IMAGE_HEADER_BYTES];
    uint8_t pending[UPDATE_MOST_WRITE_BYTES];
} update_install_t;

/* Begins to replace the slot that does not run. A header that is refused leaves the flash as it is. */
update_status_t update_begin(update_install_t *install, const update_slots_t *slots,
                             const update_boot_t *running, const uint8_t header[IMAGE_HEADER_BYTES]);

/* Takes the next bytes of the payload. */
update_status_t update_take(update_install_t *install, uint32_t offset, const uint8_t *data, uint32_t bytes);

/* Reads the payload back, and writes the header if it is the one that was signed: from then on the slot counts. */
update_status_t update_finish(update_install_t *install);

#endif
