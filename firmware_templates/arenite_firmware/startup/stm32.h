/* SPDX-License-Identifier: Apache-2.0 */
/* What the STM32 families share: register access, GPIO, the clock of the serial port. The GPIO block is the same in all of
 * them (for instance ST RM0090, chapter 8). A pin's number is 16 times its port, from A = 0, plus its number there. */
#ifndef ARENITE_STM32_H
#define ARENITE_STM32_H

#include "board.h"

#define STM32_REGISTER(base, offset) (*(volatile uint32_t *)((base) + (offset)))

static inline void stm32_wait(volatile const uint32_t *address, uint32_t mask, uint32_t value) {
    while ((*address & mask) != value) {
    }
}

static inline void stm32_change(uintptr_t base, uint32_t offset, uint32_t mask, uint32_t value) {
    STM32_REGISTER(base, offset) = (STM32_REGISTER(base, offset) & ~mask) | value;
}

#ifdef BOARD_HSE_BYPASS
enum { STM32_HSE_ON = 1 << 16, STM32_HSE_READY = 1 << 17, STM32_HSE_BYPASS = 1 << 18 };

/* Starts the external oscillator; RCC_CR is the same in STM32F4, F7 and H7. Bypass is set while the oscillator is off. */
static inline void stm32_hse_on(volatile uint32_t *rcc_cr) {
    *rcc_cr |= BOARD_HSE_BYPASS != 0u ? STM32_HSE_BYPASS : 0u;
    *rcc_cr |= STM32_HSE_ON;
}
#endif

/* Gives a pin to a peripheral, at high speed. `enable` is the RCC register that clocks GPIO ports, one bit each. */
static inline void stm32_pin(uintptr_t gpio, volatile uint32_t *enable, uint32_t number, uint32_t function) {
    const uint32_t port = number / 16u;
    const uint32_t pin = number % 16u;
    const uintptr_t base = gpio + 0x400u * port;
    *enable |= 1u << port;
    (void)*enable; /* the clock needs two cycles */
    stm32_change(base, 0x08u, 3u << (2u * pin), 2u << (2u * pin));
    stm32_change(base, 0x20u + 4u * (pin / 8u), 0xFu << (4u * (pin % 8u)), function << (4u * (pin % 8u)));
    stm32_change(base, 0x00u, 3u << (2u * pin), 2u << (2u * pin));
}

/* Makes a pin an output; it is low. */
static inline void stm32_output(uintptr_t gpio, volatile uint32_t *enable, uint32_t number) {
    *enable |= 1u << number / 16u;
    (void)*enable;
    stm32_change(gpio + 0x400u * (number / 16u), 0x00u, 3u << (2u * (number % 16u)),
                 1u << (2u * (number % 16u)));
}

/* Clock and pins of the serial port, and the pin for a meter where the board has one. */
static inline void stm32_pins_on(uintptr_t rcc, uintptr_t gpio, volatile uint32_t *enable) {
#ifdef BOARD_MARKER_PIN
    stm32_output(gpio, enable, BOARD_MARKER_PIN);
#endif
    STM32_REGISTER(rcc, BOARD_UART_ENABLE) |= 1u << BOARD_UART_ENABLE_BIT;
    stm32_pin(gpio, enable, BOARD_UART_TX_PIN, BOARD_UART_FUNCTION);
    stm32_pin(gpio, enable, BOARD_UART_RX_PIN, BOARD_UART_FUNCTION);
}

#endif
