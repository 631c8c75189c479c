/* tls without OpenSSL: every tls_new() fails, so that no session exists. */
#include "io/tls.h"

#include <stdio.h>
#include <stdlib.h>

bool tls_is_built(void)
{
    return false;
}

struct tls *tls_new(const struct tls_files *files, char *reterr, size_t room)
{
    (void)snprintf(reterr, room, "it was built without TLS");
    return NULL;
}

struct tls *tls_new_client(const struct tls_files *files, char *reterr, size_t room)
{
    return tls_new(files, reterr, room);
}

struct tls *tls_ref(struct tls *tls)
{
    return tls;
}

void tls_unref(struct tls *tls)
{
}

int64_t tls_valid_s(const struct tls *tls)
{
    return 0;
}

struct tls_session *tls_session_new(struct tls *tls, const char *host)
{
    abort(); /* unreachable: no struct tls exists */
}

void tls_session_free(struct tls_session *t)
{
}

enum tls_state tls_session_input(struct tls_session *t, struct span in, char *text,
                                 size_t room, size_t *ret_len, struct buf *out)
{
    return TLS_BROKEN;
}

bool tls_session_output(struct tls_session *t, struct span text, struct buf *out)
{
    return false;
}

void tls_session_close(struct tls_session *t, struct buf *out)
{
}

void tls_session_error(const struct tls_session *t, char *ret, size_t room)
{
    ret[0] = '\0';
}

const char *tls_session_version(const struct tls_session *t)
{
    return "";
}

bool tls_session_peer(const struct tls_session *t, char *ret, size_t room)
{
    return false;
}
