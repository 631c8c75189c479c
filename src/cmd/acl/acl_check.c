/* Checks of the ACL: commands, and the names and channels in their arguments. The
 * error texts are Redis's. */
#include "cmd/acl/users.h"

#include "cmd/handlers.h"

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

bool acl_check_may_hear_leader(const struct permissions *t, struct span channel)
{
    struct span name = leader_channel_name(channel);

    return name.len == 0 || permissions_may_name(t, name, PERM_READ);
}

static enum acl_verdict check_channels(const struct permissions *t,
                                       const struct command *command,
                                       const struct span *argv, size_t argc,
                                       struct span *ret_object)
{
    bool patterns = command->run == cmd_psubscribe;

    if (!patterns && command->run != cmd_subscribe) {
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

bool acl_check_may_wait(const struct acl_user *user, const struct command *command,
                        struct span name)
{
    const struct permissions *t = &user->terms;

    return permissions_may_anything(t) ||
           (permissions_may_run(t, (size_t)(command - COMMANDS)) &&
            permissions_may_name(t, name, access_of(command)));
}

bool client_overrides(const struct cmd *c, const struct client *client)
{
    return permissions_may_run(&client->user->terms, c->users.force);
}

bool ctx_overrides(const struct command_ctx *ctx)
{
    return client_overrides(ctx->cmd, ctx->client);
}
