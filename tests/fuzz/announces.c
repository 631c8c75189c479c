#include "announces.h"

#include <ctype.h>

enum { ELEMENTS_DIGITS = 5 };

bool announces_too_many(const char *text, size_t len)
{
    size_t digits = ELEMENTS_DIGITS + 1;

    for (size_t i = 0; i < len; i++) {
        digits = text[i] == '*' ? 0 : digits;
        if (digits <= ELEMENTS_DIGITS && text[i] != '*') {
            digits = isdigit((unsigned char)text[i]) ? digits + 1 : ELEMENTS_DIGITS + 2;
            if (digits == ELEMENTS_DIGITS + 1) {
                return true;
            }
        }
    }
    return false;
}
