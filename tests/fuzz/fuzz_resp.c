/* The request parser: never reads past its input, always goes on or stops, and says the
 * same however the input is cut. */
#include "fuzz.h"

#include "resp/parser.h"
#include "util/alloc.h"
#include "util/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BYTEWISE_MAX = 600, /* longer inputs are not fed byte by byte: speed */
    RANDOM_CUTS = 3,
};

static const struct resp_limits LIMITS[] = {
    { .args_max = 64, .bulk_max = 4096 },
    { .args_max = RESP_ARGS_MAX_UNAUTH, .bulk_max = 100, .unauth = true },
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* Notes a request down so that two runs can be compared. */
static void note(struct buf *notes, const struct resp_request *req)
{
    buf_printf(notes, "%zu:", req->argc);
    for (size_t i = 0; i < req->argc; i++) {
        buf_printf(notes, "%zu,", req->argv[i].len);
        buf_add_span(notes, req->argv[i]);
    }
}

/* Parses what is there in memory that ends with it. Returns the bytes used. */
static size_t feed(struct resp_parser *p, const struct resp_limits *limits,
                   struct span in, uint64_t *hint, struct buf *notes, bool *ret_broken)
{
    char *copy = xmalloc(in.len == 0 ? 1 : in.len);
    enum resp_status status = RESP_DONE;
    size_t at = 0;

    if (in.len > 0) {
        memcpy(copy, in.ptr, in.len);
    }
    while (status == RESP_DONE) {
        struct resp_request req = { 0 };
        size_t used = 0;

        status =
            resp_parse(p, limits, span_of(copy + at, in.len - at), hint, &used, &req);
        if (status == RESP_DONE) {
            if (used == 0 || used > in.len - at || *hint != 0) {
                fail("a request that takes no bytes, or too many");
            }
            if (req.argc > limits->args_max) {
                fail("more arguments than allowed");
            }
            note(notes, &req);
            at += used;
        }
    }
    if (status == RESP_BROKEN) {
        buf_printf(notes, "!%s", resp_parser_error(p));
        *ret_broken = true;
    }
    free(copy);
    return at;
}

/* Feeds the input in pieces of up to `step` bytes; `seed` varies them, 0: all alike. */
static void run(struct resp_parser *p, const struct resp_limits *limits, struct span in,
                size_t step, unsigned seed, struct buf *notes)
{
    bool broken = false;
    uint64_t hint = 0;
    size_t start = 0;
    size_t have = 0;

    while (have < in.len && !broken) {
        size_t piece = seed == 0 ? step : 1 + (size_t)rand_r(&seed) % step;

        have = in.len - have < piece ? in.len : have + piece;
        start += feed(p, limits, span_of(in.ptr + start, have - start), &hint, notes,
                      &broken);
    }
}

static void compare(struct resp_parser *p, const struct resp_limits *limits,
                    struct span in, size_t step, unsigned seed, const struct buf *whole)
{
    struct buf notes = { 0 };

    run(p, limits, in, step, seed, &notes);
    if (!span_eq(buf_span(&notes), buf_span(whole))) {
        fail("the same bytes in other pieces are other requests");
    }
    buf_reset(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct resp_parser *parser;
    struct span in = span_of((const char *)data, size);

    if (parser == NULL) {
        parser = resp_parser_new();
    }
    for (size_t i = 0; i < sizeof(LIMITS) / sizeof(LIMITS[0]); i++) {
        struct buf whole = { 0 };

        run(parser, &LIMITS[i], in, size, 0, &whole);
        if (size <= BYTEWISE_MAX) {
            compare(parser, &LIMITS[i], in, 1, 0, &whole);
        }
        for (unsigned cut = 1; cut <= RANDOM_CUTS; cut++) {
            compare(parser, &LIMITS[i], in, 1 + size / cut, cut + (unsigned)size,
                    &whole);
        }
        buf_reset(&whole);
    }
    return 0;
}
