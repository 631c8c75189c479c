/* dice: seeded random numbers, the same on every machine.
 *
 * splitmix64 spreads the seed, xoshiro256** rolls. Both algorithms: Blackman and Vigna,
 * public domain; written afresh. */
#ifndef LATCHD_SIM_DICE_H
#define LATCHD_SIM_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
    uint64_t state[4];
};

void dice_init(struct dice *d, uint64_t seed);
uint64_t dice_u64(struct dice *d);

/* 0 .. n-1; n > 0. */
uint64_t dice_below(struct dice *d, uint64_t n);
/* lo .. hi, both included. */
uint64_t dice_between(struct dice *d, uint64_t lo, uint64_t hi);
/* True in `permille` of 1000 rolls. */
bool dice_chance(struct dice *d, unsigned permille);
/* An index, each as likely as its weight; the weights must not all be 0. */
size_t dice_weighted(struct dice *d, const unsigned *weights, size_t count);

#endif
