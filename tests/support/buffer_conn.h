/* buffer_conn: connections that are buffers, in place of those of net/. Who links this
 * has the array of them, and what net/ says of all. */
#ifndef LATCHD_TESTS_BUFFER_CONN_H
#define LATCHD_TESTS_BUFFER_CONN_H

#include "net/conn.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { BUFFER_CONN_OUT_MAX = 1024 * 1024 };

struct conn {
    uint64_t id; /* 0: none */
    bool closed; /* in this turn: its memory is still in use */
    bool suspended;
    bool awaited; /* later requests run */
    bool trusted, draining;
    bool again; /* conn_again() was called */
    bool more;  /* input is left behind what runs */
    void *data;
    uint64_t input, hint;
    struct buf in, out;
};

#endif
