/* SPDX-License-Identifier: Apache-2.0 */
/* Two inputs, a (3000 x int8) and b (37 x uint8); two outputs, a[i] + b[i % 37] + weights[i % 37] (mod 256)
 * and b reversed. A run overwrites both inputs. support/fake_bundle.py computes the same. */
#include <string.h>

#include "arenite_model.h"

enum { A = 3000, B = 37, A_AT = 0, B_AT = 3008, SUM_AT = 3056, REVERSED_AT = 6056 };

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

const arenite_model_t arenite_model = {ARENITE_MODEL_ARENA_BYTES, sha256, 2, 2, inputs, outputs, weights};

void *arenite_input(const arenite_model_t *m, uint8_t *arena, unsigned i) {
    return arena + m->inputs[i].offset;
}

const void *arenite_output(const arenite_model_t *m, const uint8_t *arena, unsigned i) {
    return arena + m->outputs[i].offset;
}

void arenite_run(const arenite_model_t *m, uint8_t *arena) {
    for (uint32_t i = 0; i < A; i++) {
        arena[SUM_AT + i] = (uint8_t)(arena[A_AT + i] + arena[B_AT + i % B] + m->weights[i % B]);
    }
    for (uint32_t i = 0; i < B; i++) {
        arena[REVERSED_AT + i] = arena[B_AT + B - 1 - i];
    }
    memset(arena + A_AT, 0x55, A);
    memset(arena + B_AT, 0x55, B);
}
