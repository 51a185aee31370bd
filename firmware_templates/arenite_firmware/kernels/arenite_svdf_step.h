/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an SVDF. A kernel's C file defines STATE and its rails LOWEST and HIGHEST, and includes this. */
#include "arenite_svdf.h"

/* What a filter makes of the input, on the state's grid. */
static STATE feature(const arenite_svdf_t *p, const int8_t *in, const int8_t *weights) {
    int32_t sum = 0;
    for (int32_t i = 0; i < p->inputs; i++) {
        sum += weights[i] * (in[i] - p->in_zero_point);
    }
    const int32_t scaled = arenite_requantise(sum, p->state_multiplier, p->state_shift);
    return (STATE)arenite_clamp(scaled, LOWEST, HIGHEST);
}

/* Forget the filter's oldest number, append the new one, weigh them all; modulo 2^32, as the reference's sums run over. */
static uint32_t remember(const arenite_svdf_t *p, STATE *state, STATE newest, const STATE *weights) {
    uint32_t sum = 0;
    for (int32_t k = 0; k < p->memory; k++) {
        state[k] = k + 1 < p->memory ? state[k + 1] : newest;
        sum = arenite_mac(sum, weights[k], state[k]);
    }
    return sum;
}

static void svdf_step(const arenite_svdf_t *p, const int8_t *const *rows, int8_t *out) {
    STATE *state = (STATE *)(uintptr_t)rows[1];
    const STATE *time_weights = (const STATE *)p->time_weights;
    const int8_t *feature_weights = p->feature_weights;
    for (int32_t u = 0; u < p->units; u++) {
        uint32_t sum = (uint32_t)p->bias[u];
        for (int32_t r = 0; r < p->rank; r++) {
            sum += remember(p, state, feature(p, rows[0], feature_weights), time_weights);
            feature_weights += p->inputs;
            state += p->memory;
            time_weights += p->memory;
        }
        out[u] = arenite_to_byte((int32_t)sum, p->out_multiplier, p->out_shift, p->out_zero_point, INT8_MIN,
                                 INT8_MAX);
    }
}
