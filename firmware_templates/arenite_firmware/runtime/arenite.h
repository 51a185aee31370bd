/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: walks a model's row schedule. It interprets no model file and allocates nothing; everything it reads is
 * a constant that the code generator wrote, everything it writes lies in the memory that the caller gives. */
#ifndef ARENITE_H
#define ARENITE_H

#include <stdint.h>

#include "arenite_limits.h" /* generated: ARENITE_MAX_POINTERS, ARENITE_GUARDS */

#ifdef __cplusplus
extern "C" {
#endif

/* Increases whenever generated data and this header stop fitting together. */
#define ARENITE_RUNTIME_VERSION 5

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Arenite's generated weights are little-endian; this target is not."
#endif

/* A place in the model's memory: which region of it in the top bits, bytes from that region's start below them. */
typedef uint32_t arenite_place_t;
#define ARENITE_REGION_SHIFT 28
#define ARENITE_OFFSET_MASK ((1u << ARENITE_REGION_SHIFT) - 1u)

static inline uint8_t *arenite_at(uint8_t *const *memory, arenite_place_t place) {
    return memory[place >> ARENITE_REGION_SHIFT] + (place & ARENITE_OFFSET_MASK);
}

/* A kernel makes one row.
 *   params   the layer's constants, of the kernel's own struct type
 *   rows     the rows of every value read, one window after the other; NULL for a row outside the value. Each is aligned
 *            to its elements, as is out. A state that a layer keeps for itself is there to be written too
 *   out      the output row; it may be the current row of a value read where the plan says so
 *   step     number of this call in the inference of one item, from 0
 *   scratch  the layer's scratch, 4-byte aligned; a layer that accumulates keeps it from its first to its last step,
 *            any other has it for this step; NULL if it has none */
typedef void (*arenite_kernel_t)(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch);

/* A value as its producer or one of its readers divides it into rows. */
typedef struct {
    arenite_place_t
        place; /* the ring's first slot; of scattered rows, region and first entry in the row table; in the
                              region ARENITE_CONSTANT_REGION, an entry of the model's constants */
    uint32_t row_bytes;
    uint32_t item_bytes; /* distance to the next item of a batch; 0 if items share the memory */
    uint16_t rows;
    uint16_t
        ring_rows; /* rows that exist at once, row r in slot r modulo ring_rows; 0: the rows are scattered */
} arenite_value_t;

#define ARENITE_CONSTANT_REGION 15u

/* Scattered rows have an offset each in the row table, in units. With this bit in the offset of their place the table is
 * folded: `first`, `period`, `turns`, `drift`, then the rows. From row `first` on, `turns` times, the next `period` rows
 * lie where those before them did, `drift` units further, and so have no entry; all rows behind them have lost the sum
 * of those drifts, modulo 2^16. */
#define ARENITE_FOLDED_ROWS (1u << 27)

/* Which rows of a value a layer reads: step y takes first + k * dilation, k = 0 .. window - 1, where first is
 * floor((y * stride - pad_top) / divisor), or starts[y]. */
typedef struct {
    const uint16_t *starts; /* one entry a step, or NULL */
    uint16_t window;
    uint16_t stride;
    uint16_t dilation;
    int16_t pad_top;
    uint16_t divisor; /* 0 and 1 divide nothing */
} arenite_window_t;

typedef struct {
    const arenite_value_t *value;
    const arenite_window_t *window;
} arenite_read_t;

typedef struct {
    arenite_kernel_t kernel; /* NULL: each step takes a row of the input from the caller */
    const void *params;
    const arenite_read_t *reads;
    const arenite_value_t *out;
    arenite_place_t scratch_place; /* ARENITE_NO_PLACE if it has none */
    uint8_t read_count;
    uint8_t accumulates; /* every step consumes a row, the last one writes row 0 */
} arenite_layer_t;

#define ARENITE_NO_PLACE UINT32_MAX

/* An entry of the row schedule, `count` consecutive steps of one layer: a byte with the count, 1 .. 15, in its low bits and
 * 8 + the distance from the layer of the entry before, -8 .. 7, above (the first entry's from layer 0); or a byte of 0 and
 * then the layer and the count as uint16_t, low byte first. ARENITE_STEP_AGAIN, bytes, times (1 .. 255): the entries in
 * these bytes before it come `times` more; there is none of its kind among them, and an entry follows. */
#define ARENITE_STEP_COUNT 15u
#define ARENITE_STEP_SHIFT 4
#define ARENITE_STEP_BIAS 8
#define ARENITE_STEP_AGAIN 0x10u

/* An input or output of the model: `bytes` at `place`, real value = scale * (q - zero_point); types that are not quantised
 * have a scale of 1. */
typedef struct {
    const char *name;
    arenite_place_t place;
    uint32_t bytes;
    uint8_t dtype; /* 0 int8, 1 uint8, 2 int16, 3 int32, 4 float, 5 bool as a byte of 0 or 1 */
    int16_t zero_point;
    float scale;
} arenite_io_t;

/* What the model remembers from one run to the next. */
typedef struct {
    const int8_t *initial; /* what a reset puts there; NULL: every byte is `fill` */
    arenite_place_t place;
    arenite_place_t next_place; /* what takes its place when a run ends; ARENITE_NO_PLACE: layers update it */
    uint32_t bytes;
    int8_t fill;
} arenite_state_t;

#ifdef ARENITE_GUARDS
/* Four bytes behind a block of memory, written before step `first` and watched until after step `last`. */
typedef struct {
    arenite_place_t place;
    uint32_t first;
    uint32_t last;
} arenite_guard_t;
#endif

typedef struct arenite_model {
    uint32_t arena_bytes;         /* of all regions */
    const uint32_t *region_bytes; /* of each region */
    const uint8_t *sha256;        /* 32 bytes: the digest of the model file */
    const arenite_io_t *inputs;
    const arenite_io_t *outputs;
    const arenite_layer_t *layers;
    const uint8_t *steps;           /* the row schedule, see ARENITE_STEP_COUNT */
    const uint16_t *row_table;      /* offsets of scattered rows, in units of row_unit bytes */
    const int8_t *const *constants; /* values in flash */
    const arenite_state_t *states;
    uint32_t row_unit;
    uint32_t step_bytes;
    arenite_place_t counters_place; /* one uint16_t a layer: its next step */
    uint16_t layer_count;
    uint16_t batch; /* the schedule runs once for each item */
    uint16_t state_count;
    uint8_t region_count;
    uint8_t input_count;
    uint8_t output_count;
    uint8_t row_fed; /* the input is never whole in memory: feed its rows instead of calling arenite_run */
#ifdef ARENITE_GUARDS
    const arenite_guard_t *guards;
    uint32_t guard_count;
#endif
} arenite_model_t;

/* An inference under way. */
typedef struct {
    const arenite_model_t *model;
    uint8_t *const *memory;
    uint32_t step;  /* byte of the row schedule: the next entry */
    uint16_t layer; /* of the entry before it */
    uint16_t left;  /* steps of that entry still to do */
    uint16_t item;  /* of the batch */
    uint16_t
        again; /* times that the stretch of the schedule under way comes, this one included; 0: just once */
#ifdef ARENITE_GUARDS
    uint32_t done; /* steps of this item */
#endif
} arenite_feed_t;

/* `memory` holds the start of each region of the model, `region_bytes` long and 4-byte aligned (16 where a board's kernels
 * say so); a model that was planned for one memory has one region, its arena.
 *
 * Where the caller writes input i, or reads output i.
 * A run may overwrite inputs, except those in the caller's memory and those that the plan keeps: write them before every
 * run. Outputs stay until the next input is written.
 * A row-fed model has no place for a whole input: arenite_input then gives NULL. */
void *arenite_input(const arenite_model_t *model, uint8_t *const *memory, unsigned i);
const void *arenite_output(const arenite_model_t *model, uint8_t *const *memory, unsigned i);

/* Forgets: every state is as before the first run. Needed once before that, by models that have states; does nothing for
 * others. States lie in a region of their own, so that models can take turns in one arena. */
void arenite_reset(const arenite_model_t *model, uint8_t *const *memory);

/* One inference over the whole batch of a model that is not row-fed. Cannot fail. */
void arenite_run(const arenite_model_t *model, uint8_t *const *memory);

/* One inference of a row-fed model: begin; then for each row of each batch item, top first, write it where arenite_row
 * says and call arenite_feed, which computes all that this row allows. arenite_row gives NULL once every row is in: then
 * the outputs are ready. Row i of an item has inputs[0].bytes / (batch * rows) bytes, as arenite_row_bytes says. */
void arenite_begin(arenite_feed_t *feed, const arenite_model_t *model, uint8_t *const *memory);
void *arenite_row(const arenite_feed_t *feed);
void arenite_feed(arenite_feed_t *feed);
uint32_t arenite_row_bytes(const arenite_feed_t *feed);

typedef enum {
    ARENITE_OK = 0,
    ARENITE_ROW_SIZE,      /* the row has not arenite_row_bytes bytes; nothing was fed */
    ARENITE_TOO_MANY_ROWS, /* every row is in already; nothing was fed */
    ARENITE_TOO_FEW_ROWS   /* the inference is not finished; feed the rest */
} arenite_status_t;

/* The same from a buffer of the caller's, checked: copies one row in and feeds it; says whether all rows came. */
arenite_status_t arenite_feed_row(arenite_feed_t *feed, const void *row, uint32_t bytes);
arenite_status_t arenite_end(const arenite_feed_t *feed);

/* Called before every step if the build defines ARENITE_ON_STEP; the application provides it (watchdog, profile). */
void arenite_on_step(const arenite_model_t *model, uint16_t layer, uint16_t step);

/* Called after every step if the build defines ARENITE_ON_ROW, of a row that the caller fed too: the application sees what
 * the step wrote, layers[layer].out->row_bytes at `row`; NULL while a layer that accumulates is not at its end. */
void arenite_on_row(const arenite_model_t *model, uint16_t layer, uint16_t step, const uint8_t *row);

#ifdef __cplusplus
}
#endif

#endif
