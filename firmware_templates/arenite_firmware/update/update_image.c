/* SPDX-License-Identifier: Apache-2.0 */
#include "update_image.h"

#include <stddef.h>
#include <string.h>

#include "bytes.h"

enum {
    MAGIC_AT = 0,
    FORMAT_AT = 4,
    KIND_AT = 8,
    VERSION_AT = 12,
    PAYLOAD_BYTES_AT = 16,
    ADDRESS_AT = 20,
    BOARD_AT = 32,
    BUILD_AT = 64,
    DIGEST_AT = 96,
};

static const uint8_t magic[4] = {'A', 'r', 'U', 'p'};

static bool is_board(const uint8_t *field, const char *board) {
    for (uint32_t i = 0; i < IMAGE_NAME_BYTES; i++) {
        if (field[i] != (uint8_t)*board) {
            return false;
        }
        board += *board != '\0' ? 1 : 0;
    }
    return *board == '\0';
}

update_status_t image_read(image_t *image, const uint8_t header[IMAGE_HEADER_BYTES],
                           const image_rules_t *rules, uint32_t address) {
    if (memcmp(header + MAGIC_AT, magic, sizeof magic) != 0 || get_u32(header + FORMAT_AT) != IMAGE_FORMAT) {
        return UPDATE_NO_IMAGE;
    }
    if (!ed25519_is_signed(rules->key, header + IMAGE_SIGNED_BYTES, header, IMAGE_SIGNED_BYTES)) {
        return UPDATE_BAD_SIGNATURE;
    }
    image->kind = get_u32(header + KIND_AT);
    image->version = get_u32(header + VERSION_AT);
    image->payload_bytes = get_u32(header + PAYLOAD_BYTES_AT);
    image->address = get_u32(header + ADDRESS_AT);
    memcpy(image->digest, header + DIGEST_AT, SHA512_BYTES);
    if (image->kind != (uint32_t)rules->kind) {
        return UPDATE_OTHER_KIND;
    }
    if (!is_board(header + BOARD_AT, rules->board)) {
        return UPDATE_OTHER_BOARD;
    }
    if ((rules->build != NULL && memcmp(header + BUILD_AT, rules->build, IMAGE_BUILD_BYTES) != 0) ||
        (image->address != 0 && image->address != address)) {
        return UPDATE_OTHER_BUILD;
    }
    return image->payload_bytes > rules->payload_limit_bytes ? UPDATE_TOO_LARGE : UPDATE_OK;
}
