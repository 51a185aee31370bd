/* SPDX-License-Identifier: Apache-2.0 */
/* Pins of STM32U3 (ST RM0487), security off. The clock stays what it is after reset, the internal oscillator at 12 MHz: there
 * the flash needs no wait states and the supply no change of range. */
#include "board.h"
#include "drivers.h"
#include "stm32.h"

#define RCC 0x40030C00u
#define GPIO 0x42020000u

enum { AHB2ENR1 = 0x8C };

void hardware_init(void) { stm32_pins_on(RCC, GPIO, &STM32_REGISTER(RCC, AHB2ENR1)); }
