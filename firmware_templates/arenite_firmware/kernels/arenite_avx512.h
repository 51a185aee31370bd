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

/* acc + products of 4 bytes each, x unsigned. With many accumulators GCC copies them about unless it sees one operand that
 * changes. */
ARENITE_AVX512_INLINE __m512i arenite_dot_avx512(__m512i acc, __m512i x, __m512i w) {
#if defined(__clang__)
    return _mm512_dpbusd_epi32(acc, x, w);
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(x), "v"(w));
    return acc;
#endif
}

/* Constants of 16 lanes; those of 64 bits for the even lanes, then for the odd ones. */
typedef struct {
    __m512i multiplier[2];
    __m512i rounding[2]; /* 2^30 + 2^(30 + e), or 2^30 for e = 0 */
    __m512i right[2];    /* 31 + e */
    __m512i sign[2];     /* 2^31, or 0 for e = 0 */
    __m512i zero_point;
} arenite_requantise_avx512_t;

/* Odd lanes moved to even places. A shift would do too, but the shifts of requantisation keep those units busy. */
ARENITE_AVX512_INLINE __m512i arenite_odd_lanes_avx512(__m512i v) {
    return _mm512_shuffle_epi32(v, _MM_PERM_DDBB);
}

/* Whether a channel of a block is shifted left before it is multiplied; seldom one is. */
ARENITE_AVX512_INLINE int arenite_has_left_avx512(const int8_t *shift) {
    const __m128i shifts = _mm_loadu_si128((const __m128i *)(const void *)shift);
    return _mm_movemask_epi8(_mm_cmpgt_epi8(shifts, _mm_setzero_si128())) != 0;
}

/* Sums of 16 channels, shifted left. */
ARENITE_AVX512_INLINE __m512i arenite_shift_left_avx512(__m512i sums, __m128i shift) {
    return _mm512_sllv_epi32(sums, _mm512_cvtepi8_epi32(_mm_max_epi8(shift, _mm_setzero_si128())));
}

/* Of a block of channels: `constants` as the code generator packs them, see arenite_host_blocks.h. */
ARENITE_AVX512_INLINE arenite_requantise_avx512_t arenite_load_requantise_avx512(const int32_t *multiplier,
                                                                                 const int64_t *constants,
                                                                                 int32_t zero_point) {
    arenite_requantise_avx512_t r;
    r.multiplier[0] = _mm512_loadu_si512(multiplier);
    r.multiplier[1] = arenite_odd_lanes_avx512(r.multiplier[0]);
    for (int i = 0; i < 2; i++) {
        r.rounding[i] = _mm512_loadu_si512(constants + 8 * i);
        r.right[i] = _mm512_loadu_si512(constants + ARENITE_BLOCK + 8 * i);
        r.sign[i] = _mm512_loadu_si512(constants + 2 * ARENITE_BLOCK + 8 * i);
    }
    r.zero_point = _mm512_set1_epi32(zero_point);
    return r;
}

/* Of channels 4 * quarter .. + 3 of the block, in each quarter of the vector. */
ARENITE_AVX512_INLINE arenite_requantise_avx512_t arenite_load_requantise_quarter_avx512(
    const int32_t *multiplier, const int64_t *constants, const int quarter, int32_t zero_point) {
    const __m128i *const four = (const __m128i *)(const void *)(multiplier + 4 * quarter);
    const __m128i *const two = (const __m128i *)(const void *)(constants + 2 * quarter);
    arenite_requantise_avx512_t r;
    r.multiplier[0] = _mm512_broadcast_i32x4(_mm_loadu_si128(four));
    r.multiplier[1] = arenite_odd_lanes_avx512(r.multiplier[0]);
    for (int i = 0; i < 2; i++) {
        r.rounding[i] = _mm512_broadcast_i32x4(_mm_loadu_si128(two + 4 * i));
        r.right[i] = _mm512_broadcast_i32x4(_mm_loadu_si128(two + ARENITE_BLOCK / 2 + 4 * i));
        r.sign[i] = _mm512_broadcast_i32x4(_mm_loadu_si128(two + ARENITE_BLOCK + 4 * i));
    }
    r.zero_point = _mm512_set1_epi32(zero_point);
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
    const __m512i odd = arenite_requantise_half_avx512(r, arenite_odd_lanes_avx512(acc), 1, clamps_negative);
    const __m512i value = _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
    return _mm512_add_epi32(value, r->zero_point);
}

#define ARENITE_MAX_HALVES_SHIFT 24

/* Whether arenite_requantise_halves_avx512 may requantise a block of channels: e is 1 .. ARENITE_MAX_HALVES_SHIFT in
 * each. */
ARENITE_AVX512_INLINE int arenite_suits_halves_avx512(const int8_t *shift) {
    const __m128i shifts = _mm_loadu_si128((const __m128i *)(const void *)shift);
    const __m128i most = _mm_set1_epi8(ARENITE_MAX_HALVES_SHIFT);
    return _mm_cmplt_epu8_mask(_mm_add_epi8(shifts, most), most) == 0xFFFF;
}

/* Constants of 16 lanes for one shift of 32 bits: for e > 0 it can wait until the high halves of even and odd products are
 * together again. rounding includes the zero point, which for e <= ARENITE_MAX_HALVES_SHIFT fits beside the product. */
typedef struct {
    __m512i multiplier[2];
    __m512i rounding[2];
    __m512i sign;  /* 2^31 */
    __m512i right; /* e - 1 */
} arenite_halves_avx512_t;

/* Of a block of channels: `constants` as the code generator packs them, see arenite_host_blocks.h. */
ARENITE_AVX512_INLINE arenite_halves_avx512_t arenite_load_halves_avx512(const int32_t *multiplier,
                                                                         const int64_t *constants) {
    arenite_halves_avx512_t r;
    r.multiplier[0] = _mm512_loadu_si512(multiplier);
    r.multiplier[1] = arenite_odd_lanes_avx512(r.multiplier[0]);
    r.rounding[0] = _mm512_loadu_si512(constants);
    r.rounding[1] = _mm512_loadu_si512(constants + 8);
    r.right = _mm512_loadu_si512(constants + ARENITE_BLOCK);
    r.sign = _mm512_set1_epi64((int64_t)1 << 31);
    return r;
}

/* Of channels 4 * quarter .. + 3 of the block, in each quarter of the vector. */
ARENITE_AVX512_INLINE arenite_halves_avx512_t arenite_load_halves_quarter_avx512(const int32_t *multiplier,
                                                                                 const int64_t *constants,
                                                                                 const int quarter) {
    const __m128i *const four = (const __m128i *)(const void *)(multiplier + 4 * quarter);
    const __m128i *const two = (const __m128i *)(const void *)(constants + 2 * quarter);
    arenite_halves_avx512_t r;
    r.multiplier[0] = _mm512_broadcast_i32x4(_mm_loadu_si128(four));
    r.multiplier[1] = arenite_odd_lanes_avx512(r.multiplier[0]);
    r.rounding[0] = _mm512_broadcast_i32x4(_mm_loadu_si128(two));
    r.rounding[1] = _mm512_broadcast_i32x4(_mm_loadu_si128(two + 4));
    r.right = _mm512_broadcast_i32x4(_mm_loadu_si128(two + ARENITE_BLOCK / 2));
    r.sign = _mm512_set1_epi64((int64_t)1 << 31);
    return r;
}

/* Of the even lanes, or of odd ones moved to even places. A negative product is asked of the accumulator: 2^31 is its
 * sign. With a multiplier of 0 the corrected sum still gives 0. */
ARENITE_AVX512_INLINE __m512i arenite_rounded_product_avx512(const arenite_halves_avx512_t *r, __m512i acc,
                                                             const int odd, const int clamps_negative) {
    const __m512i sum = _mm512_add_epi64(_mm512_mul_epi32(acc, r->multiplier[odd]), r->rounding[odd]);
    return clamps_negative ? sum : _mm512_sub_epi64(sum, _mm512_and_si512(acc, r->sign));
}

/* As arenite_requantise_avx512. */
ARENITE_AVX512_INLINE __m512i arenite_requantise_halves_avx512(const arenite_halves_avx512_t *r, __m512i acc,
                                                               const int clamps_negative) {
    const __m512i even = arenite_rounded_product_avx512(r, acc, 0, clamps_negative);
    const __m512i odd = arenite_rounded_product_avx512(r, arenite_odd_lanes_avx512(acc), 1, clamps_negative);
    return _mm512_srav_epi32(_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB), r->right);
}

/* Four vectors of values as clamped bytes: each quarter holds its 4 of the first vector, of the second and so on. */
ARENITE_AVX512_INLINE __m512i arenite_pack_avx512(const __m512i *v, __m512i low, __m512i high) {
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    return _mm512_min_epi8(_mm512_max_epi8(bytes, low), high);
}

/* arenite_pack_avx512's bytes vector by vector. */
ARENITE_AVX512_INLINE __m512i arenite_in_order_avx512(__m512i bytes) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
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
