/* response: what all answers of the web server have in common. */
#ifndef LATCHD_HTTP_RESPONSE_H
#define LATCHD_HTTP_RESPONSE_H

#include "util/buf.h"

#include <microhttpd.h>
#include <stddef.h>

void response_add_header(struct MHD_Response *r, const char *name, const char *value);
/* Adds what every answer says: nothing of this is for other sites, for caches, or to be
 * guessed at. */
struct MHD_Response *response_with_headers(struct MHD_Response *r, const char *type);
struct MHD_Response *response_make(const char *type, const char *text, size_t len,
                                   enum MHD_ResponseMemoryMode mode);
/* `body` gives its memory away. */
struct MHD_Response *response_from(const char *type, struct buf *body);
/* Sends a response that nobody else needs. */
enum MHD_Result response_send(struct MHD_Connection *c, unsigned code,
                              struct MHD_Response *r);

#endif
