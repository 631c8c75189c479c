#include "cmd/users.h"

#include "acl/permissions.h"
#include "cmd/cmd_priv.h"
#include "engine/value_hold.h"

static bool acl_check_may_hear_leader(const struct permissions *t, struct span channel);
static bool acl_check_may_wait(const struct acl_user *user,
                               const struct command *command, struct span name);

void users_init(struct users *u)
{
    static const struct throttle_limits FAILURES = { LOGIN_FAILURES_BURST,
                                                     LOGIN_FAILURES_PER_SECOND,
                                                     LOGIN_ADDRESSES_MAX };

    u->acl = acl_new(&COMMAND_CATALOG);
    u->denials = denials_new();
    u->throttle = throttle_new(&FAILURES);
    u->force = (size_t)(command_find(SPAN("forceunlock")) - COMMANDS);
}

void users_fini(struct users *u)
{
    acl_free(u->acl);
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

bool client_needs_auth(const struct cmd *c, const struct client *client)
{
    return !client->authenticated && !acl_is_open(c->users.acl);
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
    const struct command *command = client_waiting(client, call);

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

/* Checks of the ACL: commands, and the names and channels in their arguments. The
 * error texts are Redis's. */

/* As in Redis, the keys of a script are to be read and written: its reply may tell what
 * is there. */
static unsigned access_of(const struct command *command)
{
    return command->keys == KEYS_SCRIPT           ? PERM_BOTH
           : (command->flags & CMD_READONLY) != 0 ? PERM_READ
                                                  : PERM_WRITE;
}

static enum acl_verdict check_names(const struct permissions *t,
                                    const struct command *command,
                                    const struct span *argv, size_t argc,
                                    struct span *ret_object)
{
    unsigned access = access_of(command);
    size_t first, count;

    /* The command itself refuses arguments that it cannot parse. */
    if (command->keys == KEYS_NONE ||
        !command_key_range(command, argv, argc, &first, &count)) {
        return ACL_ALLOWED;
    }
    for (size_t i = first; i < first + count; i++) {
        if (!permissions_may_name(t, argv[i], access)) {
            *ret_object = argv[i];
            return ACL_NO_NAME;
        }
    }
    return ACL_ALLOWED;
}

/* Whether the user may read the name whose leader that channel tells of; true: the
 * channel tells of none. */
static bool acl_check_may_hear_leader(const struct permissions *t, struct span channel)
{
    struct span name = leader_channel_name(channel);

    return name.len == 0 || permissions_may_name(t, name, PERM_READ);
}

static enum acl_verdict check_channels(const struct permissions *t,
                                       const struct command *command,
                                       const struct span *argv, size_t argc,
                                       struct span *ret_object)
{
    bool patterns = (command->flags & CMD_PATTERNS) != 0;

    if (!patterns && (command->flags & CMD_CHANNELS) == 0) {
        return ACL_ALLOWED;
    }
    for (size_t i = 1; i < argc; i++) {
        /* Of names that match a pattern, each message is checked. */
        if (!patterns && !acl_check_may_hear_leader(t, argv[i])) {
            *ret_object = leader_channel_name(argv[i]);
            return ACL_NO_NAME;
        }
        if (!(patterns ? permissions_may_channels : permissions_may_channel)(t,
                                                                             argv[i])) {
            *ret_object = argv[i];
            return ACL_NO_CHANNEL;
        }
    }
    return ACL_ALLOWED;
}

enum acl_verdict acl_check_command(const struct acl_user *user,
                                   const struct command *command,
                                   const struct span *argv, size_t argc,
                                   struct span *ret_object)
{
    const struct permissions *t = &user->terms;
    enum acl_verdict verdict;

    if (permissions_may_anything(t)) {
        return ACL_ALLOWED;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 &&
        !permissions_may_run(t, (size_t)(command - COMMANDS))) {
        *ret_object = span_str(command->name);
        return ACL_NO_COMMAND;
    }
    verdict = check_names(t, command, argv, argc, ret_object);
    return verdict != ACL_ALLOWED ? verdict
                                  : check_channels(t, command, argv, argc, ret_object);
}

void acl_check_denied(struct command_ctx *ctx, enum denial_reason reason,
                      struct span object, struct span user)
{
    struct buf line = { 0 };
    struct denial d = {
        .reason = reason,
        .context = multi_is_open(ctx->client->multi) ? "multi" : "toplevel",
        .object = object,
        .user = user,
        .at_ms = ctx->cmd->env.now_ms(ctx->cmd->env.ctx),
    };

    client_write_line(ctx->cmd, ctx->conn, &line);
    d.client = span_of(buf_ptr(&line), buf_len(&line) - 1);
    denials_add(ctx->cmd->users.denials, &d);
    buf_reset(&line);
}

static const enum denial_reason REASONS[] = {
    [ACL_NO_COMMAND] = DENIAL_COMMAND,
    [ACL_NO_NAME] = DENIAL_NAME,
    [ACL_NO_CHANNEL] = DENIAL_CHANNEL,
};

static enum acl_verdict check_access(struct command_ctx *ctx)
{
    struct span object = SPAN_NONE;
    const struct acl_user *user = ctx->client->user;
    enum acl_verdict verdict =
        acl_check_command(user, ctx->command, ctx->argv, ctx->argc, &object);

    if (verdict != ACL_ALLOWED) {
        acl_check_denied(ctx, REASONS[verdict], object,
                         span_of(user->name, user->name_len));
    }
    return verdict;
}

bool acl_check_admits(struct command_ctx *ctx)
{
    switch (check_access(ctx)) {
    case ACL_NO_COMMAND:
        ctx_error(ctx, LATCHD_ERR_NOPERM,
                  "this user has no permissions to run the '%s' command",
                  ctx->command->name);
        return false;
    case ACL_NO_NAME:
        ctx_error(ctx, LATCHD_ERR_NOPERM,
                  "this user has no permissions to access one of the keys used as "
                  "arguments");
        return false;
    case ACL_NO_CHANNEL:
        ctx_error(ctx, LATCHD_ERR_NOPERM,
                  "this user has no permissions to access one of the channels used "
                  "as arguments");
        return false;
    case ACL_ALLOWED:
    default:
        return true;
    }
}

bool acl_check_still_admits(struct command_ctx *ctx)
{
    static const char *const WHY[] = {
        [ACL_NO_COMMAND] = "no permission to execute the command or subcommand",
        [ACL_NO_NAME] = "no permission to touch the specified keys",
        [ACL_NO_CHANNEL] =
            "no permission to access one of the channels used as arguments to the "
            "command",
    };
    enum acl_verdict verdict = check_access(ctx);

    if (verdict != ACL_ALLOWED) {
        ctx_error(ctx, LATCHD_ERR_NOPERM,
                  "ACLs rules changed between the moment the transaction was "
                  "accumulated and the EXEC call. This command is no longer allowed "
                  "for the following reason: %s",
                  WHY[verdict]);
    }
    return verdict == ACL_ALLOWED;
}

/* The same for a command that waits for a name. */
static bool acl_check_may_wait(const struct acl_user *user,
                               const struct command *command, struct span name)
{
    const struct permissions *t = &user->terms;

    return permissions_may_anything(t) ||
           (permissions_may_run(t, (size_t)(command - COMMANDS)) &&
            permissions_may_name(t, name, access_of(command)));
}

/* Whether the user may release and renew the holds of other users. Everybody with the
 * right to FORCEUNLOCK may. */
static bool client_overrides(const struct cmd *c, const struct client *client)
{
    return permissions_may_run(&client->user->terms, c->users.force);
}

bool ctx_overrides(const struct command_ctx *ctx)
{
    return client_overrides(ctx->cmd, ctx->client);
}

enum sight sight_of(const struct cmd *c, const struct client *client, struct span name,
                    uint32_t of_user)
{
    bool is_own = of_user != 0 && of_user == client->user->id;

    if (!is_own && !permissions_may_name(&client->user->terms, name, PERM_READ)) {
        return SIGHT_NOTHING;
    }
    return client_overrides(c, client) ? SIGHT_ALL : SIGHT_HOLDER;
}

struct user_search {
    uint32_t id;
    const struct acl_user *found;
};

static void look_at_user(void *ctx, struct acl_user *user)
{
    struct user_search *s = ctx;

    s->found = user->id == s->id ? user : s->found;
}

bool sight_user_may_read(const struct cmd *c, uint32_t user, struct span name)
{
    struct user_search s = { .id = user };

    acl_each(c->users.acl, look_at_user, &s);
    return s.found != NULL && permissions_may_name(&s.found->terms, name, PERM_READ);
}

uint64_t sight_token(enum sight sight, struct span owner, uint64_t token)
{
    struct span origin, value;
    bool is_of_library = value_field_split(owner, &origin, &value);

    return sight == SIGHT_ALL || (sight == SIGHT_HOLDER && !is_of_library) ? token : 0;
}
