/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_run.h"

#include "arenite_fixed_point.h"
#include "arenite_host_isa.h"

static inline int32_t to_shared_grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(
        arenite_doubling_high_mul(value * (1 << ARENITE_ADD_LEFT_SHIFT), multiplier), right_shift);
}

static int32_t vectors(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                       int32_t count) {
#if defined(__x86_64__)
    const int32_t isa = arenite_host_isa();
    if (isa == ARENITE_ISA_AVX512) {
        return arenite_add_run_avx512(p, a, b, out, count);
    }
    if (isa == ARENITE_ISA_AVX2) {
        return arenite_add_run_avx2(p, a, b, out, count);
    }
#else
    (void)p, (void)a, (void)b, (void)out, (void)count;
#endif
    return 0;
}

void arenite_add_run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                     int32_t count) {
    for (int32_t i = vectors(p, a, b, out, count); i < count; i++) {
        const int32_t sum = to_shared_grid(a[i] - p->a_zero_point, p->a_multiplier, p->a_right_shift) +
                            to_shared_grid(b[i] - p->b_zero_point, p->b_multiplier, p->b_right_shift);
        const int32_t value = arenite_rounding_shift_right(arenite_doubling_high_mul(sum, p->out_multiplier),
                                                           p->out_right_shift);
        out[i] = (int8_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
    }
}
