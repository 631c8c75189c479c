#include "cmd/acl/users.h"

#include "cmd/cmd_priv.h"
#include "cmd/pipeline.h"
#include "util/alloc.h"

#include <stdlib.h>

/* --- the catalog of commands ------------------------------------------ */

static const struct acl_catalog *catalog_new(void)
{
    struct acl_catalog *c = xcalloc(1, sizeof(*c));
    struct acl_command *rows = xcalloc(COMMAND_COUNT, sizeof(*rows));

    if (COMMAND_COUNT > ACL_COMMANDS_MAX) {
        abort(); /* the table is too large; a test finds this */
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        rows[i].name = COMMANDS[i].name;
        rows[i].categories = COMMANDS[i].acl;
        rows[i].open = (COMMANDS[i].flags & CMD_NO_AUTH) != 0;
    }
    c->commands = rows;
    c->command_count = COMMAND_COUNT;
    c->categories = ACL_CATEGORY_NAMES;
    c->category_count = ACL_CATEGORY_COUNT;
    return c;
}

static void catalog_free(const struct acl_catalog *c)
{
    free((void *)c->commands);
    free((void *)c);
}

void users_init(struct users *u)
{
    static const struct throttle_limits FAILURES = { LOGIN_FAILURES_BURST,
                                                     LOGIN_FAILURES_PER_SECOND,
                                                     LOGIN_ADDRESSES_MAX };

    u->acl = acl_new(catalog_new());
    u->denials = denials_new();
    u->throttle = throttle_new(&FAILURES);
    u->force = (size_t)(command_find(SPAN("forceunlock")) - COMMANDS);
}

void users_fini(struct users *u)
{
    const struct acl_catalog *catalog = acl_catalog(u->acl);

    acl_free(u->acl);
    catalog_free(catalog);
    denials_free(u->denials);
    throttle_free(u->throttle);
}

/* --- clients ---------------------------------------------------------- */

void client_set_user(struct client *client, struct acl_user *user)
{
    struct acl_user *old = client->user;

    client->user = user == NULL ? NULL : acl_ref(user);
    acl_unref(old);
}

void users_meet(struct cmd *c, struct conn *conn, struct client *client)
{
    char name[ACL_NAME_MAX + 1];
    struct acl_user *user;

    client->cert_checked = true;
    if (!c->limits.cert_users || !conn_tls_peer(conn, name, sizeof(name))) {
        return;
    }
    user = acl_find(c->users.acl, span_str(name));
    if (user != NULL && (user->terms.flags & PERM_ON) != 0) {
        client_set_user(client, user);
        client->authenticated = true;
    }
}

struct listening {
    const struct acl_user *user;
    bool refused;
};

static void look_at_channel(void *ctx, enum pubsub_kind kind, struct span name)
{
    struct listening *l = ctx;
    const struct permissions *t = &l->user->terms;

    bool may_hear = kind == PUBSUB_CHANNEL ? permissions_may_channel(t, name) &&
                                                 acl_check_may_hear_leader(t, name)
                                           : permissions_may_channels(t, name);

    l->refused = l->refused || !may_hear;
}

static bool has_to_go(const struct client *client)
{
    struct listening l = { .user = client->user };

    if (client->user->gone) {
        return true;
    }
    if (client_is_subscribed(client)) {
        pubsub_each_of(&client->sub, look_at_channel, &l);
    }
    return l.refused;
}

static bool refuses_wait(void *ctx, uint64_t call, struct span name)
{
    const struct client *client = ctx;
    const struct command *command = client->pipeline != NULL
                                        ? pipeline_command(client->pipeline, call)
                                    : client->call == call ? client_last(client)
                                                           : NULL;

    return command != NULL && !acl_check_may_wait(client->user, command, name);
}

struct change {
    struct cmd *cmd;
    struct command_ctx *ctx; /* what changed the users; or NULL */
};

static void meet_change(void *arg, struct conn *conn)
{
    const struct change *change = arg;
    struct command_ctx *ctx = change->ctx;
    struct client *client = conn_data(conn);

    if (client == NULL) {
        return;
    }
    if (!has_to_go(client)) {
        engine_refuse_waits(change->cmd->env.engine, client->id, refuses_wait, client);
        return;
    }
    conn_set_end(conn, END_USER);
    if (ctx != NULL && conn == ctx->conn) {
        ctx_close_after(ctx);
    } else {
        conn_close(conn);
    }
}

void users_changed(struct cmd *c, struct command_ctx *ctx)
{
    struct change change = { c, ctx };

    net_foreach(c->env.net, meet_change, &change);
}

/* --- for the daemon --------------------------------------------------- */

void cmd_password_changed(struct cmd *c)
{
    acl_set_password(c->users.acl, span_str(c->env.password(c->env.ctx)));
}

bool cmd_load_users(struct cmd *c, const char *name, struct span text,
                    struct command_ctx *ctx, struct buf *reterr)
{
    bool has_default = false;
    bool ok = acl_load(c->users.acl, name, text, span_str(c->env.password(c->env.ctx)),
                       &has_default, reterr);

    if (ok) {
        users_changed(c, ctx);
    }
    return ok;
}

bool cmd_check_users(const char *name, struct span text, struct buf *reterr)
{
    bool has_default;
    struct users u;
    bool ok;

    users_init(&u);
    ok = acl_load(u.acl, name, text, SPAN_NONE, &has_default, reterr);
    users_fini(&u);
    return ok;
}
