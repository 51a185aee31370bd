/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_linear.h"

#if defined(__x86_64__)
#include "arenite_avx512.h"

#define LANES 16
#define VECTORS 4 /* that are packed together */

typedef struct {
    __m512i a;
    __m512i b;
    __m512i offset;
    __m128i right;
} linear_t;

ARENITE_AVX512_INLINE __m512i widen(const int8_t *bytes) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

/* 16 sums, not clamped. */
ARENITE_AVX512_INLINE __m512i add(const linear_t *l, const int8_t *a, const int8_t *b) {
    const __m512i of_b = _mm512_add_epi32(_mm512_mullo_epi32(widen(b), l->b), l->offset);
    return _mm512_sra_epi32(_mm512_add_epi32(_mm512_mullo_epi32(widen(a), l->a), of_b), l->right);
}

ARENITE_AVX512 int32_t arenite_add_linear_avx512(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                                 int8_t *out, int32_t count) {
    const linear_t l = {_mm512_set1_epi32(p->a_multiplier), _mm512_set1_epi32(p->b_multiplier),
                        _mm512_set1_epi32(p->out_multiplier), _mm_cvtsi32_si128(p->out_right_shift)};
    const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
    int32_t i = 0;
    for (; i <= count - VECTORS * LANES; i += VECTORS * LANES) {
        __m512i v[VECTORS];
        ARENITE_UNROLL
        for (int k = 0; k < VECTORS; k++) {
            v[k] = add(&l, a + i + k * LANES, b + i + k * LANES);
        }
        _mm512_storeu_si512(out + i, arenite_in_order_avx512(arenite_pack_avx512(v, low, high)));
    }
    for (; i <= count - LANES; i += LANES) {
        arenite_store_avx512(out + i, add(&l, a + i, b + i), LANES, _mm512_castsi512_si128(low),
                             _mm512_castsi512_si128(high));
    }
    return i;
}
#endif
