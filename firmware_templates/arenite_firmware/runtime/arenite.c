/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite.h"

#include <stddef.h>

#include "arenite_limits.h" /* generated: ARENITE_MAX_POINTERS */

void *arenite_input(const arenite_model_t *model, uint8_t *arena, unsigned i) {
    return arena + model->inputs[i].offset;
}

const void *arenite_output(const arenite_model_t *model, const uint8_t *arena, unsigned i) {
    return arena + model->outputs[i].offset;
}

/* Where a row lies, from the start of the arena or of the constant. */
static uint32_t place(const arenite_model_t *model, uint32_t offset, uint32_t ring_rows, uint32_t row_bytes,
                      uint32_t row) {
    if (ring_rows == 0) {
        return model->row_table[offset + row] * model->row_unit;
    }
    return offset + (row % ring_rows) * row_bytes;
}

/* Write the pointers of one read's window; returns the place behind them. */
static const int8_t **gather(const arenite_model_t *model, const arenite_read_t *read, const uint8_t *arena,
                             int32_t step, uint32_t item, const int8_t **rows) {
    const int8_t *base = (read->constant != NULL) ? read->constant : (const int8_t *)arena;
    base += item * read->item_bytes;
    int32_t row = step * (int32_t)read->stride - read->pad_top;
    for (uint16_t k = 0; k < read->window; k++) {
        const int8_t *pointer = NULL;
        if (row >= 0 && row < (int32_t)read->rows) {
            pointer = base + place(model, read->offset, read->ring_rows, read->row_bytes, (uint32_t)row);
        }
        *rows++ = pointer;
        row += read->dilation;
    }
    return rows;
}

static void run_step(const arenite_model_t *model, const arenite_layer_t *layer, uint8_t *arena, int32_t step,
                     uint32_t item) {
    const int8_t *rows[ARENITE_MAX_POINTERS];
    const int8_t **next = rows;
    for (uint8_t i = 0; i < layer->read_count; i++) {
        next = gather(model, &layer->reads[i], arena, step, item, next);
    }
    uint32_t row = layer->accumulates ? 0u : (uint32_t)step;
    uint8_t *out = arena + place(model, layer->out_offset, layer->out_ring_rows, layer->out_row_bytes, row);
    out += item * layer->out_item_bytes;
    int32_t *scratch = NULL;
    if (layer->scratch_offset != ARENITE_NO_SCRATCH) {
        scratch = (int32_t *)(void *)(arena + layer->scratch_offset);
    }
    layer->kernel(layer->params, rows, (int8_t *)out, step, scratch);
}

void arenite_run(const arenite_model_t *model, uint8_t *arena) {
    uint16_t *counters = (uint16_t *)(void *)(arena + model->counters_offset);
    for (uint32_t item = 0; item < model->batch; item++) {
        for (uint16_t i = 0; i < model->layer_count; i++) {
            counters[i] = 0;
        }
        for (uint32_t s = 0; s < model->step_count; s++) {
            uint16_t layer = model->steps[s].layer;
            for (uint16_t n = model->steps[s].count; n > 0; n--) {
#ifdef ARENITE_ON_STEP
                arenite_on_step(model, layer, counters[layer]);
#endif
                run_step(model, &model->layers[layer], arena, counters[layer]++, item);
            }
        }
    }
}
