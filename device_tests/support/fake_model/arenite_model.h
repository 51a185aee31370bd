/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_MODEL_H
#define ARENITE_MODEL_H

#include "arenite.h"

#define ARENITE_MODEL_ARENA_BYTES 6104u
#ifndef ARENITE_ARENA_BYTES
#define ARENITE_ARENA_BYTES ARENITE_MODEL_ARENA_BYTES
#endif
#if ARENITE_ARENA_BYTES < ARENITE_MODEL_ARENA_BYTES
#error "the arena is smaller than the model needs"
#endif

#define ARENITE_MODEL_REGIONS(REGION) REGION(0, "sram", ARENITE_ARENA_BYTES)

extern const arenite_model_t arenite_model;

#endif
