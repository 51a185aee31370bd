/* SPDX-License-Identifier: Apache-2.0 */
/* A signed image: a header of 256 bytes, then the payload. docs/update.md of Arenite describes every field.
 *
 * The signature covers the header, the header holds the payload's digest: so who sent it is known before anything is
 * erased, and that it is whole after it is written. */
#ifndef ARENITE_UPDATE_IMAGE_H
#define ARENITE_UPDATE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "ed25519.h"
#include "sha512.h"

#define IMAGE_HEADER_BYTES 256u
#define IMAGE_SIGNED_BYTES 192u /* the signature lies behind them */
#define IMAGE_NAME_BYTES 32u
#define IMAGE_BUILD_BYTES 32u
#define IMAGE_FORMAT 1u

typedef enum {
    IMAGE_FIRMWARE = 1, /* runs from its slot */
    IMAGE_MODEL = 2,    /* weights and row schedule, linked against the kernels of one firmware build */
} image_kind_t;

typedef enum {
    UPDATE_OK = 0,
    UPDATE_NO_IMAGE = 1,      /* no header */
    UPDATE_BAD_SIGNATURE = 2, /* not signed by the owner of the key in this firmware */
    UPDATE_OTHER_KIND = 3,
    UPDATE_OTHER_BOARD = 4,
    UPDATE_OTHER_BUILD =
        5, /* a model for the kernels of another firmware, or firmware linked for another address */
    UPDATE_TOO_LARGE = 6,
    UPDATE_DAMAGED = 7,     /* the payload is not the one that was signed */
    UPDATE_OLD_VERSION = 8, /* not newer than what runs */
    UPDATE_FLASH_FAILED = 9,
    UPDATE_OUT_OF_ORDER = 10, /* bytes that do not follow the last, or more than the header says */
    UPDATE_TRUNCATED = 11,    /* finished before all bytes came */
    UPDATE_UNCONFIRMED = 12,  /* what runs is on trial: replacing what it would fall back to is refused */
} update_status_t;

/* A header, read. */
typedef struct {
    uint32_t kind;
    uint32_t version;
    uint32_t payload_bytes;
    uint32_t address; /* of the slot it is linked for; 0 if it may lie in any */
    uint8_t digest[SHA512_BYTES];
} image_t;

/* What an image must be. */
typedef struct {
    const uint8_t *key; /* ED25519_KEY_BYTES */
    const char *board;  /* shorter than IMAGE_NAME_BYTES */
    const uint8_t
        *build; /* IMAGE_BUILD_BYTES: the firmware build whose kernels a model needs; NULL accepts any */
    image_kind_t kind;
    uint32_t payload_limit_bytes;
} image_rules_t;

/* Reads a header for the slot at `address` and holds it against the rules. */
update_status_t image_read(image_t *image, const uint8_t header[IMAGE_HEADER_BYTES],
                           const image_rules_t *rules, uint32_t address);

#endif
