/* Times and numbers of the command line. */
#include "latchctl/options_priv.h"
#include "latchctl/show.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool options_read_time(const char *option, const char *text, uint64_t min,
                       uint64_t *ret)
{
    char *end;
    double seconds;

    if (!parse_msec(span_str(text), ret) || text[strspn(text, "0123456789")] == '\0') {
        seconds = strtod(text, &end);
        if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0' ||
            seconds > 1e9) {
            return options_wrong(
                option, "a time is such as 0.5, 30 (seconds), 500ms, 5m or 1h");
        }
        *ret = (uint64_t)(seconds * 1000 + 0.5);
    }
    if (*ret < min) {
        return options_wrong(option, "that is too short");
    }
    return true;
}

bool options_read_code(const char *option, const char *text, int *ret)
{
    uint64_t code;

    if (!parse_u64(span_str(text), 255, &code)) {
        return options_wrong(option, "an exit code is a number from 0 to 255");
    }
    *ret = (int)code;
    return true;
}

bool options_check_number(const char *option, const char *text, uint64_t min,
                          uint64_t max)
{
    char why[64];
    uint64_t number;

    if (!parse_u64(span_str(text), max, &number) || number < min) {
        (void)snprintf(why, sizeof(why), "a number from %" PRIu64 " to %" PRIu64, min,
                       max);
        return options_wrong(option, why);
    }
    return true;
}
