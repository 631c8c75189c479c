/* Configuration files: all of it is understood, or there is a reason; and what is
 * printed says the same when it is read. */
#include "fuzz.h"

#include "daemon/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

static bool read_text(struct config *c, struct span text)
{
    char err[CONFIG_ERROR_MAX] = "";
    bool ok;

    config_init(c);
    ok = config_parse(c, "f", text, err, sizeof(err));
    if (!ok && err[0] == '\0') {
        fail("a mistake without a reason");
    }
    return ok;
}

/* Passwords are not printed. */
static void check_same(const struct config *a, const struct config *b)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if ((key->flags & (KEY_SECRET | KEY_URLS)) == 0 && !config_same(a, b, key)) {
            (void)fprintf(stderr, "%s: ", key->name);
            fail("what is printed is read as something else");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = { 0 };
    struct config c, other;

    if (read_text(&c, span_of((const char *)data, size))) {
        config_print(&c, &once);
        if (!read_text(&other, buf_span(&once))) {
            fail("what is printed cannot be read");
        }
        check_same(&c, &other);
        config_fini(&other);
    }
    config_fini(&c);
    buf_reset(&once);
    return 0;
}
