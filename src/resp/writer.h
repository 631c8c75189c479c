/* writer: RESP2 and RESP3 replies into a buf.
 *
 * `proto` is 2 or 3. What RESP2 lacks degrades as Redis does it: a map is a flat array,
 * null is `$-1`, a push is an array, a double or boolean a bulk or integer. */
#ifndef LATCHD_RESP_WRITER_H
#define LATCHD_RESP_WRITER_H

#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

void resp_simple(struct buf *out, const char *text);
/* Control bytes in `text` become spaces: an error is always one line. */
void resp_error(struct buf *out, const char *word, struct span text);
void resp_errorf(struct buf *out, const char *word, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void resp_int(struct buf *out, int64_t value);
void resp_bulk(struct buf *out, struct span s);
void resp_bulk_str(struct buf *out, const char *text);
void resp_verbatim(struct buf *out, int proto, struct span text); /* txt in RESP3 */
void resp_null(struct buf *out, int proto);
void resp_null_array(struct buf *out, int proto);
void resp_double(struct buf *out, int proto, double value);
void resp_array(struct buf *out, size_t count);
void resp_map(struct buf *out, int proto, size_t pairs);

/* A map that counts its pairs: resp_pairs(), then a key and a value each, and
 * resp_pairs_end(). */
struct resp_pairs {
    struct buf *out;
    int proto;
    size_t start; /* where its first key is in `out` */
    size_t count;
};

struct resp_pairs resp_pairs(struct buf *out, int proto);
void resp_key(struct resp_pairs *m, const char *key);
void resp_key_int(struct resp_pairs *m, const char *key, int64_t value);
void resp_key_bulk(struct resp_pairs *m, const char *key, struct span value);
void resp_key_str(struct resp_pairs *m, const char *key, const char *value);
void resp_pairs_end(const struct resp_pairs *m);

void resp_set(struct buf *out, int proto, size_t count);
void resp_push(struct buf *out, int proto, size_t count);

#endif
