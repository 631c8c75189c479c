#include "backend/cluster/slot.h"

/* CRC16/XMODEM, four bits at a time. */
static const uint16_t CRC_OF_NIBBLE[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

static uint16_t compute_crc16(struct span s)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < s.len; i++) {
        unsigned byte = (unsigned char)s.ptr[i];

        crc = (uint16_t)(crc << 4 ^ CRC_OF_NIBBLE[(crc >> 12 ^ byte >> 4) & 15]);
        crc = (uint16_t)(crc << 4 ^ CRC_OF_NIBBLE[(crc >> 12 ^ byte) & 15]);
    }
    return crc;
}

uint32_t slot_of(struct span key)
{
    const char *open = key.len == 0 ? NULL : memchr(key.ptr, '{', key.len);
    const char *close = NULL;

    if (open != NULL) {
        open++;
        close = memchr(open, '}', (size_t)(key.ptr + key.len - open));
    }
    if (close != NULL && close != open) {
        key = span_of(open, (size_t)(close - open));
    }
    return compute_crc16(key) % SLOT_COUNT;
}
