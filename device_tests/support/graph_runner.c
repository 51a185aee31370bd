/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the models of one batch on requests from standard input, each memory region fresh and between guard bytes.
 *
 * Request:  u32 model, u32 offset, u32 mode, u32 runs, then the inputs of each run. Numbers are in the machine's own
 * order. What the model remembers lasts for one request.
 *           mode 0 runs the executor as it ships, its memory `offset` bytes off a 16-byte boundary.
 *           mode n > 0 hands every row to its kernel in an allocation of its own, each pointer at another
 * offset of 0 .. 15, a multiple of its elements' size, drawn from n, so that a sanitiser sees a single byte read or written beside a row. Reply:
 * the outputs of each run, then u32 status (0 good, 1 a byte outside the arena or a row was written, 2 a guard word behind a block
 * was). Ends with its input.
 */
#include "arenite.h"
#include "arenite_guards.h"
#include "arenite_host_isa.h"
#include "arenite_limits.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

/* The address sanitiser itself guards the end of an allocation, to the byte. */
#ifdef UNDER_ASAN
#define TAIL_BYTES 0u
#else
#define TAIL_BYTES 64u
#endif
#define HEAD_BYTES 64u
#define GUARD 0xA5
#define GARBAGE 0x5B
#define MAX_ROWS ARENITE_MAX_POINTERS
#define MAX_REGIONS 16u

extern const arenite_model_t *const graph_models[];
extern const uint8_t graph_model_alignments[];
extern const uint32_t graph_model_count;

typedef struct {
    uint8_t *block;
    uint8_t *bytes;
    size_t count;
    size_t head;
} guarded_t;

static const arenite_model_t *current_model;
static uint16_t current_layer;
static uint32_t random_state;
static size_t alignment; /* of rows: the most bytes an element of the model has */
static int guards_intact;

static guarded_t guarded(size_t count, size_t offset) {
    guarded_t g = {NULL, NULL, count, HEAD_BYTES + offset};
    g.block = malloc(g.head + count + TAIL_BYTES);
    if (g.block == NULL) {
        exit(3);
    }
    g.bytes = g.block + g.head;
    memset(g.block, GUARD, g.head + count + TAIL_BYTES);
    memset(g.bytes, GARBAGE, count);
    return g;
}

static int all_guard(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != GUARD) {
            return 0;
        }
    }
    return 1;
}

static void release(guarded_t *g) {
    if (!all_guard(g->block, g->head) || !all_guard(g->bytes + g->count, TAIL_BYTES)) {
        guards_intact = 0;
    }
    free(g->block);
}

static size_t random_offset(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 28) & ~(alignment - 1u);
}

void arenite_on_step(const arenite_model_t *model, uint16_t layer, uint16_t step) {
    (void)model;
    (void)step;
    current_layer = layer;
}

/* A state that the layer updates where it lies is not copied apart. */
static int is_own_state(const arenite_read_t *read) {
    for (unsigned i = 0; i < current_model->state_count; i++) {
        const arenite_state_t *state = &current_model->states[i];
        if (state->place == read->value->place && state->next_place == ARENITE_NO_PLACE) {
            return 1;
        }
    }
    return 0;
}

/* Stands in for every kernel of a shadow model: copies the rows apart, runs the kernel, copies the result
 * back. */
static void isolated(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    static guarded_t copies[MAX_ROWS];
    static const int8_t *pointers[MAX_ROWS];
    const arenite_layer_t *layer = &current_model->layers[current_layer];
    size_t used = 0;
    for (unsigned i = 0; i < layer->read_count; i++) {
        const arenite_read_t *read = &layer->reads[i];
        /* A read that does not move gets one pointer to the whole value. */
        const size_t bytes =
            (size_t)read->value->row_bytes * (read->window->stride == 0 ? read->value->rows : 1u);
        for (unsigned k = 0; k < read->window->window; k++, used++) {
            if (used == MAX_ROWS) {
                exit(4);
            }
            copies[used].block = NULL;
            pointers[used] = rows[used];
            if (rows[used] != NULL && !is_own_state(read)) {
                copies[used] = guarded(bytes, random_offset());
                memcpy(copies[used].bytes, rows[used], copies[used].count);
                pointers[used] = (const int8_t *)copies[used].bytes;
            }
        }
    }
    guarded_t result = guarded(layer->out->row_bytes, random_offset());
    layer->kernel(params, pointers, (int8_t *)result.bytes, step, scratch);
    const int32_t last = (int32_t)layer->reads[0].value->rows - 1;
    if (!layer->accumulates || step == last) {
        memcpy(out, result.bytes, result.count);
    }
    release(&result);
    for (size_t i = 0; i < used; i++) {
        if (copies[i].block != NULL) {
            release(&copies[i]);
        }
    }
}

static void run_isolated(const arenite_model_t *model, uint8_t *const *memory, uint32_t seed) {
    arenite_layer_t *layers = malloc(model->layer_count * sizeof *layers);
    if (layers == NULL) {
        exit(3);
    }
    memcpy(layers, model->layers, model->layer_count * sizeof *layers);
    for (unsigned i = 0; i < model->layer_count; i++) {
        layers[i].kernel = isolated;
    }
    arenite_model_t shadow = *model;
    shadow.layers = layers;
    current_model = model;
    random_state = seed;
    arenite_run(&shadow, memory);
    free(layers);
}

static int read_inputs(const arenite_model_t *model, uint8_t *const *memory) {
    for (unsigned i = 0; i < model->input_count; i++) {
        size_t bytes = model->inputs[i].bytes;
        if (fread(arenite_input(model, memory, i), 1, bytes, stdin) != bytes) {
            return 0;
        }
    }
    return 1;
}

static void write_outputs(const arenite_model_t *model, uint8_t *const *memory) {
    for (unsigned i = 0; i < model->output_count; i++) {
        fwrite(arenite_output(model, memory, i), 1, model->outputs[i].bytes, stdout);
    }
}

static void write_status(const arenite_model_t *model, guarded_t *regions) {
    uint32_t status = 0;
    for (unsigned i = 0; i < model->region_count; i++) {
        release(&regions[i]);
    }
    status = guards_intact ? 0u : 1u;
#ifdef ARENITE_GUARDS
    if (arenite_guard_damage() != NULL) {
        status = 2u;
    }
#endif
    fwrite(&status, sizeof status, 1, stdout);
    fflush(stdout);
}

static int answer(uint32_t index, uint32_t offset, uint32_t mode, uint32_t runs) {
    const arenite_model_t *model = graph_models[index];
    guarded_t regions[MAX_REGIONS];
    uint8_t *memory[MAX_REGIONS];
    for (unsigned i = 0; i < model->region_count; i++) {
        regions[i] = guarded(model->region_bytes[i], offset);
        memory[i] = regions[i].bytes;
    }
    guards_intact = 1;
    alignment = graph_model_alignments[index];
    arenite_reset(model, memory);
    for (uint32_t run = 0; run < runs; run++) {
        if (!read_inputs(model, memory)) {
            return 0;
        }
        if (mode == 0) {
            arenite_run(model, memory);
        } else {
            run_isolated(model, memory, mode);
        }
        write_outputs(model, memory);
    }
    write_status(model, regions);
    return 1;
}

/* The first argument is the level of instructions, see arenite_host_isa.h. Ends with 5 on a processor without it. */
int main(int count, char **arguments) {
    const int32_t level = count > 1 ? atoi(arguments[1]) : 0;
    if (arenite_host_cap_isa(level) != level) {
        return 5;
    }
    uint32_t request[4];
    while (fread(request, sizeof request, 1, stdin) == 1) {
        if (request[0] >= graph_model_count || request[1] > 15 ||
            !answer(request[0], request[1], request[2], request[3])) {
            return 2;
        }
    }
    return 0;
}
