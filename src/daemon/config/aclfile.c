/* aclfile, the file of users: read at the start, by ACL LOAD and on SIGHUP, written by
 * ACL SAVE. */
#include "daemon/files.h"
#include "daemon/server.h"
#include "daemon/server_state.h"

#include "acl/acl.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>

enum { ACL_FILE_MODE = 0600 };

const char *acl_file(void *ctx)
{
    const struct server *s = ctx;

    return s->config.aclfile;
}

static bool read_file(const char *path, struct buf *out, struct buf *reterr)
{
    int err = file_read(path, ACL_FILE_MAX, out, NULL);

    if (err != 0) {
        buf_printf(reterr, "Error loading ACLs, opening file '%s': %s", path,
                   strerror(err));
    }
    return err == 0;
}

bool acl_file_read(void *ctx, struct buf *out, struct buf *reterr)
{
    return read_file(acl_file(ctx), out, reterr);
}

bool acl_file_write(void *ctx, struct span text)
{
    const char *path = acl_file(ctx);
    int err = file_replace(path, text, ACL_FILE_MODE);

    if (err != 0) {
        log_error("acl", "cannot write %s: %s", path, strerror(err));
    }
    return err == 0;
}

bool acl_file_load(struct server *s)
{
    struct buf text = { 0 }, reason = { 0 };
    const char *path = acl_file(s);
    bool ok = path[0] == '\0' ||
              (read_file(path, &text, &reason) &&
               cmd_load_users(s->cmd, path, buf_span(&text), NULL, &reason));

    if (!ok) {
        log_error("acl", "%.*s", (int)buf_len(&reason), buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}

bool acl_file_check(const char *path, char *reterr, size_t room)
{
    struct buf text = { 0 }, reason = { 0 };
    bool ok = path[0] == '\0' || (read_file(path, &text, &reason) &&
                                  cmd_check_users(path, buf_span(&text), &reason));

    if (!ok) {
        (void)snprintf(reterr, room, "aclfile: %.*s", (int)buf_len(&reason),
                       buf_ptr(&reason));
    }
    buf_reset(&text);
    buf_reset(&reason);
    return ok;
}
