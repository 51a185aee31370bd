/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of a program for an emulated AArch64 processor without an operating system; called once for each request. */
#include "arenite.h"
#include "arenite_host_isa.h"

extern const arenite_model_t *const graph_models[];

enum { RUN, INPUT, OUTPUT };

/* what: RUN a model; the address of its INPUT or OUTPUT number i. */
const void *start(uint32_t model, uint8_t *arena, uint32_t what, uint32_t i, int32_t isa);

const void *start(uint32_t model, uint8_t *arena, uint32_t what, uint32_t i, int32_t isa) {
    arenite_host_cap_isa(isa);
    switch (what) {
    case RUN:
        arenite_run(graph_models[model], &arena);
        return arena;
    case INPUT:
        return arenite_input(graph_models[model], &arena, i);
    default:
        return arenite_output(graph_models[model], &arena, i);
    }
}
