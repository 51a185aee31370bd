/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_lstm_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

#define Q3_12_MULTIPLIER 3 /* from 1/4096 to 1/12288 */

static int32_t saturated(int32_t value) { return arenite_clamp(value, INT16_MIN, INT16_MAX); }

/* One gate of one unit before its curve, in Q3.12. */
static int32_t gate_input(const arenite_lstm_s8_t *p, int32_t gate, int32_t unit, const int8_t *in,
                          const int8_t *hidden) {
    const int32_t entry = gate * p->units + unit;
    const int8_t *w = p->weights + (ptrdiff_t)entry * p->inputs;
    const int8_t *r = p->recurrent + (ptrdiff_t)entry * p->units;
    uint32_t a = (uint32_t)p->bias[entry], b = (uint32_t)p->recurrent_bias[entry];
    for (int32_t i = 0; i < p->inputs; i++) {
        a = arenite_mac(a, in[i], w[i]);
    }
    for (int32_t i = 0; i < p->units; i++) {
        b = arenite_mac(b, hidden[i], r[i]);
    }
    const int32_t left = arenite_requantise((int32_t)a, p->multiplier[gate], p->shift[gate]);
    const int32_t right = arenite_requantise((int32_t)b, p->multiplier[ARENITE_LSTM_GATES + gate],
                                             p->shift[ARENITE_LSTM_GATES + gate]);
    return saturated(saturated(left) + saturated(right));
}

static int32_t sigmoid_gate(const arenite_lstm_s8_t *p, int32_t gate, int32_t unit, const int8_t *in,
                            const int8_t *hidden) {
    return arenite_logistic_16(p->table, Q3_12_MULTIPLIER * gate_input(p, gate, unit, in, hidden));
}

static int32_t new_cell(const arenite_lstm_s8_t *p, int32_t unit, const int8_t *in, const int8_t *hidden,
                        int32_t cell) {
    const int32_t forget = sigmoid_gate(p, ARENITE_LSTM_FORGET, unit, in, hidden);
    const int32_t input = sigmoid_gate(p, ARENITE_LSTM_INPUT, unit, in, hidden);
    const int32_t candidate =
        arenite_tanh_16(p->table, Q3_12_MULTIPLIER * gate_input(p, ARENITE_LSTM_CANDIDATE, unit, in, hidden));
    const int32_t kept = saturated(arenite_requantise(forget * cell, p->forget_multiplier, p->forget_shift));
    const int32_t added =
        saturated(arenite_requantise(input * candidate, p->input_multiplier, p->input_shift));
    const int32_t sum = saturated(kept + added);
    return p->cell_clip > 0 ? arenite_clamp(sum, -p->cell_clip, p->cell_clip) : sum;
}

void arenite_lstm_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_lstm_s8_t *p = (const arenite_lstm_s8_t *)params;
    int8_t *hidden = (int8_t *)(uintptr_t)rows[1];
    int16_t *cell = (int16_t *)(uintptr_t)rows[2];
    (void)step;
    (void)scratch;
    for (int32_t u = 0; u < p->units; u++) {
        cell[u] = (int16_t)new_cell(p, u, rows[0], hidden, cell[u]);
        const int32_t gate = sigmoid_gate(p, ARENITE_LSTM_OUTPUT, u, rows[0], hidden);
        const int32_t x = arenite_curve_input(cell[u], p->tanh_multiplier, p->tanh_right_shift);
        out[u] = arenite_to_byte(gate * arenite_tanh_16(p->table, x), p->hidden_multiplier, p->hidden_shift,
                                 p->hidden_zero_point, INT8_MIN, INT8_MAX);
    }
    for (int32_t u = 0; u < p->units; u++) {
        hidden[u] = out[u];
    }
}
