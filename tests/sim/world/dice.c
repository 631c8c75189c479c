#include "sim/world/dice.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

void dice_init(struct dice *d, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++) {
        d->state[i] = splitmix(&seed);
    }
}

uint64_t dice_u64(struct dice *d)
{
    uint64_t *s = d->state;
    uint64_t ret = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return ret;
}

uint64_t dice_below(struct dice *d, uint64_t n)
{
    /* The bias of % is far below anything a schedule could notice. */
    return dice_u64(d) % n;
}

uint64_t dice_between(struct dice *d, uint64_t lo, uint64_t hi)
{
    return lo + dice_below(d, hi - lo + 1);
}

bool dice_chance(struct dice *d, unsigned permille)
{
    return dice_below(d, 1000) < permille;
}

size_t dice_weighted(struct dice *d, const unsigned *weights, size_t count)
{
    uint64_t sum = 0;
    uint64_t roll;

    for (size_t i = 0; i < count; i++) {
        sum += weights[i];
    }
    roll = dice_below(d, sum);
    for (size_t i = 0; i < count; i++) {
        if (roll < weights[i]) {
            return i;
        }
        roll -= weights[i];
    }
    return count - 1;
}
