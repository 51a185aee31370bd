/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

/* Output channels whose weights are interleaved: one load of an input byte serves all of them. Together with a second
 * pixel, which shares the loads of the weights, that makes 6 loads for 8 multiply-accumulates. */
#define LANES ARENITE_CONV_2D_S8_LANES

/* Taps a turn of the loops: they share what a turn costs beside its products. With fewer than 32 registers sums lie in
 * memory and a turn gains nothing. */
#if defined(__arm__) || defined(__xtensa__)
#define TURN 1
#else
#define TURN 4
#endif

/* Blocks have as many sums as many cores have registers, so their loops share a function with nothing else; a tap has no
 * function of its own at any level of optimisation. */
#if defined(__GNUC__)
#define APART __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#else
#define APART
#define INLINE static inline
#endif

/* Sums of LANES channels of one pixel. */
typedef struct {
    uint32_t l0, l1, l2, l3;
} sums_t;

/* Ends a tap: a compiler that loads all bytes of a turn first, or adds up its products apart, runs out of registers. */
INLINE void settle(sums_t *a) {
#if defined(__GNUC__) && TURN > 1
    __asm__ volatile("" : "+r"(a->l0), "+r"(a->l1), "+r"(a->l2), "+r"(a->l3) : : "memory");
#else
    (void)a;
#endif
}

/* One tap of one pixel. */
INLINE void add_tap(sums_t *a, int32_t value, const int8_t *w) {
    a->l0 = arenite_mac(a->l0, value, w[0]);
    a->l1 = arenite_mac(a->l1, value, w[1]);
    a->l2 = arenite_mac(a->l2, value, w[2]);
    a->l3 = arenite_mac(a->l3, value, w[3]);
    settle(a);
}

/* One tap of two pixels. */
INLINE void add_tap_pair(sums_t *a, sums_t *b, int32_t left, int32_t right, const int8_t *w) {
    int32_t weight = w[0];
    a->l0 = arenite_mac(a->l0, left, weight);
    b->l0 = arenite_mac(b->l0, right, weight);
    weight = w[1];
    a->l1 = arenite_mac(a->l1, left, weight);
    b->l1 = arenite_mac(b->l1, right, weight);
    weight = w[2];
    a->l2 = arenite_mac(a->l2, left, weight);
    b->l2 = arenite_mac(b->l2, right, weight);
    weight = w[3];
    a->l3 = arenite_mac(a->l3, left, weight);
    b->l3 = arenite_mac(b->l3, right, weight);
    settle(a);
    settle(b);
}

/* sums of lane l += sum of x[i] * w[i * LANES + l]. */
INLINE void dot_lanes(const int8_t *x, const int8_t *w, int32_t count, sums_t *a) {
    const int8_t *const end = x + count;
    for (const int8_t *turns = TURN > 1 ? end - count % TURN : x; x < turns; x += TURN, w += TURN * LANES) {
        add_tap(a, x[0], w);
        add_tap(a, x[1], w + LANES);
        add_tap(a, x[2], w + 2 * LANES);
        add_tap(a, x[3], w + 3 * LANES);
    }
    for (; x < end; x++, w += LANES) {
        add_tap(a, *x, w);
    }
}

/* The same for two pixels, x into a and x + distance into b. */
INLINE void dot_pair(const int8_t *x, ptrdiff_t distance, const int8_t *w, int32_t count, sums_t *a,
                     sums_t *b) {
    const int8_t *const end = x + count;
    for (const int8_t *turns = TURN > 1 ? end - count % TURN : x; x < turns; x += TURN, w += TURN * LANES) {
        const int8_t *const y = x + distance;
        add_tap_pair(a, b, x[0], y[0], w);
        add_tap_pair(a, b, x[1], y[1], w + LANES);
        add_tap_pair(a, b, x[2], y[2], w + 2 * LANES);
        add_tap_pair(a, b, x[3], y[3], w + 3 * LANES);
    }
    for (; x < end; x++, w += LANES) {
        add_tap_pair(a, b, *x, x[distance], w);
    }
}

/* sums of lane l += value * sum of w[i * LANES + l]: what lies outside the input. */
INLINE void dot_outside(int32_t value, const int8_t *w, int32_t count, sums_t *a) {
    for (const int8_t *const end = w + count * LANES; w < end; w += LANES) {
        add_tap(a, value, w);
    }
}

/* Whether every tap of the output pixel that starts at input pixel `first` is inside the row, and one run of bytes. */
static int is_run(const arenite_conv_2d_s8_t *p, int32_t first) {
    return first >= 0 && first + (p->kernel_w - 1) * p->dilation_w < p->in_w &&
           (p->dilation_w == 1 || p->kernel_w == 1);
}

INLINE sums_t load(const int32_t *bias) {
    const sums_t sums = {(uint32_t)bias[0], (uint32_t)bias[1], (uint32_t)bias[2], (uint32_t)bias[3]};
    return sums;
}

/* Output bytes of LANES channels from `channel` on, whose sums come in registers as far as these go. */
static APART void finish(const arenite_conv_2d_s8_t *p, uint32_t l0, uint32_t l1, uint32_t l2, uint32_t l3,
                         int32_t channel, int8_t *out) {
    const uint32_t acc[LANES] = {l0, l1, l2, l3};
    const int32_t each = p->per_channel, low = p->act_min, high = p->act_max, zero_point = p->out_zero_point;
    const int32_t *multiplier = p->multiplier + (each ? channel : 0);
    const int8_t *shift = p->shift + (each ? channel : 0);
    for (int32_t l = 0; l < LANES; l++, multiplier += each, shift += each) {
        out[l] = arenite_to_byte((int32_t)acc[l], *multiplier, *shift, zero_point, low, high);
    }
}

/* All taps of one output pixel, for LANES channels whose weights start at w. */
static APART void block(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                        const int8_t *w, int32_t channel, int8_t *out) {
    const int32_t span = p->kernel_w * p->in_c;
    const int run = is_run(p, first);
    sums_t a = load(&p->bias[channel]);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        if (rows[ky] == NULL) {
            dot_outside(p->in_zero_point, w, span, &a);
            w += span * LANES;
        } else if (run) {
            dot_lanes(rows[ky] + (ptrdiff_t)first * p->in_c, w, span, &a);
            w += span * LANES;
        } else {
            for (int32_t x = first; x < first + p->kernel_w * p->dilation_w; x += p->dilation_w) {
                if (x >= 0 && x < p->in_w) {
                    dot_lanes(rows[ky] + (ptrdiff_t)x * p->in_c, w, p->in_c, &a);
                } else {
                    dot_outside(p->in_zero_point, w, p->in_c, &a);
                }
                w += p->in_c * LANES;
            }
        }
    }
    finish(p, a.l0, a.l1, a.l2, a.l3, channel, out);
}

/* The same for two neighbouring output pixels whose taps are runs. */
static APART void block_pair(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                             const int8_t *w, int32_t channel, int8_t *out) {
    const int32_t span = p->kernel_w * p->in_c;
    const ptrdiff_t distance = (ptrdiff_t)p->stride_w * p->in_c;
    sums_t a = load(&p->bias[channel]), b = a;
    for (int32_t ky = 0; ky < p->kernel_h; ky++, w += span * LANES) {
        if (rows[ky] == NULL) {
            dot_outside(p->in_zero_point, w, span, &a);
            dot_outside(p->in_zero_point, w, span, &b);
        } else {
            dot_pair(rows[ky] + (ptrdiff_t)first * p->in_c, distance, w, span, &a, &b);
        }
    }
    finish(p, a.l0, a.l1, a.l2, a.l3, channel, out);
    finish(p, b.l0, b.l1, b.l2, b.l3, channel, out + p->out_c);
}

/* sum of x[i] * w[i]. */
INLINE uint32_t dot(const int8_t *x, const int8_t *w, int32_t count) {
    uint32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum = arenite_mac(sum, x[i], w[i]);
    }
    return sum;
}

/* One output byte, of a channel whose weights are not interleaved. */
static APART void single(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                         const int8_t *w, int32_t channel, int8_t *out) {
    const int32_t entry = p->per_channel ? channel : 0, end = first + p->kernel_w * p->dilation_w;
    uint32_t acc = (uint32_t)p->bias[channel];
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        for (int32_t x = first; x < end; x += p->dilation_w, w += p->in_c) {
            if (rows[ky] != NULL && x >= 0 && x < p->in_w) {
                acc += dot(rows[ky] + (ptrdiff_t)x * p->in_c, w, p->in_c);
            } else {
                for (int32_t i = 0; i < p->in_c; i++) {
                    acc = arenite_mac(acc, p->in_zero_point, w[i]);
                }
            }
        }
    }
    *out = arenite_to_byte((int32_t)acc, p->multiplier[entry], p->shift[entry], p->out_zero_point, p->act_min,
                           p->act_max);
}

void arenite_conv_2d_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w;) {
        const int32_t first = x * p->stride_w - p->pad_left;
        const int pair = x + 1 < p->out_w && is_run(p, first) && is_run(p, first + p->stride_w);
        const int8_t *w = p->weights;
        int32_t o = 0;
        for (; o <= p->out_c - LANES; o += LANES, w += taps * LANES) {
            if (pair) {
                block_pair(p, rows, first, w, o, &out[o]);
            } else {
                block(p, rows, first, w, o, &out[o]);
            }
        }
        for (; o < p->out_c; o++, w += taps) {
            single(p, rows, first, w, o, &out[o]);
            if (pair) {
                single(p, rows, first + p->stride_w, w, o, &out[p->out_c + o]);
            }
        }
        x += pair ? 2 : 1;
        out += pair ? 2 * p->out_c : p->out_c;
    }
}
