/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the serial link, over the models of this firmware.
 *
 * A reply has the request's sequence number, the request's command with bit 7 set, and a payload that starts
 * with one status byte. When the status is not 0 nothing follows it, but for status 7 to run: guard u32, layer u16,
 * step u32. Integers are little-endian.
 *
 *     command     request payload                         reply payload after the status
 *     1 identify  -                                       protocol u8, counter unit u8, models u8, model u8,
 *                                                         inputs u8, outputs u8, max_payload u16,
 *                                                         counter_hz u32, arena_bytes u32,
 *                                                         model SHA-256 (32), board name (rest)
 *     2 describe  kind u8 (0 input, 1 output), index u8   dtype u8, zero_point i16, bytes u32, scale f32,
 *                                                         name (rest)
 *     3 load      index u8, offset u32, data              -
 *     4 run       count u32, or nothing for 1             unit u8, counter u64, stack_peak_bytes u32
 *     5 read      index u8, offset u32, bytes u16         data
 *     6 select    model u8                                -
 *     7 about     -                                       features u8 (1 guards, 2 watchdog, 4 marker pin),
 *                                                         rounding u8 (0 double), layers u16, clock_hz u32,
 *                                                         build u64, MCU id (rest)
 *     8 trace     mode u8, layer u16, first row u32,      -
 *                 rows u32
 *     9 layers    first layer u16                         for each: rows u32, CRC-32 u32, counter u64
 *    10 heartbeat -                                       uptime u64 (counter), inferences u32, stack_peak_bytes
 *                                                         u32, damaged frames u32, refusals u32, last refused
 *                                                         command u8, its status u8, guards u8 (0 absent,
 *                                                         1 intact, 2 damaged)
 *    11 reset cause -                                     cause u8 (0 unknown, 1 asked, 2 fault, 3 watchdog),
 *                                                         kind, pc, lr, status, address u32, layer, step u16
 *    12 parameter index u8, value u32 or nothing          value u32
 *    13 reboot    -                                       -
 *
 * On start the board sends one frame of command 0xFF, sequence 0, without payload: the banner. While a run is traced
 * row by row it sends frames of command 0xFE, sequence 0: layer u16, row u32, offset u32, and the row's CRC-32 or the
 * bytes from that offset.
 *
 * All commands are about one model: the first, until another is selected. The models share one arena, so a select
 * ends the life of inputs and outputs alike, and puts a model that remembers (recurrent, streaming) back to its start.
 *
 * Each input must have been loaded whole, in ascending chunks from offset 0, before every run, since a run
 * may overwrite it; a load in turn ends the life of the last outputs. A run that is asked for again with the
 * same sequence number (its reply was lost) is answered from memory, not run again.
 */
#ifndef ARENITE_APP_H
#define ARENITE_APP_H

#include <stdbool.h>
#include <stdint.h>

#define APP_PROTOCOL_VERSION 3u
#define APP_MAX_INPUTS 16u

enum {
    APP_IDENTIFY = 1,
    APP_DESCRIBE = 2,
    APP_LOAD = 3,
    APP_RUN = 4,
    APP_READ = 5,
    APP_SELECT = 6,
    APP_ABOUT = 7,
    APP_TRACE = 8,
    APP_LAYERS = 9,
    APP_HEARTBEAT = 10,
    APP_RESET_CAUSE = 11,
    APP_PARAMETER = 12,
    APP_REBOOT = 13,
    APP_UPDATE = 14, /* in builds with slots: see update_link.h */
    APP_REPLY = 0x80,
    APP_ROW = 0xFE,
    APP_BANNER = 0xFF,
};

/* What `parameter` sets; each is 1 after a start. */
enum {
    APP_MARKER = 0, /* the marker pin is high while an inference runs */
    APP_SLEEP = 1,  /* the core may sleep between requests */
    APP_PARAMETERS = 2,
};

typedef enum {
    APP_OK = 0,
    APP_UNKNOWN_COMMAND = 1,
    APP_BAD_LENGTH = 2,   /* the payload is not as long as the command needs */
    APP_BAD_INDEX = 3,    /* no such input, output or model */
    APP_OUT_OF_RANGE = 4, /* offset and length reach past the tensor */
    APP_NOT_LOADED = 5,   /* run before every input was loaded, or a load that leaves a gap */
    APP_NOT_RUN = 6,      /* read of outputs that no run has made since the last load */
    APP_DAMAGED = 7,      /* validation builds: a run that wrote past the end of a block of the arena */
    APP_NOT_POSSIBLE = 8, /* a value that this model or this firmware does not allow */
} app_status_t;

/* Forgets what was loaded and run, and sends the banner. */
void app_start(void);

/* Whether the main loop may wait in sleep. */
bool app_may_sleep(void);

/* Takes one byte from the line; answers when it completes a request. */
void app_receive(uint8_t byte);

#endif
