/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the runtime's interface that the firmware application uses, over a model of a few lines. */
#ifndef ARENITE_H
#define ARENITE_H

#include <stdint.h>

typedef struct {
    const char *name;
    uint32_t offset;
    uint32_t bytes;
    uint8_t dtype;
    int16_t zero_point;
    float scale;
} arenite_io_t;

typedef struct arenite_model {
    uint32_t arena_bytes;
    const uint8_t *sha256;
    uint8_t input_count;
    uint8_t output_count;
    const arenite_io_t *inputs;
    const arenite_io_t *outputs;
    const uint8_t *weights;
} arenite_model_t;

void *arenite_input(const arenite_model_t *m, uint8_t *arena, unsigned i);
const void *arenite_output(const arenite_model_t *m, const uint8_t *arena, unsigned i);
void arenite_run(const arenite_model_t *m, uint8_t *arena);

#endif
