/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_CRC32_H
#define ARENITE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of IEEE 802.3 (reflected polynomial 0xEDB88320, start and final XOR 0xFFFFFFFF): that of zlib and
 * PNG. */
uint32_t link_crc32(const uint8_t *data, size_t bytes);

#endif
