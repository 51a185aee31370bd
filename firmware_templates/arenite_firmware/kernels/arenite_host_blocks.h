/* SPDX-License-Identifier: Apache-2.0 */
/* The units in which the kernels for computers work, and how they find the constants of a channel.
 *
 * The code generator packs bias, multiplier and shift of convolutions for whole blocks of 16 channels:
 *   bias        int32[2][16 * blocks]: as ever, and for input bytes moved by 128: less 128 * sum of the channel's weights,
 *               modulo 2^32
 *   multiplier  int32[16 * blocks], and behind them for each block int64[3][2][8]: what arenite_avx512.h calls rounding,
 *               right and sign, of the even channels and of the odd ones; behind those of all blocks for each block
 *               int64[2][8], rounding with the zero point, and int32[16], the shift of a product's high half
 *   shift       int8[16 * blocks]: -31 .. 30
 * per_channel is 1. All are 64-byte aligned. */
#ifndef ARENITE_HOST_BLOCKS_H
#define ARENITE_HOST_BLOCKS_H

#include <stdint.h>

#define ARENITE_BLOCK 16 /* channels that are computed at once */
#define ARENITE_WORD 4   /* input bytes that are multiplied at once in each of them */

static inline int32_t arenite_blocks(int32_t channels) {
    return (channels + ARENITE_BLOCK - 1) / ARENITE_BLOCK;
}

/* The 64-bit constants of the block that starts with `channel`. */
static inline const int64_t *arenite_block_constants(const int32_t *multiplier, int32_t channels,
                                                     int32_t channel) {
    return (const int64_t *)(const void *)(multiplier + ARENITE_BLOCK * arenite_blocks(channels) +
                                           6 * channel);
}

/* The constants of the block that starts with `channel` for products whose high half is shifted. */
static inline const int64_t *arenite_block_halves(const int32_t *multiplier, int32_t channels,
                                                  int32_t channel) {
    const int32_t padded = ARENITE_BLOCK * arenite_blocks(channels);
    return arenite_block_constants(multiplier, channels, padded) + 3 * (channel / 2);
}

/* Before a loop over accumulators: without it compilers keep them in memory. */
#if defined(__clang__)
#define ARENITE_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define ARENITE_UNROLL _Pragma("GCC unroll 16")
#else
#define ARENITE_UNROLL
#endif

#endif
