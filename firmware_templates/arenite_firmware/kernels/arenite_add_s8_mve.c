/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8_mve.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>

#include "arenite_mve.h"

#define HALF (1 << 30)

typedef struct {
    int32_t zero_point;
    int32_t multiplier;
    int32_t left_shift;
    int32_t right_shift; /* negative */
} side_t;

/* A side that is not shifted right is shifted left once more instead, which changes nothing: its product is even. */
static side_t side(int32_t zero_point, int32_t multiplier, int32_t right_shift) {
    const int32_t more = right_shift == 0;
    const side_t s = {zero_point, multiplier, ARENITE_ADD_S8_LEFT_SHIFT + more, -right_shift - more};
    return s;
}

/* A run of bytes of a side and of the one that is halved. Both are read before any is written, as out may be where one of
 * them is. Zero points and shifts to the left are one multiplication and addition: modulo 2^32 nothing is lost. `ties` moves
 * negative sums, whose halves the last shift would round up; a clamp at the zero point hides what would differ. */
#define RUN(name, ties)                                                                                      \
    static void name(const arenite_add_s8_t *p, const side_t *a, int32_t halved_zero_point,                  \
                     const int8_t *in, const int8_t *halved, int8_t *out, int32_t count) {                   \
        const int32_t half = 1 << (ARENITE_ADD_S8_LEFT_SHIFT - 1);                                           \
        const int32x4_t low = vdupq_n_s32(p->act_min), high = vdupq_n_s32(p->act_max);                       \
        const int32x4_t factor = vdupq_n_s32(1 << a->left_shift);                                            \
        register int32_t left __asm__("lr") = count;                                                         \
        __asm__ volatile("wlstp.32 lr, lr, 2f\n"                                                             \
                         "1:\n\t"                                                                            \
                         "vldrb.s32 q0, [%[in]], #4\n\t"                                                     \
                         "vldrb.s32 q1, [%[halved]], #4\n\t"                                                 \
                         "vmlas.s32 q0, %q[factor], %[start]\n\t"                                            \
                         "vqrdmulh.s32 q0, q0, %[multiplier]\n\t"                                            \
                         "vshr.s32 q2, q0, #31\n\t"                                                          \
                         "vadd.i32 q0, q0, q2\n\t"                                                           \
                         "vrshl.s32 q0, %[right]\n\t"                                                        \
                         "vmla.s32 q0, q1, %[half]\n\t"                                                      \
                         "vadd.i32 q0, q0, %[moved]\n\t"                                                     \
                         "vqrdmulh.s32 q0, q0, %[out_multiplier]\n\t" ties "vrshl.s32 q0, %[out_right]\n\t"  \
                         "vadd.i32 q0, q0, %[out_zero]\n\t"                                                  \
                         "vmax.s32 q0, q0, %q[low]\n\t"                                                      \
                         "vmin.s32 q0, q0, %q[high]\n\t"                                                     \
                         "vstrb.32 q0, [%[out]], #4\n\t"                                                     \
                         "letp lr, 1b\n"                                                                     \
                         "2:"                                                                                \
                         : [in] "+l"(in), [halved] "+l"(halved), [out] "+l"(out), "+r"(left)                 \
                         : [start] "r"(-a->zero_point * (1 << a->left_shift)),                               \
                           [multiplier] "r"(a->multiplier), [right] "r"(a->right_shift), [half] "r"(half),   \
                           [moved] "r"(-halved_zero_point * half), [out_multiplier] "r"(p->out_multiplier),  \
                           [out_right] "r"(-p->out_right_shift), [out_zero] "r"((int32_t)p->out_zero_point), \
                           [low] "w"(low), [high] "w"(high), [factor] "w"(factor)                            \
                         : "q0", "q1", "q2", "memory");                                                      \
    }
RUN(run_any, "vshr.s32 q2, q0, #31\n\tvadd.i32 q0, q0, q2\n\t")
RUN(run_positive, )

void arenite_add_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    const int halves_a = p->a_multiplier == HALF && p->a_right_shift == 0;
    const side_t other = halves_a ? side(p->b_zero_point, p->b_multiplier, p->b_right_shift)
                                  : side(p->a_zero_point, p->a_multiplier, p->a_right_shift);
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++, out += p->channels) {
        const int8_t *a = rows[0] + (ptrdiff_t)x * p->a_pixel_step;
        const int8_t *b = rows[1] + (ptrdiff_t)x * p->b_pixel_step;
        const int8_t *const halved = halves_a ? a : b, *const in = halves_a ? b : a;
        const int32_t zero_point = halves_a ? p->a_zero_point : p->b_zero_point;
        if (p->act_min >= p->out_zero_point) {
            run_positive(p, &other, zero_point, in, halved, out, p->channels);
        } else {
            run_any(p, &other, zero_point, in, halved, out, p->channels);
        }
    }
}

#endif
