/* Who may run what: commands, the names and the channels that they are given. The
 * texts are Redis's. */
#include "cmd/users.h"

#include "cmd/handlers.h"

static enum verdict check_names(const struct terms *t, const struct command *command,
                                const struct span *argv, size_t argc,
                                struct span *ret_object)
{
    unsigned access = (command->flags & CMD_READONLY) != 0 ? TERMS_READ : TERMS_WRITE;
    size_t first, count;

    /* What cannot be read is refused by the command itself. */
    if (command->keys == KEYS_NONE ||
        !command_key_range(command, argv, argc, &first, &count)) {
        return GATE_OPEN;
    }
    for (size_t i = first; i < first + count; i++) {
        if (!terms_may_name(t, argv[i], access)) {
            *ret_object = argv[i];
            return GATE_NAME;
        }
    }
    return GATE_OPEN;
}

static enum verdict check_channels(const struct terms *t, const struct command *command,
                                   const struct span *argv, size_t argc,
                                   struct span *ret_object)
{
    bool patterns = command->run == cmd_psubscribe;

    if (!patterns && command->run != cmd_subscribe) {
        return GATE_OPEN;
    }
    for (size_t i = 1; i < argc; i++) {
        if (!(patterns ? terms_may_channels : terms_may_channel)(t, argv[i])) {
            *ret_object = argv[i];
            return GATE_CHANNEL;
        }
    }
    return GATE_OPEN;
}

enum verdict gate_check(const struct acl_user *user, const struct command *command,
                        const struct span *argv, size_t argc, struct span *ret_object)
{
    const struct terms *t = &user->terms;
    enum verdict verdict;

    if (terms_may_anything(t)) {
        return GATE_OPEN;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 &&
        !terms_may_run(t, (size_t)(command - COMMANDS))) {
        *ret_object = span_str(command->name);
        return GATE_COMMAND;
    }
    verdict = check_names(t, command, argv, argc, ret_object);
    return verdict != GATE_OPEN ? verdict
                                : check_channels(t, command, argv, argc, ret_object);
}

void gate_denied(struct call *call, enum denial_reason reason, struct span object,
                 struct span user)
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
    [GATE_COMMAND] = DENIAL_COMMAND,
    [GATE_NAME] = DENIAL_NAME,
    [GATE_CHANNEL] = DENIAL_CHANNEL,
};

static enum verdict check(struct call *call)
{
    struct span object = SPAN_NONE;
    const struct acl_user *user = call->client->user;
    enum verdict verdict =
        gate_check(user, call->command, call->argv, call->argc, &object);

    if (verdict != GATE_OPEN) {
        gate_denied(call, REASONS[verdict], object,
                    span_of(user->name, user->name_len));
    }
    return verdict;
}

bool gate_admits(struct call *call)
{
    switch (check(call)) {
    case GATE_COMMAND:
        call_error(call, LATCHD_ERR_NOPERM,
                   "this user has no permissions to run the '%s' command",
                   call->command->name);
        return false;
    case GATE_NAME:
        call_error(call, LATCHD_ERR_NOPERM,
                   "this user has no permissions to access one of the keys used as "
                   "arguments");
        return false;
    case GATE_CHANNEL:
        call_error(call, LATCHD_ERR_NOPERM,
                   "this user has no permissions to access one of the channels used "
                   "as arguments");
        return false;
    case GATE_OPEN:
    default:
        return true;
    }
}

bool gate_still_admits(struct call *call)
{
    static const char *const WHY[] = {
        [GATE_COMMAND] = "no permission to execute the command or subcommand",
        [GATE_NAME] = "no permission to touch the specified keys",
        [GATE_CHANNEL] =
            "no permission to access one of the channels used as arguments to the "
            "command",
    };
    enum verdict verdict = check(call);

    if (verdict != GATE_OPEN) {
        call_error(call, LATCHD_ERR_NOPERM,
                   "ACLs rules changed between the moment the transaction was "
                   "accumulated and the EXEC call. This command is no longer allowed "
                   "for the following reason: %s",
                   WHY[verdict]);
    }
    return verdict == GATE_OPEN;
}

bool client_may_see(const struct client *client, struct span name)
{
    return terms_may_name(&client->user->terms, name, TERMS_READ);
}

bool call_overrides(const struct call *call)
{
    return terms_may_run(&call->client->user->terms, call->cmd->users.force);
}
