/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_MODELS_H
#define ARENITE_MODELS_H

#include "arenite_model.h"

#ifdef FAKE_MIRROR
#define ARENITE_MODEL_COUNT 2
#else
#define ARENITE_MODEL_COUNT 1
#endif

extern const arenite_model_t *const arenite_models[ARENITE_MODEL_COUNT];

#endif
