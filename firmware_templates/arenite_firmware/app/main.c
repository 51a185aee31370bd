/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"
#include "board.h"

int main(void) {
    board_init();
    app_start();
    for (;;) {
        const int byte = board_uart_read();
        if (byte >= 0) {
            app_receive((uint8_t)byte);
        } else if (app_may_sleep()) {
            board_idle();
        }
    }
}
