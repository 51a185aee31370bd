/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8_dsp.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

/* A side that is rescaled, and the sum; bits as in arenite_dsp.h. */
typedef struct {
    int32_t exact_zero;  /* of the side with the greater scale: -2^20 * zero_point */
    int32_t scaled_zero; /* of the other side: -2^21 * zero_point */
    int32_t multiplier;
    int32_t shift;
    int32_t rounding;
    int32_t out_rounding;
    arenite_dsp_channel_t out;
} scales_t;

/* value * 2^20 is rescaled as the reference does it, which doubles: hence 2^21, and 2^20 for the side that is halved. */
static void run(const scales_t *s, const int8_t *exact, const int8_t *scaled, int8_t *out, int32_t count) {
    const scales_t own = *s; /* the compiler may not know that out is none of it */
    for (const int8_t *end = out + count; out < end; out++) {
        const int32_t wide = own.scaled_zero + arenite_shift_left(*scaled++, 21);
        const int32_t value = arenite_smmlar(wide, own.multiplier, own.rounding + (wide >> 31)) >> own.shift;
        const int32_t twice_sum = own.exact_zero + arenite_shift_left(*exact++, 20) + 2 * value;
        *out = arenite_dsp_byte(twice_sum, &own.out, own.out_rounding);
    }
}

void arenite_add_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    const int b_is_exact = p->a_right_shift != 0;
    const int8_t *exact = rows[b_is_exact], *scaled = rows[!b_is_exact];
    const int32_t exact_zero = b_is_exact ? p->b_zero_point : p->a_zero_point;
    const int32_t scaled_zero = b_is_exact ? p->a_zero_point : p->b_zero_point;
    const int32_t exact_step = b_is_exact ? p->b_pixel_step : p->a_pixel_step;
    const int32_t scaled_step = b_is_exact ? p->a_pixel_step : p->b_pixel_step;
    const int32_t shift = b_is_exact ? p->a_right_shift : p->b_right_shift;
    const scales_t scales = {-exact_zero * (1 << 20),
                             -scaled_zero * (1 << 21),
                             b_is_exact ? p->a_multiplier : p->b_multiplier,
                             shift,
                             arenite_shift_left(1, shift - 1),
                             arenite_shift_left(2 * p->out_zero_point + 1, p->out_right_shift - 1),
                             {0, p->out_multiplier, p->out_right_shift - 1}};
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        run(&scales, exact + (ptrdiff_t)x * exact_step, scaled + (ptrdiff_t)x * scaled_step,
            out + (ptrdiff_t)x * p->channels, p->channels);
    }
    arenite_dsp_clamp(out, p->width * p->channels, p->act_min, p->act_max);
}
