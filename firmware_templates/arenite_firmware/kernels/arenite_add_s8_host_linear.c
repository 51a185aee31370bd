/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8_host_linear.h"

#include <stddef.h>

#include "arenite_add_linear.h"
#include "arenite_host_isa.h"

/* As many of `count` as the vectors at hand allow. */
static int32_t vectors(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                       int32_t count) {
#if defined(__x86_64__)
    const int32_t isa = arenite_host_isa();
    if (isa == ARENITE_ISA_AVX512) {
        return arenite_add_linear_avx512(p, a, b, out, count);
    }
    if (isa >= ARENITE_ISA_AVX2) {
        return arenite_add_linear_avx2(p, a, b, out, count);
    }
#else
    (void)p, (void)a, (void)b, (void)out, (void)count;
#endif
    return 0;
}

static void add_run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out, int32_t count) {
    for (int32_t i = vectors(p, a, b, out, count); i < count; i++) {
        const int32_t sum = a[i] * p->a_multiplier + (b[i] * p->b_multiplier + p->out_multiplier);
        out[i] = (int8_t)arenite_clamp(sum >> p->out_right_shift, p->act_min, p->act_max);
    }
}

void arenite_add_s8_host_linear(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    const int8_t *a = rows[0], *b = rows[1];
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++, out += p->channels) {
        add_run(p, a, b, out, p->channels);
        a += p->a_pixel_step;
        b += p->b_pixel_step;
    }
}
