#include "http/response.h"

#include <stdint.h>
#include <stdlib.h>

void response_add_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (MHD_add_response_header(r, name, value) != MHD_YES) {
        abort(); /* no memory, or a mistake of ours */
    }
}

struct MHD_Response *response_with_headers(struct MHD_Response *r, const char *type)
{
    if (r == NULL) {
        abort();
    }
    response_add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    response_add_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    response_add_header(r, "X-Content-Type-Options", "nosniff");
    response_add_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    response_add_header(r, "Referrer-Policy", "no-referrer");
    return r;
}

struct MHD_Response *response_make(const char *type, const char *text, size_t len,
                                   enum MHD_ResponseMemoryMode mode)
{
    return response_with_headers(
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, mode), type);
}

struct MHD_Response *response_from(const char *type, struct buf *body)
{
    if (buf_len(body) == 0) {
        buf_reset(body);
        return response_make(type, "", 0, MHD_RESPMEM_PERSISTENT);
    }
    return response_make(type, buf_ptr(body), buf_len(body), MHD_RESPMEM_MUST_FREE);
}

enum MHD_Result response_send(struct MHD_Connection *c, unsigned code,
                              struct MHD_Response *r)
{
    enum MHD_Result ok = MHD_queue_response(c, code, r);

    MHD_destroy_response(r);
    return ok;
}
