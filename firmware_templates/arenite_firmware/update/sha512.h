/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-512 of FIPS 180-4, in pieces. */
#ifndef ARENITE_SHA512_H
#define ARENITE_SHA512_H

#include <stdint.h>

#define SHA512_BYTES 64u
#define SHA512_BLOCK_BYTES 128u

typedef struct {
    uint64_t state[8];
    uint64_t bytes; /* taken so far; below 2^61 */
    uint8_t block[SHA512_BLOCK_BYTES];
} sha512_t;

void sha512_start(sha512_t *hash);
void sha512_add(sha512_t *hash, const uint8_t *data, uint32_t bytes);

/* Ends the digest; `hash` is used up. */
void sha512_end(sha512_t *hash, uint8_t digest[SHA512_BYTES]);

#endif
