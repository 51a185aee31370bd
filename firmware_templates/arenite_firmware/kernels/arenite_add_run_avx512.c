/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_run.h"

#if defined(__x86_64__)
#include "arenite_avx512.h"

#define LANES 16
#define VECTORS 4 /* that are packed together */
/* The side of the larger scale is only halved, which is exact. */
#define HALF (1 << 30)
/* Bits of a multiplier that meet a byte's value apart: both products then fit 32 bits. */
#define LOW_BITS (31 - ARENITE_ADD_S8_LEFT_SHIFT)

/* A side on the shared grid, in 32 bits. The reference's first rounding is floor((x * m + 2^10) / 2^11), and with
 * m = 2^11 * h + l that is x * h + floor((x * l + 2^10) / 2^11). It is negative where x is, so the second one is
 * floor((that + 2^(e - 1) - (x < 0)) / 2^e). */
typedef struct {
    __m512i zero_point;
    __m512i high; /* h */
    __m512i low;  /* l */
    __m512i half; /* 2^(e - 1), or 0 for e = 0 */
    __m512i sign; /* 1, or 0 for e = 0 */
    __m512i right;
} side_t;

ARENITE_AVX512_INLINE side_t load_side(int32_t zero_point, int32_t multiplier, int32_t right_shift) {
    side_t side;
    side.zero_point = _mm512_set1_epi32(zero_point);
    side.high = _mm512_set1_epi32(multiplier >> LOW_BITS);
    side.low = _mm512_set1_epi32(multiplier & ((1 << LOW_BITS) - 1));
    side.half = _mm512_set1_epi32(right_shift > 0 ? (int32_t)(1u << (right_shift - 1)) : 0);
    side.sign = _mm512_set1_epi32(right_shift > 0);
    side.right = _mm512_set1_epi32(right_shift);
    return side;
}

static int is_halved(int32_t multiplier, int32_t right_shift) {
    return multiplier == HALF && right_shift == 0;
}

ARENITE_AVX512_INLINE __m512i to_shared_grid(const side_t *side, const int8_t *bytes, const int halves) {
    const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)bytes));
    const __m512i x = _mm512_sub_epi32(wide, side->zero_point);
    if (halves) {
        return _mm512_mullo_epi32(x, side->high); /* 2^19; a shift would wait for those of the other side */
    }
    const __m512i rest =
        _mm512_add_epi32(_mm512_mullo_epi32(x, side->low), _mm512_set1_epi32(1 << (LOW_BITS - 1)));
    const __m512i value =
        _mm512_add_epi32(_mm512_mullo_epi32(x, side->high), _mm512_srai_epi32(rest, LOW_BITS));
    const __m512i rounded = _mm512_add_epi32(value, side->half);
    return _mm512_srav_epi32(_mm512_mask_sub_epi32(rounded, _mm512_movepi32_mask(x), rounded, side->sign),
                             side->right);
}

ARENITE_AVX512_INLINE int32_t run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                                  int32_t count, const int b_halves, const int clamps_negative) {
    const side_t side_a = load_side(p->a_zero_point, p->a_multiplier, p->a_right_shift);
    const side_t side_b = load_side(p->b_zero_point, p->b_multiplier, p->b_right_shift);
    const arenite_requantise_avx512_t requantise =
        arenite_set_requantise_avx512(p->out_multiplier, p->out_right_shift, p->out_zero_point);
    const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
    int32_t i = 0;
    for (; i <= count - VECTORS * LANES; i += VECTORS * LANES) {
        __m512i v[VECTORS];
        ARENITE_UNROLL
        for (int k = 0; k < VECTORS; k++) {
            const __m512i sum = _mm512_add_epi32(to_shared_grid(&side_a, a + i + k * LANES, 0),
                                                 to_shared_grid(&side_b, b + i + k * LANES, b_halves));
            v[k] = arenite_requantise_avx512(&requantise, sum, clamps_negative);
        }
        _mm512_storeu_si512(out + i, arenite_in_order_avx512(arenite_pack_avx512(v, low, high)));
    }
    for (; i <= count - LANES; i += LANES) {
        const __m512i sum =
            _mm512_add_epi32(to_shared_grid(&side_a, a + i, 0), to_shared_grid(&side_b, b + i, b_halves));
        arenite_store_avx512(out + i, arenite_requantise_avx512(&requantise, sum, clamps_negative), LANES,
                             _mm512_castsi512_si128(low), _mm512_castsi512_si128(high));
    }
    return i;
}

ARENITE_AVX512 static int32_t run_halved(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                         int8_t *out, int32_t count) {
    return p->act_min >= p->out_zero_point ? run(p, a, b, out, count, 1, 1) : run(p, a, b, out, count, 1, 0);
}

ARENITE_AVX512 int32_t arenite_add_run_avx512(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                              int8_t *out, int32_t count) {
    if (is_halved(p->b_multiplier, p->b_right_shift)) {
        return run_halved(p, a, b, out, count);
    }
    if (is_halved(p->a_multiplier, p->a_right_shift)) {
        arenite_add_s8_t swapped = *p;
        swapped.a_zero_point = p->b_zero_point;
        swapped.a_multiplier = p->b_multiplier;
        swapped.a_right_shift = p->b_right_shift;
        swapped.b_zero_point = p->a_zero_point;
        swapped.b_multiplier = HALF;
        swapped.b_right_shift = 0;
        return run_halved(&swapped, b, a, out, count);
    }
    return run(p, a, b, out, count, 0, 0);
}
#endif
