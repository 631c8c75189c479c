/* What passes a LOCK that waits ahead of it on its connection.
 *
 * Whoever names a hold by TOKEN or VALUE, or a request by ID or OWNER, means the same
 * whatever becomes of the LOCKs of others. A bare UNLOCK or RENEW means what the
 * connection did before it, so it comes in its turn, and so does what only looks: its
 * reply would leave no sooner. */
#include "cmd/pipeline_priv.h"

/* Besides the lock commands, these do not change what later commands mean. */
static command_fn *const HARMLESS[] = {
    cmd_ping,
    cmd_echo,
    cmd_time,
    cmd_info,
    cmd_role,
    cmd_wait,
    cmd_get,
    cmd_exists,
    cmd_dbsize,
    cmd_client_id,
    cmd_client_info,
    cmd_client_list,
    cmd_client_getname,
    cmd_client_setname,
    cmd_client_setinfo,
    cmd_config_get,
    cmd_command,
    cmd_command_count,
    cmd_command_info,
    cmd_command_list,
    cmd_command_docs,
    cmd_latch_await,
    cmd_latch_info,
    cmd_leader,
    cmd_lockinfo,
    cmd_locks,
    cmd_waiters,
    cmd_readonly,
    cmd_select,
};

static bool is_harmless(const struct command *command)
{
    for (size_t i = 0; i < sizeof(HARMLESS) / sizeof(HARMLESS[0]); i++) {
        if (command->run == HARMLESS[i]) {
            return true;
        }
    }
    return false;
}

static const struct lock_syntax *syntax_of(const struct command *command)
{
    static const struct {
        command_fn *run;
        const struct lock_syntax *syntax;
    } NAMING[] = {
        { cmd_lock, &SYNTAX_LOCK },     { cmd_unlock, &SYNTAX_UNLOCK },
        { cmd_renew, &SYNTAX_RENEW },   { cmd_forceunlock, &SYNTAX_FORCEUNLOCK },
        { cmd_cancel, &SYNTAX_CANCEL }, { cmd_mlock, &SYNTAX_MLOCK },
    };

    for (size_t i = 0; i < sizeof(NAMING) / sizeof(NAMING[0]); i++) {
        if (command->run == NAMING[i].run) {
            return NAMING[i].syntax;
        }
    }
    return NULL;
}

static bool names_what_it_means(const struct command *command,
                                const struct lock_args *args)
{
    if (command->run == cmd_mlock) {
        return false; /* it is in no queue, but of its first name */
    }
    if (command->run == cmd_lock) {
        /* A grant that cannot be written at once has to be retained meanwhile. */
        return args->id.len != 0 && ((args->has & OPT_KEEP) == 0 || args->keep_ms > 0);
    }
    return (args->has & (OPT_TOKEN | OPT_ID | OPT_OWNER | OPT_VALUE)) != 0;
}

enum passage passage_of(const struct cmd_limits *limits, struct candidate *r)
{
    const struct command *command = command_resolve(r->argv, r->argc);
    const struct lock_syntax *syntax;
    char text[ARGS_ERROR_ROOM];
    struct lock_args args;

    if (command == NULL || !command_arity_fits(command, r->argc)) {
        return PASSAGE_IN_TURN; /* an error */
    }
    syntax = syntax_of(command);
    if (syntax == NULL) {
        return is_harmless(command) ? PASSAGE_IN_TURN : PASSAGE_BARRIER;
    }
    if (!lock_args_parse(syntax, limits, r->argv + 1, r->argc - 1, &args, text)) {
        return PASSAGE_IN_TURN; /* the same */
    }
    r->subject = subject_of(&args);
    return names_what_it_means(command, &args) ? PASSAGE_NAMED : PASSAGE_IN_TURN;
}

/* Whether a CANCEL concerns the wait of a step: the engine must know of it. */
static bool is_concerned(const struct step *s, const struct candidate *r)
{
    bool cancels = r->command->run == cmd_cancel;

    if (s->state == STEP_ANSWERED) {
        return false;
    }
    if (step_is_lock(s)) {
        return subject_overlaps(s->subject, r->subject) &&
               !(cancels && s->state == STEP_ASKED);
    }
    /* Holds of one name change in order; waits are not concerned. */
    return s->hash != 0 && s->hash == r->hash && !cancels &&
           !command_is_lock(r->command);
}

bool passage_is_free(const struct pipeline *p, size_t at, const struct candidate *r)
{
    for (size_t i = p->first; i < at; i++) {
        if (is_concerned(&p->steps[i], r)) {
            return false;
        }
    }
    return true;
}
