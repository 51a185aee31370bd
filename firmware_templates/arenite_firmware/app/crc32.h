/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_CRC32_H
#define ARENITE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of IEEE 802.3 (reflected polynomial 0xEDB88320, start and final XOR 0xFFFFFFFF): that of zlib and
 * PNG. */
uint32_t link_crc32(const uint8_t *data, size_t bytes);

/* The same in pieces: starts as LINK_CRC32_START, and LINK_CRC32_END of what the last piece gave is the sum. */
#define LINK_CRC32_START 0xFFFFFFFFu
#define LINK_CRC32_END(crc) (~(crc))
uint32_t link_crc32_more(uint32_t crc, const uint8_t *data, size_t bytes);

#endif
