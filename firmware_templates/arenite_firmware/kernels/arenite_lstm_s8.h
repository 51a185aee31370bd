/* SPDX-License-Identifier: Apache-2.0 */
/* UNIDIRECTIONAL_SEQUENCE_LSTM, int8 with an int16 cell, one time step a call. No peephole, projection, layer norm.
 * Authority: TFLM LstmStep (lstm_eval.h).
 *
 *   gate = curve(sat16(in * W) + sat16(hidden * R)), both requantised to Q3.12
 *   cell = sat16(forget * cell + input * candidate), clipped; hidden = output * tanh(cell) */
#ifndef ARENITE_LSTM_S8_H
#define ARENITE_LSTM_S8_H

#include "arenite_curve_16.h"

enum {
    ARENITE_LSTM_INPUT,
    ARENITE_LSTM_FORGET,
    ARENITE_LSTM_CANDIDATE,
    ARENITE_LSTM_OUTPUT,
    ARENITE_LSTM_GATES
};

typedef struct {
    const int8_t *weights;   /* [ARENITE_LSTM_GATES][units][inputs] */
    const int8_t *recurrent; /* [ARENITE_LSTM_GATES][units][units] */
    const int32_t *bias; /* [ARENITE_LSTM_GATES][units]: bias - in_zero_point * sum of weights, modulo 2^32 */
    const int32_t *recurrent_bias; /* the same of the recurrent weights, which have no bias of their own */
    const int32_t *multiplier;     /* [2][ARENITE_LSTM_GATES]: of input and hidden state */
    const int8_t *shift;           /* [2][ARENITE_LSTM_GATES]: -31 .. 30, positive is left */
    const uint16_t *table;         /* [256], see arenite_curve_16.h */
    int32_t inputs;
    int32_t units;
    int32_t forget_multiplier; /* forget gate times cell */
    int32_t input_multiplier;  /* input gate times candidate */
    int32_t hidden_multiplier; /* output gate times tanh of the cell */
    int32_t tanh_multiplier;   /* of the cell, as arenite_curve_input takes it */
    int8_t forget_shift;
    int8_t input_shift;
    int8_t hidden_shift;
    int8_t tanh_right_shift;
    int16_t cell_clip; /* 0: none */
    int16_t hidden_zero_point;
} arenite_lstm_s8_t;

/* rows: the input of this step, inputs bytes; the hidden state, units bytes, and the cell, units int16, which are updated.
 * out: units bytes, apart from all. No scratch. */
void arenite_lstm_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
