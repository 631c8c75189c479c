#include "util/hash.h"

#include "util/alloc.h"

#include <endian.h>
#include <openssl/sha.h>
#include <string.h>

/* The one piece of global state beside the log level: set once, then constant. */
static uint64_t key0 = UINT64_C(0x0706050403020100);
static uint64_t key1 = UINT64_C(0x0f0e0d0c0b0a0908);

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

/* Loads up to seven bytes. */
static uint64_t load_rest(const uint8_t *p, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++) {
        word |= (uint64_t)p[i] << (8 * i);
    }
    return word;
}

static uint64_t load_word(const uint8_t *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

void hash_seed(const uint8_t key[16])
{
    key0 = load_word(key);
    key1 = load_word(key + 8);
}

uint64_t hash_bytes(const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    size_t rest = len & 7;
    uint64_t word;
    struct sip s = {
        key0 ^ UINT64_C(0x736f6d6570736575),
        key1 ^ UINT64_C(0x646f72616e646f6d),
        key0 ^ UINT64_C(0x6c7967656e657261),
        key1 ^ UINT64_C(0x7465646279746573),
    };

    for (const uint8_t *end = p + (len - rest); p != end; p += 8) {
        word = load_word(p);
        s.v3 ^= word;
        sip_round(&s);
        s.v0 ^= word;
    }
    word = ((uint64_t)len << 56) | load_rest(p, rest);
    s.v3 ^= word;
    sip_round(&s);
    s.v0 ^= word;
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void sha1_hex(struct span data, char ret[SHA1_HEX_LEN + 1])
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char digest[SHA_DIGEST_LENGTH];

    if (SHA1((const unsigned char *)data.ptr, data.len, digest) == NULL) {
        alloc_failed(); /* nothing else can go wrong */
    }
    for (size_t i = 0; i < SHA1_HEX_LEN; i++) {
        ret[i] = DIGITS[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf];
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
