/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_MODELS_H
#define ARENITE_MODELS_H

#include "arenite_model.h"

#define ARENITE_BUFFERS(BUFFER) BUFFER(0, "sram", ARENITE_ARENA_BYTES)
#define ARENITE_MOST_REGIONS 1

#ifdef FAKE_MIRROR
#define ARENITE_MODEL_COUNT 2
#define ARENITE_MEMORY(START)                                                                                \
    {                                                                                                        \
        {START(0)}, { START(0) }                                                                             \
    }
#else
#define ARENITE_MODEL_COUNT 1
#define ARENITE_MEMORY(START)                                                                                \
    {                                                                                                        \
        {                                                                                                    \
            START(0)                                                                                         \
        }                                                                                                    \
    }
#endif

extern const arenite_model_t *const arenite_models[ARENITE_MODEL_COUNT];

#endif
