/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_dsp_rows.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

/* Channels at once, and their bytes of weights for four bytes of input. */
#define LANES 4
#define GROUP_BYTES 16

/* A copy in each caller would cost flash for little time. */
#define APART __attribute__((noinline))

/* A part of a window: bytes that lie in one piece, a multiple of four, or such bytes widened to pairs of int16. The assembly
 * below knows the offsets. */
typedef struct {
    const void *begin;
    uint32_t
        entry; /* 4: bytes of code from the first loop to the instruction that its first turn starts with */
    const void *end;
} piece_t;

/* One pixel, and what all its channels need. */
typedef struct {
    const piece_t *first;
    uint32_t zeros[4];
    const piece_t *piece;                 /* 20 */
    const piece_t *last;                  /* 24: behind the last piece */
    int8_t *out;                          /* 28 */
    const arenite_dsp_channel_t *channel; /* 32 */
    int32_t point;                        /* 36: 2 * out_zero_point + 1 */
    const int8_t *end;                    /* 40 */
} pass_t;

/* Groups in a loop. Bytes of the instructions for a group, of bytes and widened, and of those behind the first loop. */
#if defined(__OPTIMIZE_SIZE__)
#define UNROLLED 2
#else
#define UNROLLED 4
#endif
#define GROUP_CODE 64
#define WIDE_CODE 56
#define NEXT_CODE 20
#define FIRST_WIDE (UNROLLED * GROUP_CODE + NEXT_CODE)

/* Writes the channels from out to end, a multiple of LANES. Returns the weights behind. */
#if ARENITE_HAS_DSP

/* r4, r5: sums of the channels whose weights are the low bytes; r6, r7: mixed sums. */
#define PAIR(first, second, low, mixed)                                                                      \
    "smlad " mixed ", " first ", r10, " mixed "\n\t"                                                         \
    "sxtb16 " first ", " first "\n\t"                                                                        \
    "smlad " low ", " first ", r10, " low "\n\t"                                                             \
    "smlad " mixed ", " second ", r11, " mixed "\n\t"                                                        \
    "sxtb16 " second ", " second "\n\t"                                                                      \
    "smlad " low ", " second ", r11, " low "\n\t"
#define PAIRS PAIR("r0", "r1", "r4", "r6") PAIR("r2", "r3", "r5", "r7")
#define GROUP                                                                                                \
    "ldr.w r10, [r8], #4\n\t"                                                                                \
    "ldmia.w r9!, {r0, r1, r2, r3}\n\t"                                                                      \
    "sxtb16 r11, r10, ror #8\n\t"                                                                            \
    "sxtb16 r10, r10\n\t" PAIRS
#define WIDE_GROUP                                                                                           \
    "ldmia.w r8!, {r10, r11}\n\t"                                                                            \
    "ldmia.w r9!, {r0, r1, r2, r3}\n\t" PAIRS
#if UNROLLED == 2
#define GROUPS GROUP GROUP
#define WIDE_GROUPS WIDE_GROUP WIDE_GROUP
#else
#define GROUPS GROUP GROUP GROUP GROUP
#define WIDE_GROUPS WIDE_GROUP WIDE_GROUP WIDE_GROUP WIDE_GROUP
#endif
#define CHANNEL(sum, twice)                                                                                  \
    ARENITE_DSP_NEXT_CHANNEL "add " sum ", r0, " twice "\n\t" ARENITE_DSP_REQUANTISE(sum)
#define TWO_CHANNELS(low, mixed)                                                                             \
    "sub " mixed ", " mixed ", " low "\n\t" CHANNEL(low, low ", lsl #1") CHANNEL(mixed, mixed ", asr #7")

/* The jump is relative to label 2: its own address and 4. */
static APART const int8_t *channels(pass_t *pass, const int8_t *weights) {
    register const int8_t *w __asm__("r9") = weights;
    register pass_t *self __asm__("r12") = pass;
    __asm__ volatile(".p2align 2\n"
                     "0:\n\t"
                     "ldmia.w r12, {r0, r4, r5, r6, r7}\n"
                     "1:\n\t"
                     "ldmia.w r0!, {r8, r10, r14}\n\t"
                     "str.w r0, [r12, #20]\n\t"
                     "add pc, r10\n\t"
                     "nop.n\n"
                     "2:\n\t" GROUPS "cmp.n r8, r14\n\t"
                     "bne.w 2b\n\t"
                     "ldrd r0, r1, [r12, #20]\n\t"
                     "cmp.n r0, r1\n\t"
                     "bne.w 1b\n\t"
                     "b.w 4f\n"
                     "3:\n\t" WIDE_GROUPS "cmp.n r8, r14\n\t"
                     "bne.w 3b\n\t"
                     "ldrd r0, r1, [r12, #20]\n\t"
                     "cmp.n r0, r1\n\t"
                     "bne.w 1b\n"
                     "4:\n\t"
                     "ldrd r8, r10, [r12, #28]\n\t"
                     "ldrd r11, r14, [r12, #36]\n\t" TWO_CHANNELS("r4", "r6")
                         TWO_CHANNELS("r5", "r7") "strd r8, r10, [r12, #28]\n\t"
                                                  "cmp r8, r14\n\t"
                                                  "bne 0b\n\t"
                     : "+r"(w)
                     : "r"(self)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "r14", "cc",
                       "memory");
    return w;
}

#undef PAIR
#undef PAIRS
#undef GROUP
#undef GROUPS
#undef WIDE_GROUP
#undef WIDE_GROUPS
#undef CHANNEL
#undef TWO_CHANNELS

#else

static APART const int8_t *channels(pass_t *pass, const int8_t *weights) {
    for (; pass->out < pass->end; pass->out += LANES, pass->channel += LANES) {
        uint32_t low[2] = {0, 0}, mixed[2] = {0, 0};
        for (const piece_t *piece = pass->first; piece < pass->last; piece++) {
            const int is_wide = piece->entry >= FIRST_WIDE;
            const int8_t *from = (const int8_t *)piece->begin;
            for (; from < (const int8_t *)piece->end; from += is_wide ? 8 : 4) {
                const uint32_t word = arenite_dsp_load(from);
                const uint32_t x[2] = {is_wide ? word : arenite_sxtb16(word),
                                       is_wide ? arenite_dsp_load(from + 4) : arenite_sxtb16_ror8(word)};
                for (int32_t i = 0; i < LANES; i++, weights += 4) {
                    const uint32_t both = arenite_dsp_load(weights);
                    mixed[i / 2] = arenite_smlad(both, x[i % 2], mixed[i / 2]);
                    low[i / 2] = arenite_smlad(arenite_sxtb16(both), x[i % 2], low[i / 2]);
                }
            }
        }
        for (int32_t pair = 0; pair < LANES / 2; pair++) {
            arenite_dsp_pair(low[pair], mixed[pair], pass->channel + 2 * pair, pass->point,
                             pass->out + 2 * pair);
        }
    }
    return weights;
}

#endif

/* Room for the entries of a window, and at its end for what is widened. */
#define ENTRIES (ARENITE_DSP_PIECES + 2)
#define WORDS ((int32_t)(ENTRIES * sizeof(piece_t) / sizeof(uint32_t)))
typedef union {
    piece_t pieces[ENTRIES];
    uint32_t words[WORDS];
} store_t;

/* Bytes that may be widened beside a number of entries; channels that make it worth the time. */
#define WIDE_BYTES(entries) (int32_t)((uint32_t)(ENTRIES - (entries)) * sizeof(piece_t) / 8 * 4)
#define LEAST_CHANNELS 13

/* A window on its way into pieces: as much of it as there is room for is widened and becomes the first. */
typedef struct {
    piece_t *piece;
    uint32_t *wide;       /* behind what is widened */
    int32_t room;         /* bytes that may yet be widened, a multiple of four */
    const int8_t *behind; /* the words of the last piece */
} window_t;

/* The first turn through the unrolled loop leaves groups out, so that the others are whole. */
static uint32_t left_out(uint32_t groups) { return (0u - groups) & (UNROLLED - 1); }

/* Widens the first bytes, as many as there is room for; returns those behind. */
static const int8_t *widen(window_t *window, const int8_t *begin, int32_t count) {
    const int32_t widened = count < window->room ? count : window->room;
    uint32_t *wide = window->wide;
    for (const int8_t *end = begin + widened; begin < end; begin += 4) {
        const uint32_t word = arenite_dsp_load(begin);
        *wide++ = arenite_sxtb16(word);
        *wide++ = arenite_sxtb16_ror8(word);
    }
    window->room -= widened;
    window->wide = wide;
    return begin;
}

static APART void add_piece(window_t *window, const int8_t *begin, int32_t count) {
    const int8_t *end = begin + count;
    window->behind = end;
    if (window->room > 0) {
        begin = widen(window, begin, count);
    }
    if (begin < end) {
        piece_t *piece = window->piece++;
        piece->begin = begin;
        piece->entry = left_out((uint32_t)(end - begin) / 4) * GROUP_CODE;
        piece->end = end;
    }
}

/* Adds the whole words of a window, of which any pixel may lie outside. */
static void add_words(window_t *window, const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                      int32_t first, const int8_t *outside) {
    const int run = p->dilation_w == 1 && first >= 0 && first + p->kernel_w <= p->in_w;
    const int32_t in_c = p->in_c;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *row = rows[ky];
        if (run && row != NULL) {
            add_piece(window, row + (ptrdiff_t)first * in_c, (p->kernel_w * in_c) & ~3);
            continue;
        }
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int is_inside = row != NULL && x >= 0 && x < p->in_w;
            add_piece(window, is_inside ? row + (ptrdiff_t)x * in_c : outside, in_c & ~3);
        }
    }
}

/* The bytes of a window of one pixel that do not fill a word, with zeros behind. */
static void add_rest(window_t *window, int32_t rest, int8_t *tail) {
    for (int32_t i = 0; i < 4; i++) {
        tail[i] = i < rest ? window->behind[i] : (int8_t)0;
    }
    add_piece(window, tail, 4);
}

static void pixel(const arenite_conv_2d_s8_t *p, pass_t *pass, int8_t *out) {
    const int32_t whole = p->out_c & ~(LANES - 1);
    const int8_t *weights = p->weights;
    pass->channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
    if (whole > 0) {
        pass->out = out;
        pass->end = out + whole;
        weights = channels(pass, weights);
    }
    if (p->out_c > whole) {
        int8_t last[LANES];
        pass->out = last;
        pass->end = last + LANES;
        channels(pass, weights);
        for (int32_t i = whole; i < p->out_c; i++) {
            out[i] = last[i - whole];
        }
    }
}

/* Bytes of each window that are widened, where enough channels read them: all if they fit, else as many as leave entries
 * for a piece of each pixel, and one more that the end of the room divides. */
static int32_t room_of(const arenite_conv_2d_s8_t *p, int32_t pixels) {
    const int32_t taps = pixels * p->in_c, entries = taps <= WIDE_BYTES(1) ? 1 : pixels + 2;
    const int32_t room = WIDE_BYTES(entries);
    return p->out_c < LEAST_CHANNELS ? 0 : (taps < room ? (taps + 3) & ~3 : room);
}

void arenite_conv_2d_s8_dsp_rows(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t pixels = p->kernel_h * p->kernel_w, taps = pixels * p->in_c, room = room_of(p, pixels);
    const uint32_t blocks = ((uint32_t)p->out_c + LANES - 1) / LANES, groups = ((uint32_t)taps + 3) / 4;
    const int8_t *outside = p->weights + blocks * groups * GROUP_BYTES;
    store_t store;
    uint32_t *wide = store.words + WORDS - (uint32_t)room / 2;
    pass_t pass;
    int32_t tail;
    (void)step;
    (void)scratch;
    pass.first = store.pieces;
    pass.zeros[0] = pass.zeros[1] = pass.zeros[2] = pass.zeros[3] = 0;
    pass.point = 2 * p->out_zero_point + 1;
    if (room > 0) {
        store.pieces[0].begin = wide;
        store.pieces[0].entry = FIRST_WIDE + left_out((uint32_t)room / 4) * WIDE_CODE;
        store.pieces[0].end = store.words + WORDS;
    }
    for (int32_t x = 0; x < p->out_w; x++) {
        window_t window = {store.pieces + (room > 0), wide, room, outside};
        add_words(&window, p, rows, x * p->stride_w - p->pad_left, outside);
        if (taps & 3) {
            add_rest(&window, taps & 3, (int8_t *)&tail);
        }
        pass.last = window.piece;
        pixel(p, &pass, out + (ptrdiff_t)x * p->out_c);
    }
    arenite_dsp_clamp(out, p->out_w * p->out_c, p->act_min, p->act_max);
}
