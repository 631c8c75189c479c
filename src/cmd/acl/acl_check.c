/* Who may run what: commands, the names and the channels that they are given. The
 * texts are Redis's. */
#include "cmd/acl/users.h"

#include "cmd/handlers.h"

static enum acl_verdict check_names(const struct permissions *t,
                                    const struct command *command,
                                    const struct span *argv, size_t argc,
                                    struct span *ret_object)
{
    unsigned access = (command->flags & CMD_READONLY) != 0 ? TERMS_READ : TERMS_WRITE;
    size_t first, count;

    /* What cannot be read is refused by the command itself. */
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

void acl_check_denied(struct command_ctx *call, enum denial_reason reason,
                      struct span object, struct span user)
{
    struct buf line = { 0 };
    struct denial d = {
        .reason = reason,
        .context = call->client->multi != NULL ? "multi" : "toplevel",
        .object = object,
        .user = user,
        .at_ms = call->cmd->env.now_ms(call->cmd->env.ctx),
    };

    client_write_line(call->cmd, call->conn, &line);
    d.client = span_of(buf_ptr(&line), buf_len(&line) - 1);
    denials_add(call->cmd->users.denials, &d);
    buf_reset(&line);
}

static const enum denial_reason REASONS[] = {
    [ACL_NO_COMMAND] = DENIAL_COMMAND,
    [ACL_NO_NAME] = DENIAL_NAME,
    [ACL_NO_CHANNEL] = DENIAL_CHANNEL,
};

static enum acl_verdict check_access(struct command_ctx *call)
{
    struct span object = SPAN_NONE;
    const struct acl_user *user = call->client->user;
    enum acl_verdict verdict =
        acl_check_command(user, call->command, call->argv, call->argc, &object);

    if (verdict != ACL_ALLOWED) {
        acl_check_denied(call, REASONS[verdict], object,
                         span_of(user->name, user->name_len));
    }
    return verdict;
}

bool acl_check_admits(struct command_ctx *call)
{
    switch (check_access(call)) {
    case ACL_NO_COMMAND:
        ctx_error(call, LATCHD_ERR_NOPERM,
                  "this user has no permissions to run the '%s' command",
                  call->command->name);
        return false;
    case ACL_NO_NAME:
        ctx_error(call, LATCHD_ERR_NOPERM,
                  "this user has no permissions to access one of the keys used as "
                  "arguments");
        return false;
    case ACL_NO_CHANNEL:
        ctx_error(call, LATCHD_ERR_NOPERM,
                  "this user has no permissions to access one of the channels used "
                  "as arguments");
        return false;
    case ACL_ALLOWED:
    default:
        return true;
    }
}

bool acl_check_still_admits(struct command_ctx *call)
{
    static const char *const WHY[] = {
        [ACL_NO_COMMAND] = "no permission to execute the command or subcommand",
        [ACL_NO_NAME] = "no permission to touch the specified keys",
        [ACL_NO_CHANNEL] =
            "no permission to access one of the channels used as arguments to the "
            "command",
    };
    enum acl_verdict verdict = check_access(call);

    if (verdict != ACL_ALLOWED) {
        ctx_error(call, LATCHD_ERR_NOPERM,
                  "ACLs rules changed between the moment the transaction was "
                  "accumulated and the EXEC call. This command is no longer allowed "
                  "for the following reason: %s",
                  WHY[verdict]);
    }
    return verdict == ACL_ALLOWED;
}

bool client_may_see(const struct client *client, struct span name)
{
    return permissions_may_name(&client->user->terms, name, TERMS_READ);
}

bool ctx_overrides(const struct command_ctx *call)
{
    return permissions_may_run(&call->client->user->terms, call->cmd->users.force);
}
