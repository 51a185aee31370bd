/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers in byte buffers of any alignment. */
#ifndef ARENITE_BYTES_H
#define ARENITE_BYTES_H

#include <stdint.h>

static inline uint32_t get_u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static inline uint32_t get_u32(const uint8_t *p) { return get_u16(p) | get_u16(p + 2) << 16; }

static inline void put_u16(uint8_t *p, uint32_t value) {
    p[0] = (uint8_t)(value & 0xFFu);
    p[1] = (uint8_t)((value >> 8) & 0xFFu);
}

static inline void put_u32(uint8_t *p, uint32_t value) {
    put_u16(p, value & 0xFFFFu);
    put_u16(p + 2, value >> 16);
}

static inline void put_u64(uint8_t *p, uint64_t value) {
    put_u32(p, (uint32_t)(value & 0xFFFFFFFFu));
    put_u32(p + 4, (uint32_t)(value >> 32));
}

#endif
