#include "util/sha1.h"

#include <stdint.h>

enum { BLOCK = 64, ROUNDS = 80, WORDS = 5 };

static uint32_t rotate_left(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

/* The function and the constant of a round. */
static uint32_t mix_words(int round, const uint32_t *s)
{
    uint32_t b = s[1], c = s[2], d = s[3];

    if (round < 20) {
        return ((b & c) | (~b & d)) + 0x5a827999;
    }
    if (round < 40) {
        return (b ^ c ^ d) + 0x6ed9eba1;
    }
    if (round < 60) {
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    }
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[WORDS], const unsigned char *block)
{
    uint32_t w[ROUNDS], s[WORDS];

    for (size_t i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < ROUNDS; i++) {
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next = rotate_left(s[0], 5) + mix_words(i, s) + s[4] + w[i];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate_left(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < WORDS; i++) {
        state[i] += s[i];
    }
}

void sha1_hex(struct span data, char ret[SHA1_HEX_LEN + 1])
{
    static const char DIGITS[] = "0123456789abcdef";
    uint32_t state[WORDS] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                              0xc3d2e1f0 };
    unsigned char last[2 * BLOCK] = { 0 };
    uint64_t bits = (uint64_t)data.len * 8;
    size_t rest = data.len % BLOCK, size = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

    for (size_t at = 0; at + BLOCK <= data.len; at += BLOCK) {
        add_block(state, (const unsigned char *)data.ptr + at);
    }
    if (rest > 0) {
        memcpy(last, data.ptr + data.len - rest, rest);
    }
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++) {
        last[size - 1 - i] = (unsigned char)(bits >> (8 * i));
    }
    for (size_t at = 0; at < size; at += BLOCK) {
        add_block(state, last + at);
    }
    for (size_t i = 0; i < SHA1_HEX_LEN; i++) {
        ret[i] = DIGITS[state[i / 8] >> (28 - 4 * (i % 8)) & 0xf];
    }
    ret[SHA1_HEX_LEN] = '\0';
}

bool sha1_hex_copy(struct span hex, char ret[SHA1_HEX_LEN + 1])
{
    if (hex.len != SHA1_HEX_LEN) {
        return false;
    }
    for (size_t i = 0; i < SHA1_HEX_LEN; i++) {
        char c = hex.ptr[i];

        ret[i] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    }
    ret[SHA1_HEX_LEN] = '\0';
    return true;
}
