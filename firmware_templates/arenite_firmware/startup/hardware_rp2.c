/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and pins of RP2040 and RP2350 (their data sheets, chapters 2 and 8): the 12 MHz crystal, the system PLL, the serial
 * port, and the tick of one microsecond that the timer counts. */
#include "board.h"
#include "drivers.h"

#define REGISTER(base, offset) (*(volatile uint32_t *)((base) + (offset)))

enum { RESET = 0x0, RESET_DONE = 0x8 };
enum { XOSC_CTRL = 0x0, XOSC_STATUS = 0x4, XOSC_STARTUP = 0xC };
enum { PLL_CS = 0x0, PLL_PWR = 0x4, PLL_FBDIV = 0x8, PLL_PRIM = 0xC };
enum { REF_CTRL = 0x30, REF_SELECTED = 0x38, SYS_CTRL = 0x3C, SYS_SELECTED = 0x44, PERI_CTRL = 0x48 };
enum { XOSC_ENABLE = 0xFAB << 12, RANGE_1_15_MHZ = 0xAA0 };
enum { REF_FROM_XOSC = 2, SYS_FROM_AUX = 1, PERI_ON = 1 << 11 };
enum { VCO_DOWN = 1 << 5, POST_DIVIDER_DOWN = 1 << 3, PLL_DOWN = 1 << 0 };
enum { INPUT_ON = 1 << 6, PULL_UP = 1 << 3, DRIVE_4_MA = 1 << 4, SCHMITT = 1 << 1, FUNCTION_UART = 2 };

static void out_of_reset(uint32_t bits) {
    REGISTER(BOARD_RESETS_BASE, RESET) &= ~bits;
    while ((REGISTER(BOARD_RESETS_BASE, RESET_DONE) & bits) != bits) {
    }
}

static void crystal_on(void) {
    REGISTER(BOARD_XOSC_BASE, XOSC_STARTUP) =
        (BOARD_XOSC_HZ / 1000u + 128u) / 256u; /* 1 ms in units of 256 cycles */
    REGISTER(BOARD_XOSC_BASE, XOSC_CTRL) = XOSC_ENABLE | RANGE_1_15_MHZ;
    while ((REGISTER(BOARD_XOSC_BASE, XOSC_STATUS) >> 31) == 0u) {
    }
}

static void pll_on(void) {
    out_of_reset(1u << BOARD_RESET_PLL_SYS);
    REGISTER(BOARD_PLL_SYS_BASE, PLL_CS) = 1; /* reference divided by one */
    REGISTER(BOARD_PLL_SYS_BASE, PLL_FBDIV) = BOARD_PLL_FEEDBACK;
    REGISTER(BOARD_PLL_SYS_BASE, PLL_PWR) &= ~(uint32_t)(VCO_DOWN | PLL_DOWN);
    while ((REGISTER(BOARD_PLL_SYS_BASE, PLL_CS) >> 31) == 0u) {
    }
    REGISTER(BOARD_PLL_SYS_BASE, PLL_PRIM) = BOARD_PLL_POST_1 << 16 | BOARD_PLL_POST_2 << 12;
    REGISTER(BOARD_PLL_SYS_BASE, PLL_PWR) &= ~(uint32_t)POST_DIVIDER_DOWN;
}

static void clocks_on(void) {
    REGISTER(BOARD_CLOCKS_BASE, REF_CTRL) = REF_FROM_XOSC;
    while (REGISTER(BOARD_CLOCKS_BASE, REF_SELECTED) != 1u << REF_FROM_XOSC) {
    }
    REGISTER(BOARD_CLOCKS_BASE, SYS_CTRL) = 0; /* from the reference while the PLL changes, which is AUX 0 */
    while (REGISTER(BOARD_CLOCKS_BASE, SYS_SELECTED) != 1u) {
    }
    pll_on();
    REGISTER(BOARD_CLOCKS_BASE, SYS_CTRL) = SYS_FROM_AUX;
    while (REGISTER(BOARD_CLOCKS_BASE, SYS_SELECTED) != 1u << SYS_FROM_AUX) {
    }
    REGISTER(BOARD_CLOCKS_BASE, PERI_CTRL) = PERI_ON; /* the system's clock */
}

static void uart_pin(uint32_t number, uint32_t pulls) {
    REGISTER(BOARD_PADS_BASE, 4u + 4u * number) =
        INPUT_ON | DRIVE_4_MA | SCHMITT | pulls; /* ends isolation on RP2350 */
    REGISTER(BOARD_IO_BANK0_BASE, 8u * number + 4u) = FUNCTION_UART;
}

void hardware_init(void) {
    crystal_on();
    clocks_on();
    out_of_reset(1u << BOARD_RESET_IO_BANK0 | 1u << BOARD_RESET_PADS_BANK0 | 1u << BOARD_RESET_UART |
                 1u << BOARD_RESET_TIMER);
    REGISTER(BOARD_TICK_BASE, 0u) = BOARD_TICK_CYCLES; /* reference cycles a microsecond */
#ifdef BOARD_TICK_ENABLE_BASE
    REGISTER(BOARD_TICK_ENABLE_BASE, 0u) = 1;
#endif
    uart_pin(BOARD_UART_TX_PIN, 0);
    uart_pin(BOARD_UART_RX_PIN, PULL_UP);
}
