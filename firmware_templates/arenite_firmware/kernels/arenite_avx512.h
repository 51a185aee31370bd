/* SPDX-License-Identifier: Apache-2.0 */
/* Requantisation of arenite_fixed_point.h on 16 lanes of AVX-512, in one shift.
 *
 * The reference rounds product / 2^31 half up and the result's quotient by 2^e half away from zero. Nested floors are one
 * floor, so for e > 0 both roundings are
 *
 *   floor((product + 2^30 + 2^(30 + e) - (product < 0 ? 2^31 : 0)) / 2^(31 + e))
 *
 * (a negative product that the first rounding makes 0 gives 0 either way), and for e = 0 floor((product + 2^30) / 2^31).
 * Where the activation clamps at the zero point or above it, what a negative product rounds to does not matter, as long
 * as it is not positive. */
#ifndef ARENITE_AVX512_H
#define ARENITE_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "arenite_host_blocks.h"

#define ARENITE_AVX512                                                                                       \
    __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#define ARENITE_AVX512_INLINE static inline __attribute__((always_inline)) ARENITE_AVX512

/* Constants of 16 lanes; those of 64 bits for the even lanes, then for the odd ones. */
typedef struct {
    __m512i multiplier[2];
    __m512i rounding[2]; /* 2^30 + 2^(30 + e), or 2^30 for e = 0 */
    __m512i right[2];    /* 31 + e */
    __m512i sign[2];     /* 2^31, or 0 for e = 0 */
    __m512i left;
    __m512i zero_point;
    int has_left;
} arenite_requantise_avx512_t;

/* Of a block of channels: `constants` as the code generator packs them, see arenite_host_blocks.h. */
ARENITE_AVX512_INLINE arenite_requantise_avx512_t arenite_load_requantise_avx512(const int32_t *multiplier,
                                                                                 const int8_t *shift,
                                                                                 const int64_t *constants,
                                                                                 int32_t zero_point) {
    const __m512i shifts = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)shift));
    arenite_requantise_avx512_t r;
    r.multiplier[0] = _mm512_loadu_si512(multiplier);
    r.multiplier[1] = _mm512_srli_epi64(r.multiplier[0], 32);
    for (int i = 0; i < 2; i++) {
        r.rounding[i] = _mm512_loadu_si512(constants + 8 * i);
        r.right[i] = _mm512_loadu_si512(constants + ARENITE_BLOCK + 8 * i);
        r.sign[i] = _mm512_loadu_si512(constants + 2 * ARENITE_BLOCK + 8 * i);
    }
    r.zero_point = _mm512_set1_epi32(zero_point);
    r.left = _mm512_max_epi32(shifts, _mm512_setzero_si512());
    r.has_left = _mm512_test_epi32_mask(r.left, r.left) != 0;
    return r;
}

/* The same in every lane. */
ARENITE_AVX512_INLINE arenite_requantise_avx512_t arenite_set_requantise_avx512(int32_t multiplier,
                                                                                int32_t right_shift,
                                                                                int32_t zero_point) {
    const int64_t half = right_shift > 0 ? (int64_t)1 << (30 + right_shift) : 0;
    arenite_requantise_avx512_t r;
    for (int i = 0; i < 2; i++) {
        r.multiplier[i] = _mm512_set1_epi32(multiplier);
        r.rounding[i] = _mm512_set1_epi64(((int64_t)1 << 30) + half);
        r.right[i] = _mm512_set1_epi64(31 + right_shift);
        r.sign[i] = _mm512_set1_epi64(right_shift > 0 ? (int64_t)1 << 31 : 0);
    }
    r.zero_point = _mm512_set1_epi32(zero_point);
    r.left = _mm512_setzero_si512();
    r.has_left = 0;
    return r;
}

/* The even lanes, or with `odd` the odd ones moved to even places, requantised into the low halves of 64 bits. */
ARENITE_AVX512_INLINE __m512i arenite_requantise_half_avx512(const arenite_requantise_avx512_t *r,
                                                             __m512i acc, const int odd,
                                                             const int clamps_negative) {
    const __m512i product = _mm512_mul_epi32(acc, r->multiplier[odd]);
    __m512i sum = _mm512_add_epi64(product, r->rounding[odd]);
    if (!clamps_negative) {
        sum = _mm512_mask_sub_epi64(sum, _mm512_movepi64_mask(product), sum, r->sign[odd]);
    }
    return _mm512_srav_epi64(sum, r->right[odd]);
}

/* Accumulators, shifted left already, to output values, zero point added, not clamped yet.
 * clamps_negative: act_min is at least the zero point. */
ARENITE_AVX512_INLINE __m512i arenite_requantise_avx512(const arenite_requantise_avx512_t *r, __m512i acc,
                                                        const int clamps_negative) {
    const __m512i even = arenite_requantise_half_avx512(r, acc, 0, clamps_negative);
    const __m512i odd = arenite_requantise_half_avx512(r, _mm512_srli_epi64(acc, 32), 1, clamps_negative);
    const __m512i value = _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
    return _mm512_add_epi32(value, r->zero_point);
}

/* The first `count` of 16 values, clamped. */
ARENITE_AVX512_INLINE void arenite_store_avx512(int8_t *out, __m512i values, int32_t count, __m128i low,
                                                __m128i high) {
    const __m128i bytes = _mm_min_epi8(_mm_max_epi8(_mm512_cvtsepi32_epi8(values), low), high);
    if (count >= ARENITE_BLOCK) {
        _mm_storeu_si128((__m128i *)(void *)out, bytes);
    } else if (count == 8) {
        _mm_storel_epi64((__m128i *)(void *)out, bytes);
    } else {
        _mm_mask_storeu_epi8(out, (__mmask16)((1u << count) - 1u), bytes);
    }
}

#endif
