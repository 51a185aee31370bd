/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of Ed25519 signatures (RFC 8032, section 5.1.7, without the cofactor).
 *
 * Only public values are worked on, so nothing here takes care that time does not depend on data. It cannot sign. */
#ifndef ARENITE_ED25519_H
#define ARENITE_ED25519_H

#include <stdbool.h>
#include <stdint.h>

#define ED25519_KEY_BYTES 32u
#define ED25519_SIGNATURE_BYTES 64u

/* Whether `signature` is one of the message by the owner of `key`. Encodings that are not the shortest are refused. */
bool ed25519_is_signed(const uint8_t key[ED25519_KEY_BYTES], const uint8_t signature[ED25519_SIGNATURE_BYTES],
                       const uint8_t *message, uint32_t bytes);

#endif
