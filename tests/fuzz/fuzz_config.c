/* Configuration files: all of it is understood, or there is a reason; what is printed
 * says the same when it is read; and so does a file that was rewritten, whatever was in
 * it.
 *
 * Input: a file. A line "---" may stand between it and another one, that of the two
 * which is rewritten; else it is itself. */
#include "fuzz.h"

#include "daemon/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BETWEEN[] = "\n---\n";
enum { LEN = sizeof(BETWEEN) - 1 };

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

static bool read_text(struct config *c, struct span text)
{
    struct buf mistakes = { 0 };
    bool ok;

    config_init(c);
    ok = config_parse(c, "f", text, &mistakes);
    if (ok != (buf_len(&mistakes) == 0)) {
        fail("a mistake without a reason, or a reason without a mistake");
    }
    buf_reset(&mistakes);
    return ok;
}

/* But for keys that have one of those flags. */
static void check_same(const struct config *a, const struct config *b, unsigned hidden)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &CONFIG_KEYS[i];

        if ((key->flags & hidden) == 0 && !config_same(a, b, key)) {
            (void)fprintf(stderr, "%s: ", key->name);
            fail("what was written is read as something else");
        }
    }
}

static void check_printed(const struct config *c)
{
    struct buf text = { 0 };
    struct config other;

    config_print(c, &text);
    if (!read_text(&other, buf_span(&text))) {
        fail("what is printed cannot be read");
    }
    check_same(c, &other, KEY_SECRET | KEY_URLS);
    config_fini(&other);
    buf_reset(&text);
}

/* Of a file that is wrong in nothing else. */
static void check_unknown(struct span mistakes)
{
    while (mistakes.len > 0) {
        struct span line = span_next(&mistakes, '\n');

        if (memmem(line.ptr, line.len, "unknown key", 11) == NULL &&
            memmem(line.ptr, line.len, " more", 5) == NULL) {
            fail("what was rewritten cannot be read");
        }
    }
}

static void check_rewritten(const struct config *c, struct span file)
{
    struct buf once = { 0 }, again = { 0 }, mistakes = { 0 };
    struct config other;

    config_rewrite_text(c, file, &once);
    config_init(&other);
    if (config_parse(&other, "f", buf_span(&once), &mistakes)) {
        check_same(c, &other, 0);
    }
    check_unknown(buf_span(&mistakes));
    buf_reset(&mistakes);
    config_rewrite_text(c, buf_span(&once), &again);
    if (!span_eq(buf_span(&once), buf_span(&again))) {
        fail("there is always something to rewrite");
    }
    config_fini(&other);
    buf_reset(&once);
    buf_reset(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size), file = text;
    const char *between = size == 0 ? NULL : memmem(data, size, BETWEEN, LEN);
    struct config c;

    if (between != NULL) {
        text.len = (size_t)(between - text.ptr) + 1;
        file = span_after(file, text.len + LEN - 1);
    }
    if (read_text(&c, text)) {
        check_printed(&c);
        check_rewritten(&c, file);
    }
    config_fini(&c);
    return 0;
}
