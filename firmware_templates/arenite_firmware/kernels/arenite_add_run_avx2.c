/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_run.h"

#if defined(__x86_64__)
#include "arenite_avx2.h"

#define LANES 16
/* The side of the larger scale is only halved, which is exact. */
#define HALF (1 << 30)

typedef struct {
    __m256i zero_point;
    arenite_requantise_avx2_t requantise;
    int halves;
} side_t;

ARENITE_AVX2_INLINE side_t load_side(int32_t zero_point, int32_t multiplier, int32_t right_shift) {
    side_t side;
    side.zero_point = _mm256_set1_epi32(zero_point);
    side.requantise = arenite_set_requantise_avx2(multiplier, right_shift, 0);
    side.halves = multiplier == HALF && right_shift == 0;
    return side;
}

ARENITE_AVX2_INLINE __m256i to_shared_grid(const side_t *side, const int8_t *bytes) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    const __m256i value = _mm256_sub_epi32(wide, side->zero_point);
    if (side->halves) {
        return _mm256_slli_epi32(value, ARENITE_ADD_S8_LEFT_SHIFT - 1);
    }
    return arenite_requantise_avx2(&side->requantise, _mm256_slli_epi32(value, ARENITE_ADD_S8_LEFT_SHIFT), 0);
}

ARENITE_AVX2_INLINE int32_t run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                                int32_t count, const int clamps_negative) {
    const side_t side_a = load_side(p->a_zero_point, p->a_multiplier, p->a_right_shift);
    const side_t side_b = load_side(p->b_zero_point, p->b_multiplier, p->b_right_shift);
    const arenite_requantise_avx2_t requantise =
        arenite_set_requantise_avx2(p->out_multiplier, p->out_right_shift, p->out_zero_point);
    const __m128i low = _mm_set1_epi8((int8_t)p->act_min), high = _mm_set1_epi8((int8_t)p->act_max);
    int32_t i = 0;
    for (; i <= count - LANES; i += LANES) {
        __m256i values[2];
        for (int h = 0; h < 2; h++) {
            const int32_t at = i + ARENITE_HALF * h;
            const __m256i sum =
                _mm256_add_epi32(to_shared_grid(&side_a, a + at), to_shared_grid(&side_b, b + at));
            values[h] = arenite_requantise_avx2(&requantise, sum, clamps_negative);
        }
        _mm_storeu_si128((__m128i *)(void *)(out + i), arenite_bytes_avx2(values[0], values[1], low, high));
    }
    return i;
}

ARENITE_AVX2 int32_t arenite_add_run_avx2(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                          int8_t *out, int32_t count) {
    return p->act_min >= p->out_zero_point ? run(p, a, b, out, count, 1) : run(p, a, b, out, count, 0);
}
#endif
