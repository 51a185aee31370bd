/* SPDX-License-Identifier: Apache-2.0 */
/* Requantisation of arenite_fixed_point.h on 8 lanes of AVX2, in one shift.
 *
 * As arenite_avx512.h, which has the proof, but AVX2 cannot shift 64 bits arithmetically. So 2^62 is added before the shift,
 * which makes every sum positive, and 2^62 / 2^(31 + e) is taken away behind it, together with adding the zero point. The
 * correction of negative products asks the accumulator for the sign; multipliers are never negative, and with a
 * multiplier of 0 the corrected sum still gives 0. */
#ifndef ARENITE_AVX2_H
#define ARENITE_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "arenite_host_blocks.h"

#define ARENITE_AVX2 __attribute__((target("avx2")))
#define ARENITE_AVX2_INLINE static inline __attribute__((always_inline)) ARENITE_AVX2

#define ARENITE_HALF 8 /* channels: lanes of a vector, half a block */

/* Constants of 8 lanes; those of 64 bits for the even lanes, then for the odd ones. */
typedef struct {
    __m256i multiplier[2];
    __m256i rounding[2]; /* 2^62 + 2^30 + 2^(30 + e), or 2^62 + 2^30 for e = 0 */
    __m256i right[2];    /* 31 + e */
    __m256i sign[2];     /* 2^31, or 0 for e = 0 */
    __m256i left;
    __m256i offset; /* zero point - 2^(31 - e) */
    int has_left;
} arenite_requantise_avx2_t;

ARENITE_AVX2_INLINE __m256i arenite_load_avx2(const void *bytes) {
    return _mm256_loadu_si256((const __m256i *)bytes);
}

/* 16 bytes as int16. */
ARENITE_AVX2_INLINE __m256i arenite_widen_avx2(const int8_t *bytes) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

/* Sums of neighbouring lanes: of two vectors [4 channels][2] the 8 channels in order. */
ARENITE_AVX2_INLINE __m256i arenite_add_pairs_avx2(__m256i first, __m256i second) {
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(first, second), 0xD8);
}

/* `right` is e in each lane. */
ARENITE_AVX2_INLINE void arenite_set_offset_avx2(arenite_requantise_avx2_t *r, __m256i right,
                                                 int32_t zero_point) {
    const __m256i moved = _mm256_srlv_epi32(_mm256_set1_epi32(INT32_MIN), right);
    r->offset = _mm256_sub_epi32(_mm256_set1_epi32(zero_point), moved);
}

/* Of 8 channels from `channel` on, a multiple of 8: what the code generator packs for `channels` channels, see
 * arenite_host_blocks.h. */
ARENITE_AVX2_INLINE arenite_requantise_avx2_t arenite_load_requantise_avx2(const int32_t *multiplier,
                                                                           const int8_t *shift,
                                                                           int32_t channels, int32_t channel,
                                                                           int32_t zero_point) {
    const int64_t *constants = arenite_block_constants(multiplier, channels, channel & -ARENITE_BLOCK) +
                               (channel & ARENITE_HALF) / 2;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i shifts =
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(shift + channel)));
    arenite_requantise_avx2_t r;
    r.multiplier[0] = arenite_load_avx2(multiplier + channel);
    r.multiplier[1] = _mm256_srli_epi64(r.multiplier[0], 32);
    for (int i = 0; i < 2; i++) {
        const int64_t *own = constants + ARENITE_HALF * i;
        r.rounding[i] = _mm256_add_epi64(arenite_load_avx2(own), _mm256_set1_epi64x((int64_t)1 << 62));
        r.right[i] = arenite_load_avx2(own + ARENITE_BLOCK);
        r.sign[i] = arenite_load_avx2(own + 2 * ARENITE_BLOCK);
    }
    arenite_set_offset_avx2(&r, _mm256_sub_epi32(zero, _mm256_min_epi32(shifts, zero)), zero_point);
    r.left = _mm256_max_epi32(shifts, zero);
    r.has_left = !_mm256_testz_si256(r.left, r.left);
    return r;
}

/* The same in every lane. */
ARENITE_AVX2_INLINE arenite_requantise_avx2_t arenite_set_requantise_avx2(int32_t multiplier,
                                                                          int32_t right_shift,
                                                                          int32_t zero_point) {
    const int64_t half = right_shift > 0 ? (int64_t)1 << (30 + right_shift) : 0;
    arenite_requantise_avx2_t r;
    for (int i = 0; i < 2; i++) {
        r.multiplier[i] = _mm256_set1_epi32(multiplier);
        r.rounding[i] = _mm256_set1_epi64x(((int64_t)1 << 62) + ((int64_t)1 << 30) + half);
        r.right[i] = _mm256_set1_epi64x(31 + right_shift);
        r.sign[i] = _mm256_set1_epi64x(right_shift > 0 ? (int64_t)1 << 31 : 0);
    }
    arenite_set_offset_avx2(&r, _mm256_set1_epi32(right_shift), zero_point);
    r.left = _mm256_setzero_si256();
    r.has_left = 0;
    return r;
}

/* The even lanes, or with `odd` the odd ones moved to even places, requantised into the low halves of 64 bits. */
ARENITE_AVX2_INLINE __m256i arenite_requantise_half_avx2(const arenite_requantise_avx2_t *r, __m256i acc,
                                                         const int odd, const int clamps_negative) {
    __m256i sum = _mm256_add_epi64(_mm256_mul_epi32(acc, r->multiplier[odd]), r->rounding[odd]);
    if (!clamps_negative) {
        sum = _mm256_sub_epi64(sum, _mm256_and_si256(acc, r->sign[odd]));
    }
    return _mm256_srlv_epi64(sum, r->right[odd]);
}

/* Accumulators, shifted left already, to output values, zero point added, not clamped yet.
 * clamps_negative: act_min is at least the zero point. */
ARENITE_AVX2_INLINE __m256i arenite_requantise_avx2(const arenite_requantise_avx2_t *r, __m256i acc,
                                                    const int clamps_negative) {
    const __m256i even = arenite_requantise_half_avx2(r, acc, 0, clamps_negative);
    const __m256i odd = arenite_requantise_half_avx2(r, _mm256_srli_epi64(acc, 32), 1, clamps_negative);
    return _mm256_add_epi32(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA), r->offset);
}

/* Twice 8 values as bytes, clamped. */
ARENITE_AVX2_INLINE __m128i arenite_bytes_avx2(__m256i first, __m256i second, __m128i low, __m128i high) {
    const __m256i pairs = _mm256_packs_epi32(first, second); /* the first four of each, then the others */
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    return _mm_min_epi8(_mm_max_epi8(_mm_shuffle_epi32(bytes, 0xD8), low), high);
}

/* The first `count` of 8 bytes. */
ARENITE_AVX2_INLINE void arenite_store_8_avx2(int8_t *out, __m128i bytes, int32_t count) {
    if (count >= ARENITE_HALF) {
        _mm_storel_epi64((__m128i *)(void *)out, bytes);
        return;
    }
    int8_t all[16];
    _mm_storeu_si128((__m128i *)(void *)all, bytes);
    for (int32_t i = 0; i < count; i++) {
        out[i] = all[i];
    }
}

#endif
