#include "cmd/pipeline.h"

#include "cmd/cmd_lock.h"
#include "cmd/cmd_priv.h"
#include "util/hash.h"

/* A request as it arrived, or as it was deferred. */
struct candidate {
    const struct command *command;
    const struct span *argv;
    size_t argc;
    uint64_t hash;
    struct subject subject;
};

static inline bool step_is_lock(const struct step *s)
{
    return command_is_lock(s->command);
}

static inline bool step_may_wait(const struct step *s)
{
    return command_may_wait(s->command);
}

/* Commands that pass a LOCK which waits ahead of them on their connection.
 *
 * A command that names a hold by TOKEN or VALUE, or a request by ID or OWNER, means the
 * same whatever becomes of the LOCKs of others. A bare UNLOCK or RENEW means what the
 * connection did before it, so it comes in its turn, and so does what only looks: its
 * reply would leave no sooner. */

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
        return args->terms.id.len != 0 &&
               ((args->terms.has & OPT_KEEP) == 0 || args->terms.keep_ms > 0);
    }
    return (args->terms.has & (OPT_TOKEN | OPT_ID | OPT_OWNER | OPT_VALUE)) != 0;
}

/* pipeline.c: classifies a request; sets r->subject. */
static enum passage passage_of(const struct cmd_limits *limits, struct candidate *r)
{
    const struct command *command = r->command;
    const struct lock_syntax *syntax;
    char text[ARGS_ERROR_ROOM];
    struct lock_args args;

    if (command == NULL || !command_arity_fits(command, r->argc)) {
        return PASSAGE_IN_TURN; /* an error */
    }
    syntax = syntax_of(command);
    if (syntax == NULL) {
        return (command->flags & CMD_HARMLESS) != 0 ? PASSAGE_IN_TURN : PASSAGE_BARRIER;
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

/* Whether the request is independent of all commands before place `at`. */
static bool passage_is_free(const struct pipeline *p, size_t at,
                            const struct candidate *r)
{
    for (size_t i = p->first; i < at; i++) {
        if (is_concerned(&p->steps[i], r)) {
            return false;
        }
    }
    return true;
}

/* Which commands may begin beside those in flight, and how they wait. */

enum { PIPELINE_ROOM = 4 }; /* steps of a new pipeline */

/* The hash that later commands about the name are compared with: see struct step. */
static uint64_t hash_changed_name(const struct command *command,
                                  const struct span *argv, size_t argc)
{
    if (command == NULL || command->keys != KEYS_ONE || argc < 2 ||
        (command->flags & CMD_WRITE) == 0 || command_is_lock(command)) {
        return 0;
    }
    return hash_bytes(argv[1].ptr, argv[1].len);
}

/* --- beside short commands -------------------------------------------- */

/* Whether no argument is the word of a mode. An option's value that looks like one
 * counts as well, which does no harm. */
static bool is_plain(const struct candidate *r)
{
    for (size_t i = 2; i < r->argc; i++) {
        if (span_eq_nocase(r->argv[i], SPAN("FAIR")) ||
            span_eq_nocase(r->argv[i], SPAN("READ")) ||
            span_eq_nocase(r->argv[i], SPAN("WRITE"))) {
            return false;
        }
    }
    return true;
}

/* The hash of its one name. A LOCK's is made when it is first compared. */
static uint64_t candidate_hash(struct candidate *r)
{
    if (r->hash == 0) {
        r->hash = hash_bytes(r->argv[1].ptr, r->argv[1].len);
    }
    return r->hash;
}

/* Whether each command ahead is an UNLOCK of another name, or a gathered LOCK. */
static bool all_is_short(const struct pipeline *p, size_t at, struct candidate *r,
                         size_t *ret_gathered)
{
    /* A run of LOCKs, as they mostly come, is not looked through for each of them. */
    if (at == p->count && p->in_state[STEP_GATHERED] == at - p->first) {
        *ret_gathered = at - p->first;
        return true;
    }
    *ret_gathered = 0;
    for (size_t i = p->first; i < at; i++) {
        const struct step *s = &p->steps[i];

        if (s->state == STEP_GATHERED) {
            ++*ret_gathered;
        } else if (s->state != STEP_ANSWERED &&
                   (s->state != STEP_ASKED || s->command->run != cmd_unlock ||
                    s->hash == candidate_hash(r))) {
            return false;
        }
    }
    return true;
}

/* pipeline.c: whether the command may begin beside those ahead as if it were
 * alone on the connection. */
static bool pipeline_fits_beside(const struct cmd *c, const struct pipeline *p,
                                 size_t at, struct candidate *r)
{
    bool locks = r->command != NULL && r->command->run == cmd_lock;
    size_t gathered;

    if ((!locks && (r->command == NULL || r->command->run != cmd_unlock)) ||
        r->argc < 2 || at - p->first >= PIPELINE_MAX ||
        !all_is_short(p, at, r, &gathered)) {
        return false;
    }
    /* An UNLOCK in flight may be about to make room. */
    return gathered == 0 ? !locks || engine_has_room(c->env.engine)
                         : locks && is_plain(r) && engine_has_room(c->env.engine);
}

/* --- steps ------------------------------------------------------------ */

static bool has_room(const struct pipeline *p)
{
    return p->count - p->first < PIPELINE_STEPS_MAX &&
           p->deferred_bytes < PIPELINE_BYTES_MAX;
}

static struct pipeline *make_room(struct client *client)
{
    struct pipeline *p = client->pipeline;
    size_t room = p == NULL ? PIPELINE_ROOM : p->room;

    if (p != NULL && p->count < room) {
        return p;
    }
    if (p != NULL && p->first >= room / 2) {
        p->count -= p->first;
        memmove(p->steps, p->steps + p->first, p->count * sizeof(p->steps[0]));
        p->first = 0;
        return p;
    }
    room = p == NULL ? room : room * 2;
    client->pipeline = xrealloc(p, sizeof(*p) + room * sizeof(p->steps[0]));
    if (p == NULL) {
        *client->pipeline = (struct pipeline){ 0 };
    }
    client->pipeline->room = room;
    return client->pipeline;
}

static struct step *add_step(struct client *client, const struct command *command,
                             uint64_t hash, bool muted)
{
    struct pipeline *p = make_room(client);
    struct step *s = &p->steps[p->count++];

    *s = (struct step){
        .state = STEP_BEGINS, .muted = muted, .command = command, .hash = hash
    };
    p->in_state[STEP_BEGINS]++;
    p->waits += step_may_wait(s);
    return s;
}

static void step_set_state(struct pipeline *p, struct step *s, enum step_state state)
{
    p->in_state[s->state]--;
    p->in_state[state]++;
    p->waits -= state == STEP_ANSWERED && step_may_wait(s);
    s->state = state;
}

/* Copies the arguments of a command that may begin again. */
static void step_keep(struct pipeline *p, struct step *s, const struct command_ctx *ctx)
{
    if (s->deferred == NULL) {
        s->deferred = deferred_command_new(ctx);
        p->deferred_bytes += s->deferred->bytes;
    }
}

/* Makes the LOCK that waits alone the first step of a new pipeline. */
static void adopt_waiting(struct client *client)
{
    struct step *s = add_step(client, client_last(client), 0, client->call_muted);

    step_set_state(client->pipeline, s, STEP_ASKED);
    s->counted = true;
    s->number = client->call;
    s->began_us = client->call_us;
    s->subject = client_subject(client);
    s->library = client_library(client);
    client_set_library(client, NULL);
    client->call = 0;
}

/* --- a new request ---------------------------------------------------- */

static bool put_off_all(struct command_ctx *ctx, bool full)
{
    ctx->client->pipeline->full = full;
    ctx->client->deferred = deferred_command_new(ctx);
    conn_suspend(ctx->conn);
    return false;
}

/* Lets a request run now, in a step of its own. */
static void run_beside(struct command_ctx *ctx, const struct candidate *r)
{
    struct step *s = add_step(ctx->client, r->command, r->hash, ctx->muted);

    s->subject = r->subject;
    ctx->step = s;
    ctx->command = r->command;
    if (!ctx->muted) {
        ctx->out = &s->reply;
    }
}

/* Decides about a request behind a LOCK that waits. */
static bool begin_behind(struct command_ctx *ctx, struct candidate *r)
{
    struct pipeline *p = ctx->client->pipeline;
    enum passage passage = passage_of(&ctx->cmd->limits, r);
    struct step *s;

    if (passage == PASSAGE_BARRIER || !has_room(p)) {
        return put_off_all(ctx, passage != PASSAGE_BARRIER);
    }
    if (passage == PASSAGE_NAMED && passage_is_free(p, p->count, r) &&
        (!command_is_lock(r->command) || engine_has_room(ctx->cmd->env.engine))) {
        run_beside(ctx, r);
        ctx->step->passage = passage;
        ctx->step->passes = true;
        step_keep(ctx->client->pipeline, ctx->step, ctx);
        return true;
    }
    s = add_step(ctx->client, r->command, r->hash, ctx->muted);
    p = ctx->client->pipeline;
    s->passage = passage;
    s->subject = r->subject;
    step_keep(p, s, ctx);
    step_set_state(p, s, STEP_PUT_OFF);
    return false;
}

bool pipeline_begin(struct command_ctx *ctx)
{
    struct client *client = ctx->client;
    const struct command *command = command_resolve(ctx->argv, ctx->argc);
    struct candidate r = { .command = command, .argv = ctx->argv, .argc = ctx->argc };

    if (client->pipeline == NULL) {
        adopt_waiting(client);
    }
    r.hash = hash_changed_name(command, ctx->argv, ctx->argc);
    if (pipeline_fits_beside(ctx->cmd, client->pipeline, client->pipeline->count, &r)) {
        run_beside(ctx, &r);
        return true;
    }
    if (client->pipeline->waits == 0 && client->pipeline->in_state[STEP_PUT_OFF] == 0) {
        return put_off_all(ctx, false); /* the commands ahead end soon */
    }
    return begin_behind(ctx, &r);
}

bool pipeline_admits_deferred(const struct client *client)
{
    return client->pipeline != NULL && client->deferred != NULL &&
           client->pipeline->full && list_empty(&client->deferred->in_pause) &&
           has_room(client->pipeline);
}

/* --- how it waits ----------------------------------------------------- */

/* Whether a command has a step, or is to have one as more input follows. */
static bool is_in_pipeline(const struct command_ctx *ctx)
{
    return ctx->step != NULL ||
           (!multi_is_open(ctx->client->multi) && conn_has_more(ctx->conn));
}

bool pipeline_may_gather(const struct command_ctx *ctx)
{
    /* Nothing that waits is ahead of a batch. */
    return is_in_pipeline(ctx) && (ctx->step == NULL || !ctx->step->passes);
}

bool pipeline_waits(struct command_ctx *ctx)
{
    struct client *client = ctx->client;
    struct step *s;

    if (ctx->step == NULL && ctx->result != WAITS && is_in_pipeline(ctx)) {
        ctx->step =
            add_step(client, ctx->command,
                     hash_changed_name(ctx->command, ctx->argv, ctx->argc), ctx->muted);
    }
    s = ctx->step;
    if (s == NULL) {
        return false;
    }
    if (ctx->result == GATHERED) {
        step_keep(client->pipeline, s, ctx);
    }
    step_set_state(client->pipeline, s,
                   ctx->result == GATHERED ? STEP_GATHERED : STEP_ASKED);
    s->number = ctx->call;
    s->began_us = ctx->started_us;
    s->subject = ctx->subject;
    s->library = ctx->library;
    return true;
}

struct deferred_command *pipeline_puts_off(struct command_ctx *ctx)
{
    step_keep(ctx->client->pipeline, ctx->step, ctx);
    return ctx->step->deferred;
}

/* Batches of LOCKs, and commands that begin again after they were put off. */

/* --- batches ---------------------------------------------------------- */

/* Reads a gathered LOCK again. False: a limit has changed meanwhile; as it begins
 * again, it is answered with the error. */
static bool read_gathered(struct cmd *c, struct client *client, struct step *s,
                          struct lock_req *ret)
{
    struct command_ctx ctx = {
        .cmd = c,
        .client = client,
        .command = s->command,
        .argv = s->deferred->argv,
        .argc = s->deferred->argc,
        .out = &c->scratch,
    };

    if (!ctx_lock_request(&ctx, ret)) {
        return false;
    }
    s->number = ++c->next_call;
    ret->from = (struct call_ref){ .conn = client->id, .call = s->number };
    return true;
}

bool pipeline_ask(struct cmd *c, struct client *client)
{
    struct lock_req reqs[PIPELINE_MAX];
    struct step *steps[PIPELINE_MAX];
    struct pipeline *p = client->pipeline;
    size_t gathered = p->in_state[STEP_GATHERED];
    size_t count = 0, begun = 0;

    for (size_t i = p->first; p->in_state[STEP_GATHERED] > count && i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state != STEP_GATHERED) {
            continue;
        }
        steps[count] = s;
        if (read_gathered(c, client, s, &reqs[count])) {
            count++;
        } else {
            step_set_state(p, s, STEP_PUT_OFF);
        }
    }
    if (count > 0) {
        begun = engine_lock_batch(c->env.engine, reqs, count);
    }
    for (size_t i = 0; i < count; i++) {
        step_set_state(p, steps[i], i < begun ? STEP_ASKED : STEP_PUT_OFF);
    }
    return begun < gathered;
}

void pipeline_settle(struct conn *conn, const struct client *client)
{
    const struct pipeline *p = client->pipeline;

    if (p == NULL || p->again) {
        return; /* on_again() comes before any other request */
    }
    if (client->deferred != NULL || p->waits == 0) {
        conn_suspend(conn);
    } else {
        conn_await(conn);
    }
}

/* --- deferred commands ------------------------------------------------ */

void pipeline_ran(struct command_ctx *ctx)
{
    struct step *s = ctx->step;

    if (s == NULL) {
        return;
    }
    s->command = ctx->command;
    s->counted |= ctx->result != PUT_OFF;
    if (ctx->result == PUT_OFF) {
        step_set_state(ctx->client->pipeline, s, STEP_PUT_OFF);
    } else if (ctx->result == ANSWERED) {
        step_set_state(ctx->client->pipeline, s, STEP_ANSWERED);
    }
}

/* Whether the commands ahead let a command begin, and how it begins. */
static bool may_begin(const struct cmd *c, struct pipeline *p, size_t at)
{
    struct step *s = &p->steps[at];
    struct candidate r = {
        .command = s->command,
        .argv = s->deferred->argv,
        .argc = s->deferred->argc,
        .hash = s->hash,
        .subject = s->subject,
    };

    bool fits;

    s->passes = false;
    if (!list_empty(&s->deferred->in_pause) || (s->granted_early && at > p->first)) {
        return false;
    }
    fits = at == p->first || pipeline_fits_beside(c, p, at, &r);
    s->hash = r.hash;
    if (fits) {
        return true;
    }
    if (s->passage == PASSAGE_UNKNOWN) {
        s->passage = passage_of(&c->limits, &r);
    }
    s->passes = s->passage == PASSAGE_NAMED && passage_is_free(p, at, &r) &&
                (!step_is_lock(s) || engine_has_room(c->env.engine));
    return s->passes;
}

struct step *pipeline_next(const struct cmd *c, struct pipeline *p,
                           const struct step *s)
{
    size_t i = s == NULL ? p->first : (size_t)(s - p->steps) + 1;
    bool blocked = false; /* a command ahead stays put off: only NAMED ones may pass */

    for (; p->in_state[STEP_PUT_OFF] > 0 && i < p->count; i++) {
        struct step *at = &p->steps[i];

        if (at->state != STEP_PUT_OFF || (blocked && at->passage == PASSAGE_IN_TURN)) {
            continue;
        }
        if (may_begin(c, p, i)) {
            step_set_state(p, at, STEP_BEGINS);
            return at;
        }
        blocked = true;
    }
    return NULL;
}

/* --- replies in order ------------------------------------------------- */

/* Writes a token that had to wait for earlier replies. As for any grant, the lease is
 * checked when the reply is written. */
static void write_grant(struct cmd *c, struct conn *conn, struct client *client,
                        const struct step *s)
{
    enum grant_state state = engine_grant_state(c->env.engine, client->id, s->grant);

    if (state == GRANT_FRESH) {
        client_granted(client, s->grant, conn_input_count(conn));
        buf_add_span(conn_out(conn), buf_span(&s->reply));
        return;
    }
    engine_on_undelivered(c->env.engine, client->id, s->grant);
    resp_error(conn_out(conn), LATCHD_ERR_BACKEND,
               state == GRANT_STALE
                   ? SPAN("the replies before took too long: the lock is given back")
                   : SPAN("the replies before took too long: the lock is lost"));
}

/* Writes what is left of a lease, less the time that the reply had to wait, or the
 * token of a hold whose lease is not over. */
static void write_lease(struct cmd *c, struct conn *conn, const struct step *s)
{
    int64_t waited = (int64_t)(c->env.now_ms(c->env.ctx) - s->renewed_ms);

    if (s->lease_ms > waited) {
        resp_int(conn_out(conn),
                 s->token != 0 ? (int64_t)s->token : s->lease_ms - waited);
    } else {
        resp_error(conn_out(conn), LATCHD_ERR_BACKEND,
                   SPAN("the replies before took longer than the lease that was "
                        "renewed: RENEW again"));
    }
}

static void write_reply(struct cmd *c, struct conn *conn, struct client *client,
                        const struct step *s)
{
    if (s->grant != 0) {
        write_grant(c, conn, client, s);
    } else if (s->renewed) {
        write_lease(c, conn, s);
    } else if (buf_len(&s->reply) > 0) {
        buf_add_span(conn_out(conn), buf_span(&s->reply));
    }
}

static void end_step(struct pipeline *p, struct step *s)
{
    if (s->deferred != NULL) {
        p->deferred_bytes -= s->deferred->bytes;
        deferred_command_free(s->deferred);
        s->deferred = NULL;
    }
    library_call_free(s->library);
    s->library = NULL;
    buf_reset(&s->reply);
}

void pipeline_go_on(struct cmd *c, struct conn *conn, struct client *client)
{
    struct pipeline *p = client->pipeline;

    for (; p->first < p->count && p->steps[p->first].state == STEP_ANSWERED;
         p->first++) {
        write_reply(c, conn, client, &p->steps[p->first]);
        end_step(p, &p->steps[p->first]);
    }
    if (p->first == p->count) {
        client->pipeline = NULL;
        free(p);
        if (client->deferred != NULL) {
            conn_again(conn);
        }
        conn_resume(conn);
    } else if (p->in_state[STEP_PUT_OFF] > 0 || pipeline_admits_deferred(client)) {
        p->again = true;
        conn_again(conn);
        conn_resume(conn);
    }
}

/* --- the engine's answers --------------------------------------------- */

struct step *pipeline_step(struct pipeline *p, uint64_t number)
{
    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_ASKED && s->number == number) {
            return s;
        }
    }
    return NULL;
}

/* Whether something ahead waits, so that nobody knows when the reply can be written. */
static bool is_behind_a_wait(const struct pipeline *p, const struct step *s)
{
    for (const struct step *ahead = &p->steps[p->first]; ahead < s; ahead++) {
        if (ahead->state == STEP_PUT_OFF ||
            (ahead->state != STEP_ANSWERED && step_may_wait(ahead))) {
            return true;
        }
    }
    return false;
}

bool pipeline_comes_too_early(struct cmd *c, const struct client *client,
                              struct step *s, const struct effect_reply *reply)
{
    if (reply->kind != REPLY_UNREACHED) {
        if (reply->kind != REPLY_TOKEN || !s->passes ||
            !is_behind_a_wait(client->pipeline, s)) {
            return false;
        }
        s->granted_early = true;
        engine_on_undelivered(c->env.engine, client->id,
                              reply->grant); /* retained for KEEP */
    }
    step_set_state(client->pipeline, s, STEP_PUT_OFF);
    return true;
}

bool pipeline_keeps_lease(const struct cmd *c, struct step *s,
                          const struct effect_reply *reply)
{
    if (reply->kind != REPLY_INT || s->command->run != cmd_renew) {
        return false;
    }
    s->renewed = true;
    s->lease_ms = reply->value;
    s->token = reply->token;
    s->renewed_ms = c->env.now_ms(c->env.ctx);
    return true;
}

void pipeline_answered(struct pipeline *p, struct step *s)
{
    step_set_state(p, s, STEP_ANSWERED);
}

void pipeline_abandon(struct cmd *c, struct client *client)
{
    struct pipeline *p = client->pipeline;

    if (p == NULL) {
        return;
    }
    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state != STEP_ANSWERED && s->counted) {
            stats_answered(c, s->command, s->began_us, OUTCOME_GONE);
        } else if (s->grant != 0) {
            engine_on_undelivered(c->env.engine, client->id, s->grant);
        }
        end_step(p, s);
    }
    client->pipeline = NULL;
    free(p);
}
