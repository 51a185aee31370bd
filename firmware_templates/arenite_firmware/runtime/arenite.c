/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite.h"

#include <stddef.h>

#ifdef ARENITE_GUARDS
#include "arenite_guards.h"
#define START_ITEM(feed) arenite_guards_start(feed)
#define BEFORE_STEP(feed) arenite_guards_open(feed)
#define AFTER_STEP(feed) arenite_guards_check(feed)
#else
#define START_ITEM(feed) ((void)0)
#define BEFORE_STEP(feed) ((void)0)
#define AFTER_STEP(feed) ((void)0)
#endif

void *arenite_input(const arenite_model_t *model, uint8_t *const *memory, unsigned i) {
    return model->row_fed ? NULL : arenite_at(memory, model->inputs[i].place);
}

const void *arenite_output(const arenite_model_t *model, uint8_t *const *memory, unsigned i) {
    return arenite_at(memory, model->outputs[i].place);
}

/* Where a scattered row lies, in units, as a folded row table says. */
static uint32_t folded_units(const uint16_t *folded, uint32_t row) {
    const uint32_t first = folded[0], period = folded[1], turns = folded[2], drift = folded[3];
    uint32_t turn = row < first ? 0u : (row - first) / period;
    turn = turn < turns ? turn : turns;
    return (uint16_t)(folded[4u + row - turn * period] + turn * drift);
}

static int is_folded(const arenite_value_t *value) { return (value->place & ARENITE_FOLDED_ROWS) != 0; }

/* The part of the row table that belongs to a value whose rows are scattered. */
static const uint16_t *row_table(const arenite_model_t *model, const arenite_value_t *value) {
    return &model->row_table[value->place & (ARENITE_FOLDED_ROWS - 1u)];
}

/* From where row_offset counts: a ring's first slot, or of scattered rows the region's start. */
static uint8_t *rows_start(uint8_t *const *memory, const arenite_value_t *value) {
    uint8_t *region = memory[value->place >> ARENITE_REGION_SHIFT];
    return value->ring_rows == 0 ? region : region + (value->place & ARENITE_OFFSET_MASK);
}

static uint32_t row_offset(const arenite_model_t *model, const arenite_value_t *value, uint32_t row) {
    if (value->ring_rows == 0) {
        const uint16_t *const table = row_table(model, value);
        return (is_folded(value) ? folded_units(table, row) : table[row]) * model->row_unit;
    }
    return (row % value->ring_rows) * value->row_bytes;
}

static int32_t first_row(const arenite_window_t *window, int32_t step) {
    if (window->starts != NULL) {
        return window->starts[step];
    }
    const int32_t row = step * (int32_t)window->stride - window->pad_top;
    const int32_t divisor = window->divisor;
    if (divisor <= 1) {
        return row;
    }
    return row >= 0 ? row / divisor : -((divisor - 1 - row) / divisor);
}

/* Functions that have few registers to spare, and are called for every row: in line they spill those of their callers. */
#if defined(__GNUC__)
#define APART __attribute__((noinline))
#else
#define APART
#endif

/* Write the pointers of one read's window; returns the place behind them. */
static APART const int8_t **gather(const arenite_feed_t *feed, const arenite_read_t *read, int32_t step,
                                   const int8_t **rows) {
    const arenite_model_t *const model = feed->model;
    const arenite_value_t *value = read->value;
    const arenite_window_t *window = read->window;
    const uint32_t count = value->rows, dilation = window->dilation, ring = value->ring_rows;
    const int8_t *const start = ((value->place >> ARENITE_REGION_SHIFT == ARENITE_CONSTANT_REGION)
                                     ? model->constants[value->place & ARENITE_OFFSET_MASK]
                                     : (const int8_t *)rows_start(feed->memory, value)) +
                                feed->item * value->item_bytes;
    const int32_t first = first_row(window, step);
    uint32_t row = (uint32_t)first; /* beyond `count` if it lies above the value, too */
    if (ring == 0) {
        const uint16_t *const table = row_table(model, value);
        const uint32_t unit = model->row_unit, behind = row + window->window * dilation;
        const int folded = is_folded(value);
        if (!folded && first >= 0 && behind < count + dilation) {
            for (const uint16_t *entry = table + row; row != behind; row += dilation, entry += dilation) {
                *rows++ = start + *entry * unit;
            }
            return rows;
        }
        for (; row != behind; row += dilation) {
            const int8_t *pointer = NULL;
            if (row < count) {
                pointer = start + (folded ? folded_units(table, row) : table[row]) * unit;
            }
            *rows++ = pointer;
        }
        return rows;
    }
    int32_t slot = first % (int32_t)ring;
    slot += slot < 0 ? (int32_t)ring : 0;
    /* The next row of a window lies `hop` slots on, or as many less a ring's. */
    const int32_t hop = (int32_t)(dilation < ring ? dilation : dilation % ring), back = hop - (int32_t)ring;
    const uint32_t row_bytes = value->row_bytes;
    for (uint32_t left = window->window; left != 0; left--) {
        *rows++ = row < count ? start + (uint32_t)slot * row_bytes : NULL;
        row += dilation;
        slot += slot + back < 0 ? hop : back;
    }
    return rows;
}

/* Where a row is written. */
static uint8_t *row_at(const arenite_model_t *model, uint8_t *const *memory, const arenite_value_t *value,
                       uint32_t row, uint32_t item) {
    return rows_start(memory, value) + row_offset(model, value, row) + item * value->item_bytes;
}

static uint8_t *output_row(const arenite_model_t *model, const arenite_layer_t *layer, uint8_t *const *memory,
                           int32_t step, uint32_t item) {
    return row_at(model, memory, layer->out, layer->accumulates ? 0u : (uint32_t)step, item);
}

#ifdef ARENITE_ON_ROW
static void show_row(const arenite_feed_t *feed, const arenite_layer_t *layer, uint16_t step,
                     const uint8_t *row) {
    const int is_whole = !layer->accumulates || step + 1u == layer->reads[0].value->rows;
    arenite_on_row(feed->model, feed->layer, step, is_whole ? row : NULL);
}
#define SHOW_ROW(feed, layer, step, row) show_row(feed, layer, step, row)
#else
#define SHOW_ROW(feed, layer, step, row) ((void)(row))
#endif

/* Returns where the row was written. */
static APART uint8_t *run_step(const arenite_feed_t *feed, const arenite_layer_t *layer, int32_t step) {
    uint8_t *const *const memory = feed->memory;
    const int8_t *rows[ARENITE_MAX_POINTERS];
    const int8_t **next = rows;
    const arenite_read_t *read = layer->reads;
    for (uint32_t left = layer->read_count; left != 0; left--) {
        next = gather(feed, read++, step, next);
    }
    uint8_t *out = output_row(feed->model, layer, memory, step, feed->item);
    int32_t *scratch = NULL;
    if (layer->scratch_place != ARENITE_NO_PLACE) {
        scratch = (int32_t *)(void *)arenite_at(memory, layer->scratch_place);
    }
    layer->kernel(layer->params, rows, (int8_t *)out, step, scratch);
    return out;
}

static uint16_t *counters_of(const arenite_feed_t *feed) {
    return (uint16_t *)(void *)arenite_at(feed->memory, feed->model->counters_place);
}

/* Take the next entry of the row schedule. */
static void next_entry(arenite_feed_t *feed) {
    const uint8_t *const steps = feed->model->steps;
    const uint8_t *entry = steps + feed->step;
    if (*entry == ARENITE_STEP_AGAIN) {
        feed->again = (uint16_t)((feed->again == 0 ? entry[2] + 1u : feed->again) - 1u);
        entry = feed->again != 0 ? entry - entry[1] : entry + 3;
    }
    const uint32_t count = *entry & ARENITE_STEP_COUNT;
    if (count != 0) {
        feed->layer = (uint16_t)(feed->layer + (*entry >> ARENITE_STEP_SHIFT) - ARENITE_STEP_BIAS);
        feed->left = (uint16_t)count;
        entry += 1;
    } else {
        feed->layer = (uint16_t)(entry[1] | entry[2] << 8);
        feed->left = (uint16_t)(entry[3] | entry[4] << 8);
        entry += 5;
    }
    feed->step = (uint32_t)(entry - steps);
}

static void start_item(arenite_feed_t *feed) {
    uint16_t *counters = counters_of(feed);
    for (uint16_t i = 0; i < feed->model->layer_count; i++) {
        counters[i] = 0;
    }
    feed->step = 0;
    feed->layer = 0;
    feed->again = 0;
    next_entry(feed);
    START_ITEM(feed);
}

void arenite_reset(const arenite_model_t *model, uint8_t *const *memory) {
    for (uint16_t i = 0; i < model->state_count; i++) {
        const arenite_state_t *state = &model->states[i];
        int8_t *to = (int8_t *)arenite_at(memory, state->place);
        for (uint32_t k = 0; k < state->bytes; k++) {
            to[k] = (state->initial != NULL) ? state->initial[k] : state->fill;
        }
    }
}

/* What this run computed for the next takes its place. */
static void keep_states(const arenite_model_t *model, uint8_t *const *memory) {
    for (uint16_t i = 0; i < model->state_count; i++) {
        const arenite_state_t *state = &model->states[i];
        if (state->next_place != ARENITE_NO_PLACE) {
            uint8_t *to = arenite_at(memory, state->place);
            const uint8_t *from = arenite_at(memory, state->next_place);
            for (uint32_t k = 0; k < state->bytes; k++) {
                to[k] = from[k];
            }
        }
    }
}

/* The layer of the next step, or NULL at the end. */
static const arenite_layer_t *next_layer(arenite_feed_t *feed) {
    const arenite_model_t *model = feed->model;
    if (feed->item < model->batch && feed->left == 0) {
        if (feed->step < model->step_bytes) {
            next_entry(feed);
        } else if (++feed->item < model->batch) {
            start_item(feed);
        }
    }
    return feed->item < model->batch ? &model->layers[feed->layer] : NULL;
}

/* Run until a row of the input is wanted, or to the end. */
static void advance(arenite_feed_t *feed) {
    uint16_t *counters = counters_of(feed);
    const arenite_layer_t *layer;
    while ((layer = next_layer(feed)) != NULL && layer->kernel != NULL) {
        const uint16_t index = feed->layer, step = counters[index];
        BEFORE_STEP(feed);
#ifdef ARENITE_ON_STEP
        arenite_on_step(feed->model, index, step);
#endif
        const uint8_t *const row = run_step(feed, layer, step);
        counters[index] = (uint16_t)(step + 1u);
        SHOW_ROW(feed, layer, step, row);
        AFTER_STEP(feed);
        feed->left--;
    }
    if (layer != NULL) {
        BEFORE_STEP(feed);
    } else {
        keep_states(feed->model, feed->memory);
    }
}

void arenite_begin(arenite_feed_t *feed, const arenite_model_t *model, uint8_t *const *memory) {
    feed->model = model;
    feed->memory = memory;
    feed->item = 0;
    start_item(feed);
    advance(feed);
}

void arenite_run(const arenite_model_t *model, uint8_t *const *memory) {
    arenite_feed_t whole;
    arenite_begin(&whole, model, memory);
}

static const arenite_layer_t *waiting_layer(const arenite_feed_t *feed) {
    return feed->item < feed->model->batch ? &feed->model->layers[feed->layer] : NULL;
}

void *arenite_row(const arenite_feed_t *feed) {
    const arenite_layer_t *layer = waiting_layer(feed);
    if (layer == NULL) {
        return NULL;
    }
    const uint32_t row = counters_of(feed)[feed->layer];
    return row_at(feed->model, feed->memory, layer->out, row, 0);
}

void arenite_feed(arenite_feed_t *feed) {
    const arenite_layer_t *layer = waiting_layer(feed);
    if (layer != NULL) {
        uint16_t *const step = &counters_of(feed)[feed->layer];
        SHOW_ROW(feed, layer, *step, arenite_row(feed));
        *step += 1;
        AFTER_STEP(feed);
        feed->left--;
        advance(feed);
    }
}

uint32_t arenite_row_bytes(const arenite_feed_t *feed) {
    const arenite_layer_t *layer = waiting_layer(feed);
    return layer == NULL ? 0 : layer->out->row_bytes;
}

arenite_status_t arenite_feed_row(arenite_feed_t *feed, const void *row, uint32_t bytes) {
    uint8_t *to = arenite_row(feed);
    const uint8_t *from = row;
    if (to == NULL) {
        return ARENITE_TOO_MANY_ROWS;
    }
    if (bytes != arenite_row_bytes(feed)) {
        return ARENITE_ROW_SIZE;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = from[i];
    }
    arenite_feed(feed);
    return ARENITE_OK;
}

arenite_status_t arenite_end(const arenite_feed_t *feed) {
    return waiting_layer(feed) == NULL ? ARENITE_OK : ARENITE_TOO_FEW_ROWS;
}
