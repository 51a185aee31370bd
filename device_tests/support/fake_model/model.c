/* SPDX-License-Identifier: Apache-2.0 */
/* Two inputs, a (3000 x int8) and b (37 x uint8); two outputs, a[i] + b[i % 37] + weights[i % 37] (mod 256)
 * and b reversed. A run overwrites both inputs. support/fake_bundle.py computes the same.
 *
 * With FAKE_MIRROR a second model, in the same arena: c (37 x uint8) becomes c reversed. */
#include <string.h>

#include "arenite_models.h"

enum { A = 3000, B = 37, A_AT = 0, B_AT = 3008, SUM_AT = 3056, REVERSED_AT = 6056, COUNTERS_AT = 6096 };

__attribute__((section(".rodata.arenite_weights"))) static const uint8_t weights[B] = {
    3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8,
    4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4,
};

static const uint8_t sha256[32] = {0xAB, 1, 2, 3, [31] = 0xCD};

static const arenite_io_t inputs[2] = {
    {"a", A_AT, A, 0, -128, 0.5f},
    {"b, \"quoted\" */", B_AT, B, 1, 7, 0.0078125f},
};

static const arenite_io_t outputs[2] = {
    {"sum", SUM_AT, A, 0, 3, 0.25f},
    {"reversed", REVERSED_AT, B, 1, 0, 1.0f},
};

static void sum(const void *params, const int8_t *const *rows, int8_t *out, int32_t step, int32_t *scratch) {
    const uint8_t *w = (const uint8_t *)params;
    (void)step;
    (void)scratch;
    for (uint32_t i = 0; i < A; i++) {
        out[i] = (int8_t)(rows[0][i] + rows[1][i % B] + w[i % B]);
    }
}

static void reverse(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    (void)params;
    (void)step;
    (void)scratch;
    for (uint32_t i = 0; i < B; i++) {
        out[i] = rows[0][B - 1 - i];
    }
}

static void spoil(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                  int32_t *scratch) {
    (void)params;
    (void)rows;
    (void)step;
    (void)scratch;
    memset(out + A_AT, 0x55, A);
    memset(out + B_AT, 0x55, B);
}

#define ROW(at, count) {.place = (at), .row_bytes = (count), .rows = 1, .ring_rows = 1}

static const arenite_window_t whole = {.window = 1, .stride = 1, .dilation = 1};
static const arenite_value_t a = ROW(A_AT, A), b = ROW(B_AT, B), total = ROW(SUM_AT, A),
                             reversed = ROW(REVERSED_AT, B);
static const arenite_value_t nothing = ROW(0, 0);
static const arenite_read_t both[2] = {{&a, &whole}, {&b, &whole}};

#define LAYER(function, parameters, first, count, value)                                                     \
    {.kernel = (function),                                                                                   \
     .params = (parameters),                                                                                 \
     .reads = (first),                                                                                       \
     .read_count = (count),                                                                                  \
     .out = (value),                                                                                         \
     .scratch_place = ARENITE_NO_PLACE}

static const arenite_layer_t layers[3] = {
    LAYER(sum, weights, both, 2, &total),
    LAYER(reverse, NULL, &both[1], 1, &reversed),
    LAYER(spoil, NULL, NULL, 0, &nothing),
};

static const uint8_t steps[3] = {0x81, 0x91, 0x91};

static const uint32_t region_bytes[1] = {ARENITE_MODEL_ARENA_BYTES};

const arenite_model_t arenite_model = {
    .arena_bytes = ARENITE_MODEL_ARENA_BYTES,
    .region_bytes = region_bytes,
    .region_count = 1,
    .sha256 = sha256,
    .inputs = inputs,
    .outputs = outputs,
    .layers = layers,
    .steps = steps,
    .row_unit = 1,
    .step_bytes = 3,
    .counters_place = COUNTERS_AT,
    .layer_count = 3,
    .batch = 1,
    .input_count = 2,
    .output_count = 2,
};

#ifdef FAKE_MIRROR
enum { C_AT = 20, MIRRORED_AT = 500 };

static const uint8_t mirror_sha256[32] = {0xEF, [31] = 0x99};
static const arenite_io_t mirror_input = {"c", C_AT, B, 1, 1, 2.0f};
static const arenite_io_t mirror_output = {"mirrored", MIRRORED_AT, B, 1, 2, 4.0f};
static const arenite_value_t c = ROW(C_AT, B), mirrored = ROW(MIRRORED_AT, B);
static const arenite_read_t mirror_read = {&c, &whole};
static const arenite_layer_t mirror_layer = LAYER(reverse, NULL, &mirror_read, 1, &mirrored);
static const uint8_t mirror_step = 0x81;
static const uint32_t mirror_bytes = MIRRORED_AT + B;

static const arenite_model_t arenite_mirror = {
    .arena_bytes = MIRRORED_AT + B,
    .region_bytes = &mirror_bytes,
    .region_count = 1,
    .sha256 = mirror_sha256,
    .inputs = &mirror_input,
    .outputs = &mirror_output,
    .layers = &mirror_layer,
    .steps = &mirror_step,
    .row_unit = 1,
    .step_bytes = 1,
    .counters_place = COUNTERS_AT,
    .layer_count = 1,
    .batch = 1,
    .input_count = 1,
    .output_count = 1,
};
#endif

const arenite_model_t *const arenite_models[ARENITE_MODEL_COUNT] = {
    &arenite_model,
#ifdef FAKE_MIRROR
    &arenite_mirror,
#endif
};
