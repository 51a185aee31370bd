/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a model that is linked for a slot; it is compiled with the model, not with the firmware. */
#include "model_slot.h"

#include "arenite_model.h"

extern const model_head_t arenite_model_head;

__attribute__((section(".arenite_model_head"), used)) const model_head_t arenite_model_head = {
    MODEL_HEAD_MAGIC, ARENITE_RUNTIME_VERSION, MODEL_MAX_POINTERS, MODEL_MOST_LAYERS, &arenite_model,
};
