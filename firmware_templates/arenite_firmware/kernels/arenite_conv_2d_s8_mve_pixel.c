/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_mve_pixel.h"

#include "arenite_mve.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>

/* The pixel stays in registers while all channels pass, four at a time. Its last step of 16 bytes lies in q5, those before
 * it in q4 .. q0; of eight steps the first two are read again for each four channels, by way of q6. */
#define FOUR(q)                                                                                              \
    "vldrb.8 q7, [r10], #16\n\tvmladava.s8 r0, " q ", q7\n\t"                                                \
    "vldrb.8 q7, [r10], #16\n\tvmladava.s8 r2, " q ", q7\n\t"                                                \
    "vldrb.8 q7, [r10], #16\n\tvmladava.s8 r4, " q ", q7\n\t"                                                \
    "vldrb.8 q7, [r10], #16\n\tvmladava.s8 r6, " q ", q7\n\t"
/* r1: 112 bytes before the last step. */
#define FOUR_AGAIN(at) "vldrb.8 q6, [r1, #" at "]\n\t" FOUR("q6")
/* Bytes of FOUR and of FOUR_AGAIN: a pixel of fewer steps enters the sequence later. By MOV to the program counter: BX would
 * pass for a call through a pointer, and the stack would have no bound. */
#define FOUR_BYTES 32
#define AGAIN_BYTES 36
#define RESIDENT_STEPS 6

#define LOAD_BEFORE(q, at) "subs r0, r0, #1\n\tbeq 2f\n\tvldrb.8 " q ", [r2, #-" at "]\n\t"
/* Bytes behind the pixel become zeros. r0: steps in registers, r2: the last step, r4: bytes of it. */
#define LOAD_PIXEL                                                                                           \
    "vctp.8 r4\n\tvpst\n\tvldrbt.u8 q5, [r2]\n\t" LOAD_BEFORE("q4", "16") LOAD_BEFORE("q3", "32")            \
        LOAD_BEFORE("q2", "48") LOAD_BEFORE("q1", "64") LOAD_BEFORE("q0", "80") "2:\n\t"

#define TIES_UP
#define TIES_DOWN "vshr.s32 q7, q6, #31\n\tvadd.i32 q6, q6, q7\n\t"

typedef struct {
    const int8_t *weights;
    const int32_t *bias;
    const int32_t *multiplier;
    const int8_t *shift;
    int32_t zero_point;
} channels_t;

/* `groups` times four channels of the pixel at `x`; `channels` move on. */
#define CHANNELS(name, TIES)                                                                                 \
    static __attribute__((noinline)) void name(channels_t *channels, const int8_t *x, int32_t bytes,         \
                                               int32_t groups, int8_t *to) {                                 \
        const int32_t steps = (bytes + 15) / 16;                                                             \
        const int32_t resident = steps < RESIDENT_STEPS ? steps : RESIDENT_STEPS;                            \
        register channels_t *c __asm__("r12") = channels;                                                    \
        register int8_t *out __asm__("r7") = to;                                                             \
        register int32_t left __asm__("lr") = groups;                                                        \
        register int32_t count __asm__("r0") = resident;                                                     \
        register const int8_t *last __asm__("r2") = x + 16 * (steps - 1);                                    \
        register int32_t rest __asm__("r4") = bytes - 16 * (steps - 1);                                      \
        register int32_t skipped __asm__("r9") = FOUR_BYTES * resident + AGAIN_BYTES * (steps - resident);   \
        __asm__ volatile(LOAD_PIXEL "sub r1, r2, #112\n\t"                                                   \
                                    "adr.w r0, 4f\n\t"                                                       \
                                    "sub r9, r0, r9\n\t"                                                     \
                                    "ldrd r10, r3, [r12]\n\t"                                                \
                                    "ldrd r8, r5, [r12, #8]\n\t"                                             \
                                    "ldr r11, [r12, #16]\n\t"                                                \
                                    "dls lr, lr\n"                                                           \
                                    "3:\n\t"                                                                 \
                                    "ldm r3!, {r0, r2, r4, r6}\n\t"                                          \
                                    "mov pc, r9\n\t" FOUR_AGAIN("0") FOUR_AGAIN("16") FOUR("q0") FOUR("q1")  \
                                        FOUR("q2") FOUR("q3") FOUR("q4")                                     \
                                            FOUR("q5") "4:\n\t"                                              \
                                                       "vmov q6[2], q6[0], r0, r4\n\t"                       \
                                                       "vmov q6[3], q6[1], r2, r6\n\t"                       \
                                                       "vldrw.u32 q7, [r8], #16\n\t"                         \
                                                       "vqrdmulh.s32 q6, q6, q7\n\t" TIES                    \
                                                       "vldrb.s32 q7, [r5], #4\n\t"                          \
                                                       "vrshl.s32 q6, q6, q7\n\t"                            \
                                                       "vqmovnb.s32 q6, q6\n\t"                              \
                                                       "vqadd.s16 q6, q6, r11\n\t"                           \
                                                       "vqmovnb.s16 q6, q6\n\t"                              \
                                                       "vstrb.32 q6, [r7], #4\n\t"                           \
                                                       "le lr, 3b\n\t"                                       \
                                                       "strd r10, r3, [r12]\n\t"                             \
                                                       "strd r8, r5, [r12, #8]"                              \
                         : "+r"(out), "+r"(left), "+r"(count), "+r"(last), "+r"(rest), "+r"(skipped)         \
                         : "r"(c)                                                                            \
                         : "r1", "r3", "r5", "r6", "r8", "r10", "r11", "q0", "q1", "q2", "q3", "q4", "q5",   \
                           "q6", "q7", "cc", "memory");                                                      \
    }
CHANNELS(positive_channels, TIES_UP)
CHANNELS(signed_channels, TIES_DOWN)

static void run_groups(const arenite_conv_2d_s8_t *p, channels_t *channels, const int8_t *x, int32_t groups,
                       int8_t *out) {
    if (p->per_channel == ARENITE_MVE_POSITIVE) {
        positive_channels(channels, x, p->in_c, groups, out);
    } else {
        signed_channels(channels, x, p->in_c, groups, out);
    }
}

static void run_pixel(const arenite_conv_2d_s8_t *p, const int8_t *x, int8_t *out) {
    channels_t channels = {p->weights, p->bias, p->multiplier, p->shift, p->out_zero_point};
    const int32_t groups = p->out_c / 4, rest = p->out_c % 4;
    if (groups > 0) {
        run_groups(p, &channels, x, groups, out);
    }
    if (rest > 0) {
        int8_t last[4];
        run_groups(p, &channels, x, 1, last);
        arenite_mve_copy(out + (ptrdiff_t)4 * groups, last, rest);
    }
}

/* The same where the row lies outside the input. */
static __attribute__((noinline)) void run_outside(const arenite_conv_2d_s8_t *p, int8_t *out) {
    int8_t pixel[ARENITE_MVE_PIXEL_BYTES];
    arenite_mve_fill(pixel, p->in_zero_point, p->in_c);
    run_pixel(p, pixel, out);
}

void arenite_conv_2d_s8_mve_pixel(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    (void)step;
    (void)scratch;
    if (rows[0] == NULL) {
        run_outside(p, out);
    } else {
        run_pixel(p, rows[0], out);
    }
}

#endif
