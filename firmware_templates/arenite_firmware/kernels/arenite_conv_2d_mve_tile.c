/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_mve_tile.h"

#if defined(__ARM_FEATURE_MVE)

/* VMLADAVA adds 16 products to a core register of even number. There are seven, so six sums are made at once: of three
 * pixels and two channels, with five loads. A turn of 16 bytes is predicated, so that it may be the last part of a run; turns
 * of 32 and 48 bytes save instructions of the loop. */
#define DOT_3X2                                                                                              \
    "vldrb.8 q0, [r7], #16\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladava.s8 r0, q0, q1\n\t"                                                                             \
    "vldrb.8 q2, [r3], #16\n\t"                                                                              \
    "vmladava.s8 r4, q0, q2\n\t"                                                                             \
    "vldrb.8 q3, [r5], #16\n\t"                                                                              \
    "vmladava.s8 r8, q0, q3\n\t"                                                                             \
    "vldrb.8 q0, [r9], #16\n\t"                                                                              \
    "vmladava.s8 r2, q0, q1\n\t"                                                                             \
    "vmladava.s8 r6, q0, q2\n\t"                                                                             \
    "vmladava.s8 r10, q0, q3\n\t"
#define DOT_2X2                                                                                              \
    "vldrb.8 q0, [r7], #16\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladava.s8 r0, q0, q1\n\t"                                                                             \
    "vldrb.8 q2, [r3], #16\n\t"                                                                              \
    "vmladava.s8 r4, q0, q2\n\t"                                                                             \
    "vldrb.8 q0, [r9], #16\n\t"                                                                              \
    "vmladava.s8 r2, q0, q1\n\t"                                                                             \
    "vmladava.s8 r6, q0, q2\n\t"
#define DOT_1X4                                                                                              \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vldrb.8 q1, [r3], #16\n\t"                                                                              \
    "vmladava.s8 r0, q0, q1\n\t"                                                                             \
    "vldrb.8 q2, [r5], #16\n\t"                                                                              \
    "vmladava.s8 r2, q0, q2\n\t"                                                                             \
    "vldrb.8 q3, [r7], #16\n\t"                                                                              \
    "vmladava.s8 r4, q0, q3\n\t"                                                                             \
    "vldrb.8 q1, [r9], #16\n\t"                                                                              \
    "vmladava.s8 r6, q0, q1\n\t"

#define BY_16(dot) "dlstp.8 lr, lr\n2:\n\t" dot "letp lr, 2b\n\t"
#define BY_32(dot) "dls lr, lr\n2:\n\t" dot dot "le lr, 2b\n\t"
#define BY_48(dot) "dls lr, lr\n2:\n\t" dot dot dot "le lr, 2b\n\t"

/* Pointers to pixels into r1, r3, r5 and to two channels' weights into r7 and r9; how often into lr. */
#define PIXELS_AND_PAIR                                                                                      \
    "ldm r12, {r1, r3, r5, r7}\n\t"                                                                          \
    "ldrd lr, r0, [r12, #16]\n\t"                                                                            \
    "add r9, r7, r0\n\t"                                                                                     \
    "add r0, r9, r0\n\t"                                                                                     \
    "str r0, [r12, #12]\n\t"
#define PIXEL_AND_FOUR                                                                                       \
    "ldr r1, [r12]\n\t"                                                                                      \
    "ldr r3, [r12, #12]\n\t"                                                                                 \
    "ldrd lr, r0, [r12, #16]\n\t"                                                                            \
    "add r5, r3, r0\n\t"                                                                                     \
    "add r7, r5, r0\n\t"                                                                                     \
    "add r9, r7, r0\n\t"                                                                                     \
    "add r0, r9, r0\n\t"                                                                                     \
    "str r0, [r12, #12]\n\t"

/* Until all channels are done. */
#define CHANNELS(pointers, load, loop, save)                                                                 \
    __asm__ volatile("1:\n\t" pointers load loop save "ldr r0, [r12, #24]\n\t"                               \
                     "cmp r11, r0\n\t"                                                                       \
                     "bne 1b"                                                                                \
                     : "+r"(s)                                                                               \
                     : "r"(p)                                                                                \
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "lr", "q0", "q1",  \
                       "q2", "q3", "cc", "memory")

#define LOAD_3 "ldrd r0, r2, [r11]\n\tldrd r4, r6, [r11, #64]\n\tldrd r8, r10, [r11, #128]\n\t"
#define SAVE_3 "strd r4, r6, [r11, #64]\n\tstrd r8, r10, [r11, #128]\n\tstrd r0, r2, [r11], #8\n\t"
#define LOAD_2 "ldrd r0, r2, [r11]\n\tldrd r4, r6, [r11, #64]\n\t"
#define SAVE_2 "strd r4, r6, [r11, #64]\n\tstrd r0, r2, [r11], #8\n\t"
#define LOAD_1 "ldrd r0, r2, [r11]\n\tldrd r4, r6, [r11, #8]\n\t"
#define SAVE_1 "strd r4, r6, [r11, #8]\n\tstrd r0, r2, [r11], #16\n\t"

#define MULTIPLY(name, pointers, load, dot, save)                                                            \
    void name(arenite_mve_product_t *product, int32_t *sums, arenite_mve_turn_t turn) {                      \
        register arenite_mve_product_t *p __asm__("r12") = product;                                          \
        register int32_t *s __asm__("r11") = sums;                                                           \
        if (turn == ARENITE_MVE_BY_48) {                                                                     \
            CHANNELS(pointers, load, BY_48(dot), save);                                                      \
        } else if (turn == ARENITE_MVE_BY_32) {                                                              \
            CHANNELS(pointers, load, BY_32(dot), save);                                                      \
        } else {                                                                                             \
            CHANNELS(pointers, load, BY_16(dot), save);                                                      \
        }                                                                                                    \
    }
MULTIPLY(arenite_mve_multiply_3, PIXELS_AND_PAIR, LOAD_3, DOT_3X2, SAVE_3)
MULTIPLY(arenite_mve_multiply_2, PIXELS_AND_PAIR, LOAD_2, DOT_2X2, SAVE_2)
MULTIPLY(arenite_mve_multiply_1, PIXEL_AND_FOUR, LOAD_1, DOT_1X4, SAVE_1)

#define SCALE_POSITIVE(q, multiplier, shift)                                                                 \
    "vldrw.u32 q4, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q4\n\t"                                                                      \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vrshl.s32 " q ", " q ", q4\n\t"
#define SCALE_SIGNED(q, multiplier, shift)                                                                   \
    "vldrw.u32 q4, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q4\n\t"                                                                      \
    "vshr.s32 q4, " q ", #31\n\t"                                                                            \
    "vadd.i32 " q ", " q ", q4\n\t"                                                                          \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vrshl.s32 " q ", " q ", q4\n\t"
#define SCALE_ANY(q, multiplier, shift)                                                                      \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vmov.i32 q7, #0\n\t"                                                                                    \
    "vmax.s32 q7, q7, q4\n\t"                                                                                \
    "vshl.s32 " q ", " q ", q7\n\t"                                                                          \
    "vldrw.u32 q7, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q7\n\t"                                                                      \
    "vmov.i32 q7, #0\n\t"                                                                                    \
    "vmin.s32 q4, q4, q7\n\t"                                                                                \
    "vand q7, " q ", q4\n\t"                                                                                 \
    "vshr.s32 q7, q7, #31\n\t"                                                                               \
    "vadd.i32 " q ", " q ", q7\n\t"                                                                          \
    "vrshl.s32 " q ", " q ", q4\n\t"                                                                         \
    "vadd.i32 " q ", " q ", %[wide_zero]\n\t"

/* A whole block of some pixels as bytes in the order of channels. The zero point is added to 32 bits, where a sum may reach
 * their end, or else to 16. */
#define STORE(name, SCALE, wide, narrow)                                                                     \
    void name(const arenite_mve_output_t *o, const int32_t *sums, int32_t at, int32_t pixels, int8_t *out) { \
        register int32_t left __asm__("lr") = pixels;                                                        \
        __asm__ volatile(                                                                                    \
            "vldrb.8 q5, [%[limits]]\n\t"                                                                    \
            "vldrb.8 q6, [%[limits], #16]\n\t"                                                               \
            "dls lr, lr\n"                                                                                   \
            "1:\n\t"                                                                                         \
            "vldrw.u32 q0, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q1, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q2, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q3, [%[sums]], #16\n\t" SCALE("q0", "0", "0") SCALE("q1", "16", "4")                  \
                SCALE("q2", "32", "8") SCALE("q3", "48", "12") NARROW                                        \
            : [sums] "+r"(sums), [out] "+r"(out), "+r"(left)                                                 \
            : [multipliers] "r"(o->multiplier + at), [shifts] "l"(o->shift + at), [wide_zero] "r"(wide),     \
              [narrow_zero] "r"(narrow), [out_c] "r"(o->out_c), [limits] "r"(o->limits)                      \
            : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");                                     \
    }
#define NARROW                                                                                               \
    "vqmovnb.s32 q0, q0\n\t"                                                                                 \
    "vqmovnt.s32 q0, q2\n\t"                                                                                 \
    "vqmovnb.s32 q1, q1\n\t"                                                                                 \
    "vqmovnt.s32 q1, q3\n\t"                                                                                 \
    "vqadd.s16 q0, q0, %[narrow_zero]\n\t"                                                                   \
    "vqadd.s16 q1, q1, %[narrow_zero]\n\t"                                                                   \
    "vqmovnb.s16 q0, q0\n\t"                                                                                 \
    "vqmovnt.s16 q0, q1\n\t"                                                                                 \
    "vmax.s8 q0, q0, q5\n\t"                                                                                 \
    "vmin.s8 q0, q0, q6\n\t"                                                                                 \
    "vstrb.8 q0, [%[out]]\n\t"                                                                               \
    "add %[out], %[out], %[out_c]\n\t"                                                                       \
    "le lr, 1b"
STORE(arenite_mve_store_positive, SCALE_POSITIVE, 0, o->zero_point)
STORE(arenite_mve_store_signed, SCALE_SIGNED, 0, o->zero_point)
STORE(arenite_mve_store_any, SCALE_ANY, o->zero_point, 0)

/* The first channels of a block of one pixel, in the order of channels and in any mode, as arenite_to_byte does it. */
void arenite_mve_store_part(const arenite_mve_output_t *o, const int32_t *sums, int32_t at, int32_t count,
                            int8_t *out) {
    const int32_t *multipliers = o->multiplier + at;
    const int8_t *shifts = o->shift + at;
    register int32_t left __asm__("lr") = count;
    __asm__ volatile(
        "vdup.32 q3, %[low]\n\t"
        "vdup.32 q4, %[high]\n\t"
        "vmov.i32 q5, #0\n\t"
        "dlstp.32 lr, lr\n"
        "1:\n\t"
        "vldrb.s32 q2, [%[shifts]], #4\n\t"
        "vldrw.u32 q0, [%[sums]], #16\n\t"
        "vmax.s32 q1, q2, q5\n\t"
        "vshl.s32 q0, q0, q1\n\t"
        "vldrw.u32 q1, [%[multipliers]], #16\n\t"
        "vqrdmulh.s32 q0, q0, q1\n\t"
        "vmin.s32 q2, q2, q5\n\t"
        "vand q1, q0, q2\n\t"
        "vshr.s32 q1, q1, #31\n\t"
        "vadd.i32 q0, q0, q1\n\t"
        "vrshl.s32 q0, q0, q2\n\t"
        "vadd.i32 q0, q0, %[zero]\n\t"
        "vmax.s32 q0, q0, q3\n\t"
        "vmin.s32 q0, q0, q4\n\t"
        "vstrb.32 q0, [%[out]], #4\n\t"
        "letp lr, 1b"
        : [shifts] "+l"(shifts), [out] "+l"(out), [sums] "+r"(sums), [multipliers] "+r"(multipliers),
          "+r"(left)
        : [zero] "r"(o->zero_point), [low] "r"((int32_t)o->act_min), [high] "r"((int32_t)o->act_max)
        : "q0", "q1", "q2", "q3", "q4", "q5", "memory");
}

#endif
