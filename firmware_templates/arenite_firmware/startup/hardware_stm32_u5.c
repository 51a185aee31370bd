/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and pins of STM32U5 (ST RM0456, chapters 7, 8, 10 and 11), security off: voltage range 1 with its booster, PLL1
 * from the internal 4 MHz oscillator that runs after reset, the instruction cache, the serial port. */
#include "board.h"
#include "drivers.h"
#include "stm32.h"

#define RCC 0x46020C00u
#define FLASH 0x40022000u
#define PWR 0x46020800u
#define GPIO 0x42020000u
#define ICACHE 0x40030400u

enum { CR = 0x00, CFGR1 = 0x1C, PLL1CFGR = 0x28, PLL1DIVR = 0x34, AHB2ENR1 = 0x8C, AHB3ENR = 0x94 };
enum { PWR_VOSR = 0x0C, FLASH_ACR = 0x00, ICACHE_CR = 0x00, ICACHE_SR = 0x04 };
enum { PLL1_ON = 1 << 24, PLL1_READY = 1 << 25, PWR_CLOCK = 1 << 2 };
enum { RANGE_1 = 3 << 16, BOOST_ON = 1 << 18, BOOST_READY = 1 << 14, RANGE_READY = 1 << 15 };
enum { PLL_FROM_MSIS = 1, PLL1_R_ON = 1 << 18, SW_PLL = 3, SWS = 3 << 2, SWS_PLL = 3 << 2 };
enum { CACHE_BUSY = 1, CACHE_ON = 1 };

static volatile uint32_t *rcc(uint32_t offset) { return &STM32_REGISTER(RCC, offset); }
static volatile uint32_t *range(void) { return &STM32_REGISTER(PWR, PWR_VOSR); }

static void clock_on(void) {
    *rcc(AHB3ENR) |= PWR_CLOCK;
    (void)*rcc(AHB3ENR);
    *range() = RANGE_1;
    stm32_wait(range(), RANGE_READY, RANGE_READY);
    /* The booster takes its clock from the PLL's input, so that this is chosen first. */
    *rcc(PLL1CFGR) = (BOARD_PLL_M - 1u) << 8 | PLL_FROM_MSIS;
    *rcc(PLL1DIVR) = (BOARD_PLL_R - 1u) << 24 | 1u << 16 | 1u << 9 | (BOARD_PLL_N - 1u);
    *range() |= BOOST_ON;
    stm32_wait(range(), BOOST_READY, BOOST_READY);
    *rcc(CR) |= PLL1_ON;
    stm32_wait(rcc(CR), PLL1_READY, PLL1_READY);
    *rcc(PLL1CFGR) |= PLL1_R_ON;
    stm32_change(FLASH, FLASH_ACR, 0xFu, BOARD_FLASH_ACCESS);
    stm32_wait(&STM32_REGISTER(FLASH, FLASH_ACR), 0xFu, BOARD_FLASH_ACCESS & 0xFu);
    stm32_change(RCC, CFGR1, 3u, SW_PLL);
    stm32_wait(rcc(CFGR1), SWS, SWS_PLL);
}

void hardware_init(void) {
    clock_on();
    stm32_wait(&STM32_REGISTER(ICACHE, ICACHE_SR), CACHE_BUSY, 0);
    STM32_REGISTER(ICACHE, ICACHE_CR) |= CACHE_ON;
    stm32_pins_on(RCC, GPIO, rcc(AHB2ENR1));
}
