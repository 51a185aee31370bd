/* SPDX-License-Identifier: Apache-2.0 */
#include "mlperf.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "app.h"
#include "arenite.h"
#include "arenite_models.h"
#include "board.h"
#include "decimal.h"
#include "mlperf_config.h"

#define DEFAULT_WARM_UPS 10u
#define BYTES_A_LINE 8u
#define MOST_TOKENS 4u
#define MICROSECONDS 1000000u
#define MOST_STEPS 1024 /* beyond it every 8-bit grid is saturated */
#define PULSE_US 2u     /* the power monitor needs at least 1 */

#define BUFFER(number, name, bytes) static uint8_t buffer_##number[bytes] BOARD_IN_MEMORY(name);
#define START(number) buffer_##number
ARENITE_BUFFERS(BUFFER)
static uint8_t *const memories[ARENITE_MODEL_COUNT][ARENITE_MOST_REGIONS] = ARENITE_MEMORY(START);

#if MLPERF_PAYLOAD == MLPERF_FLOATS
static float features[MLPERF_PAYLOAD_BYTES / sizeof(float)];
#endif

static struct {
    char command[MLPERF_COMMAND_BYTES + 1u];
    uint32_t command_bytes; /* more than fit: the command is too long */
    uint32_t expected_bytes;
    uint32_t loaded_bytes;
    bool has_run; /* since the last load */
} state;

static const arenite_model_t *model(void) { return arenite_models[0]; }
static uint8_t *const *memory(void) { return memories[0]; }
static uint8_t *input(void) { return arenite_input(model(), memory(), 0); }

/* Where the payload lies. */
static uint8_t *payload(void) {
#if MLPERF_PAYLOAD == MLPERF_FLOATS
    return (uint8_t *)features;
#else
    return input();
#endif
}

/* What turns a byte of the payload into a byte of the input tensor, and back. */
static uint8_t payload_mask(void) {
    return MLPERF_PAYLOAD == MLPERF_PIXELS && model()->inputs[0].dtype == 0 ? 0x80u : 0u;
}

static void say(const char *text) {
    for (; *text != '\0'; text++) {
        board_uart_write((uint8_t)*text);
    }
}

static void say_number(uint64_t value) {
    char text[DECIMAL_MAX_BYTES];
    say(decimal_u64(text, value));
}

static void end_line(void) { say("\r\n"); }

static void say_line(const char *text) {
    say(text);
    end_line();
}

static void say_count(const char *before, uint64_t value, const char *after) {
    say(before);
    say_number(value);
    say_line(after);
}

static void say_error(const char *problem, const char *what) {
    say("e-[");
    say(problem);
    say(what);
    say_line("]");
}

static void lap(void) {
#if MLPERF_ENERGY
    const uint64_t start = board_counter();
    board_marker(false);
    while ((board_counter() - start) * MICROSECONDS < (uint64_t)PULSE_US * BOARD_COUNTER_HZ) {
    }
    board_marker(true);
#else
    /* Seconds and the rest apart: the product of the whole would overflow within days. */
    const uint64_t ticks = board_counter();
    const uint64_t seconds = ticks / BOARD_COUNTER_HZ;
    const uint64_t rest = ticks % BOARD_COUNTER_HZ;
    say_count("m-lap-us-", seconds * MICROSECONDS + rest * MICROSECONDS / BOARD_COUNTER_HZ, "");
#endif
}

static bool equal(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static uint32_t length(const char *text) {
    uint32_t count = 0;
    while (text[count] != '\0') {
        count++;
    }
    return count;
}

/* Reads a decimal number of at most 32 bits; false when the text is none. */
static bool read_number(const char *text, uint32_t *value) {
    uint64_t number = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        number = number * 10u + (uint64_t)(*text - '0');
        if (number > UINT32_MAX) {
            return false;
        }
    }
    *value = (uint32_t)number;
    return true;
}

static int hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    const char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void load(const char *count) {
    uint32_t bytes = 0;
    if (count == NULL || !read_number(count, &bytes)) {
        say_error("db load needs the number of bytes", "");
        return;
    }
    if (bytes != MLPERF_PAYLOAD_BYTES) {
        say("e-[This model takes ");
        say_count("", MLPERF_PAYLOAD_BYTES, " bytes]");
        return;
    }
    state.expected_bytes = bytes;
    state.loaded_bytes = 0;
    state.has_run = false;
    say_count("m-[Expecting ", bytes, " bytes]");
}

static bool is_loaded(void) {
    return state.expected_bytes != 0 && state.loaded_bytes == state.expected_bytes;
}

static void take_bytes(const char *hex) {
    const uint32_t digits = length(hex);
    if (state.expected_bytes == 0 || is_loaded()) {
        say_error("No bytes are expected: send db load first", "");
        return;
    }
    if (digits % 2u != 0 || digits / 2u > state.expected_bytes - state.loaded_bytes) {
        say_error("Odd number of digits, or more bytes than expected: ", hex);
        return;
    }
    for (uint32_t i = 0; i < digits; i++) {
        if (hex_digit(hex[i]) < 0) {
            say_error("Not hexadecimal: ", hex);
            return;
        }
    }
    for (uint32_t i = 0; i < digits; i += 2u) {
        const int value = hex_digit(hex[i]) << 4 | hex_digit(hex[i + 1u]);
        payload()[state.loaded_bytes++] = (uint8_t)((uint8_t)value ^ payload_mask());
    }
    if (is_loaded()) {
        say_line("m-load-done");
    }
}

static void print_bytes(const char *count_text, const char *offset_text) {
    static const char digits[] = "0123456789abcdef";
    uint32_t count = MLPERF_PAYLOAD_BYTES;
    uint32_t offset = 0;
    const bool numbers = (count_text == NULL || read_number(count_text, &count)) &&
                         (offset_text == NULL || read_number(offset_text, &offset));
    if (!numbers || offset > MLPERF_PAYLOAD_BYTES) {
        say_error("db print takes a number of bytes and an offset within the buffer", "");
        return;
    }
    if (count > MLPERF_PAYLOAD_BYTES - offset) {
        count = MLPERF_PAYLOAD_BYTES - offset;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t byte = payload()[offset + i] ^ payload_mask();
        if (i % BYTES_A_LINE == 0) {
            say(i == 0 ? "m-buffer" : "\r\nm-buffer");
        }
        board_uart_write('-');
        board_uart_write((uint8_t)digits[byte >> 4]);
        board_uart_write((uint8_t)digits[byte & 15u]);
    }
    if (count != 0) {
        end_line();
    }
}

static void db(char *const *tokens, uint32_t count) {
    const char *argument = count > 2 ? tokens[2] : NULL;
    if (count < 2) {
        say_error("db needs an argument", "");
    } else if (equal(tokens[1], "load")) {
        load(argument);
    } else if (equal(tokens[1], "print")) {
        print_bytes(argument, count > 3 ? tokens[3] : NULL);
    } else {
        take_bytes(tokens[1]);
    }
}

static float real(const arenite_io_t *io, const uint8_t *bytes, uint32_t index) {
    const int32_t q = io->dtype == 0 ? (int32_t)(int8_t)bytes[index] : (int32_t)bytes[index];
    return (float)(q - io->zero_point) * io->scale;
}

static void say_result(float value) {
    char text[DECIMAL_MAX_BYTES];
    say(decimal_milli(text, value));
}

#if MLPERF_PAYLOAD == MLPERF_FLOATS
/* To nearest, halves away from zero, then saturated, as the reference kernels quantise; what is not a number is least. */
static uint8_t quantised(const arenite_io_t *io, float value) {
    const int32_t low = io->dtype == 0 ? INT8_MIN : 0;
    float steps = value / io->scale;
    if (!(steps > -(float)MOST_STEPS)) {
        steps = -(float)MOST_STEPS;
    } else if (steps > (float)MOST_STEPS) {
        steps = (float)MOST_STEPS;
    }
    int32_t q = (int32_t)steps;
    const float rest = steps - (float)q; /* exact, which adding a half before cutting is not */
    q += (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0) + io->zero_point;
    return (uint8_t)(q < low ? low : q > low + UINT8_MAX ? low + UINT8_MAX : q);
}

static void prepare(void) {
    const arenite_io_t *io = &model()->inputs[0];
    for (uint32_t i = 0; i < io->bytes; i++) {
        input()[i] = quantised(io, features[i]);
    }
}

static void say_values(void) {
    const arenite_io_t *io = &model()->outputs[0];
    const uint8_t *bytes = arenite_output(model(), memory(), 0);
    float sum = 0.0f;
    for (uint32_t i = 0; i < io->bytes; i++) {
        const float difference = real(io, bytes, i) - features[i];
        sum += difference * difference;
    }
    say_result(sum / (float)io->bytes);
}
#else
static void prepare(void) {}

static void say_values(void) {
    const arenite_io_t *io = &model()->outputs[0];
    const uint8_t *bytes = arenite_output(model(), memory(), 0);
    for (uint32_t i = 0; i < io->bytes; i++) {
        say(i == 0 ? "" : ",");
        say_result(real(io, bytes, i));
    }
}
#endif

static void results(void) {
    if (!state.has_run) {
        say_error("Nothing was inferred since the last load", "");
        return;
    }
    say("m-results-[");
    say_values();
    say_line("]");
}

static void repeat(uint32_t runs) {
    for (; runs != 0; runs--) {
        arenite_run(model(), memory());
    }
}

static void infer(const char *runs_text, const char *warm_ups_text) {
    uint32_t runs = 0;
    uint32_t warm_ups = DEFAULT_WARM_UPS;
    if (runs_text == NULL || !read_number(runs_text, &runs) || runs == 0 ||
        (warm_ups_text != NULL && !read_number(warm_ups_text, &warm_ups))) {
        say_error("infer needs a number of inferences, at least 1, and takes one of warm-ups", "");
        return;
    }
    if (!is_loaded()) {
        say_error("The input is not loaded: send db load and its bytes", "");
        return;
    }
    prepare();
    say_count("m-warmup-start-", warm_ups, "");
    repeat(warm_ups);
    say_line("m-warmup-done");
    say_count("m-infer-start-", runs, "");
    lap();
    repeat(runs);
    lap();
    state.has_run = true;
    say_line("m-infer-done");
    results();
}

static void profile(void) {
    say_line("m-profile-[Arenite for MLPerf Tiny]");
    say_line("m-model-[" MLPERF_MODEL_ID "]");
}

static void help(void) {
    say_line("name: who this is");
    say_line("profile: firmware and model");
    say_line("timestamp: one lap");
    say_line("db load N: a payload of N bytes follows");
    say_line("db HH...: its next bytes, hexadecimal");
    say_line("db print [N] [OFFSET]: the payload's bytes");
    say_line("infer N [W]: W warm-ups, then N inferences between two laps");
    say_line("results: those of the last inference");
}

/* Cuts a command at its spaces, in place; what comes after the last token that counts stays behind it unread. */
static uint32_t split(char *text, char **tokens) {
    uint32_t count = 0;
    while (count < MOST_TOKENS) {
        while (*text == ' ') {
            text++;
        }
        if (*text == '\0') {
            break;
        }
        tokens[count++] = text;
        while (*text != ' ' && *text != '\0') {
            text++;
        }
        if (*text == ' ') {
            *text++ = '\0';
        }
    }
    return count;
}

static void obey(void) {
    char *tokens[MOST_TOKENS] = {NULL};
    const uint32_t count = split(state.command, tokens);
    const char *command = count > 0 ? tokens[0] : "";
    if (equal(command, "name")) {
        say_line("m-name-dut-[Arenite " BOARD_NAME "]");
    } else if (equal(command, "profile")) {
        profile();
    } else if (equal(command, "timestamp")) {
        lap();
    } else if (equal(command, "db")) {
        db(tokens, count);
    } else if (equal(command, "infer")) {
        infer(tokens[1], tokens[2]);
    } else if (equal(command, "results")) {
        results();
    } else if (equal(command, "help")) {
        help();
    } else {
        say_error("Unknown command: ", command);
    }
}

static void ready(void) { say_line("m-ready"); }

bool app_may_sleep(void) { return true; }

#ifdef ARENITE_ON_STEP
void arenite_on_step(const arenite_model_t *running, uint16_t layer, uint16_t step) {
    (void)running;
    board_alive(layer, step);
}
#endif

void app_start(void) {
    memset(&state, 0, sizeof state);
    board_marker(MLPERF_ENERGY); /* the power monitor's line rests high */
    say_line(MLPERF_ENERGY ? "m-timestamp-mode-energy" : "m-timestamp-mode-performance");
    lap();
    say_line("m-init-done");
    ready();
}

void app_receive(uint8_t byte) {
    if (byte == '%') {
        if (state.command_bytes > MLPERF_COMMAND_BYTES) {
            say_error("The command is too long", "");
        } else {
            state.command[state.command_bytes] = '\0';
            obey();
        }
        state.command_bytes = 0;
        ready();
        return;
    }
    if (byte == '\r' || byte == '\n' || byte == '\0') {
        return;
    }
    if (state.command_bytes < MLPERF_COMMAND_BYTES) {
        state.command[state.command_bytes] = (char)byte;
    }
    state.command_bytes += state.command_bytes <= MLPERF_COMMAND_BYTES ? 1u : 0u;
}
