#include "util/digits.h"

#include <string.h>

/* Two at a time: half of the divisions. */
static const char PAIRS[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

char *digits_before(char *end, uint64_t value)
{
    while (value >= 10) {
        end -= 2;
        memcpy(end, PAIRS + 2 * (value % 100), 2);
        value /= 100;
        if (value == 0) {
            return end;
        }
    }
    *--end = (char)('0' + value);
    return end;
}
