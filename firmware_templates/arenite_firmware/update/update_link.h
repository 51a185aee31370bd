/* SPDX-License-Identifier: Apache-2.0 */
/* Updates over the serial link: the command APP_UPDATE, whose payload starts with one of the operations below.
 *
 *     operation   request after it        reply after the link's status: result u8 (update_status_t), then
 *     0 state     -                       running slot i8, its version u32, flags u8 (1 confirmed, 2 on trial,
 *                                         4 rolled back), status of either slot u8 u8, most payload bytes u32
 *     1 begin     header (256)            -
 *     2 take      offset u32, data        -
 *     3 finish    -                       -
 *     4 confirm   -                       -
 *     5 restart   -                       -; the board restarts, if a `finish` went well
 *
 * With 16 added they are about the slots for the model alone; take, finish and restart are about what was begun.
 *
 * Each may be asked again when its reply was lost. That is why there is a restart here: a second one would end the trial
 * of the new image, so the board restarts once, and then has no finished image any more. */
#ifndef ARENITE_UPDATE_LINK_H
#define ARENITE_UPDATE_LINK_H

#include "app.h"
#include "command.h"
#include "update.h"

/* The board's slots for firmware or for models, and what the start found in them: whoever chose the slot leaves it there.
 * NULL where this firmware has none of that kind. */
const update_slots_t *board_update_slots(image_kind_t kind);
update_boot_t *board_update_running(image_kind_t kind);

/* Forgets an image on its way. */
void update_link_start(void);

/* Whether the board must restart, once the reply is sent. */
bool update_link_wants_restart(void);

app_status_t update_link(const app_request_t *request, app_reply_t *reply);

#endif
