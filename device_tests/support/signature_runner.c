/* SPDX-License-Identifier: Apache-2.0 */
/* Reads key (32), signature (64), length (4, little-endian) and message again and again; prints digest and verdict. */
#include <stdio.h>
#include <stdlib.h>

#include "bytes.h"
#include "ed25519.h"
#include "sha512.h"

int main(void) {
    uint8_t head[100];
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        const uint32_t bytes = get_u32(head + 96);
        uint8_t *message = malloc(bytes + 1u);
        uint8_t digest[SHA512_BYTES];
        if (message == NULL || fread(message, 1, bytes, stdin) != bytes) {
            return 1;
        }
        sha512_t hash;
        sha512_start(&hash);
        for (uint32_t at = 0; at < bytes; at += 37u) { /* in uneven pieces */
            sha512_add(&hash, message + at, bytes - at < 37u ? bytes - at : 37u);
        }
        sha512_end(&hash, digest);
        for (unsigned i = 0; i < SHA512_BYTES; i++) {
            printf("%02x", digest[i]);
        }
        printf(" %d\n", ed25519_is_signed(head, head + 32, message, bytes));
        free(message);
    }
    return 0;
}
