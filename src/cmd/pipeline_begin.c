/* Which commands may begin beside those in flight, and how they wait. */
#include "cmd/pipeline_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <string.h>

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

/* Whether each command ahead is an UNLOCK of another name, or a gathered LOCK. */
static bool all_is_short(const struct pipeline *p, size_t at, const struct candidate *r,
                         size_t *ret_gathered)
{
    uint64_t hash;

    /* A run of LOCKs, as they mostly come, is not looked through for each of them. */
    if (at == p->count && p->in_state[STEP_GATHERED] == at - p->first) {
        *ret_gathered = at - p->first;
        return true;
    }
    *ret_gathered = 0;
    /* No hash was made for a LOCK, as a LOCK seldom gets here. */
    hash = r->hash != 0 ? r->hash : hash_bytes(r->argv[1].ptr, r->argv[1].len);
    for (size_t i = p->first; i < at; i++) {
        const struct step *s = &p->steps[i];

        if (s->state == STEP_GATHERED) {
            ++*ret_gathered;
        } else if (s->state != STEP_ANSWERED &&
                   (s->state != STEP_ASKED || s->command->run != cmd_unlock ||
                    s->hash == hash)) {
            return false;
        }
    }
    return true;
}

bool pipeline_fits_beside(const struct cmd *c, const struct pipeline *p, size_t at,
                          const struct candidate *r)
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

void step_set_state(struct pipeline *p, struct step *s, enum step_state state)
{
    p->in_state[s->state]--;
    p->in_state[state]++;
    p->waits -= state == STEP_ANSWERED && step_may_wait(s);
    s->state = state;
}

void step_keep(struct pipeline *p, struct step *s, const struct command_ctx *ctx)
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
    const struct command *command = command_find(ctx->argv[0]);
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

/* Gives the command a step if needed. False: it is alone, and stays so. */
static bool joins_pipeline(struct command_ctx *ctx)
{
    if (ctx->step == NULL && !multi_is_open(ctx->client->multi) &&
        conn_has_more(ctx->conn)) {
        ctx->step =
            add_step(ctx->client, ctx->command,
                     hash_changed_name(ctx->command, ctx->argv, ctx->argc), ctx->muted);
    }
    return ctx->step != NULL;
}

bool pipeline_waits_last(struct command_ctx *ctx, uint64_t number)
{
    struct step *s = ctx->step;

    if (s == NULL) {
        return false;
    }
    step_set_state(ctx->client->pipeline, s, STEP_ASKED);
    s->number = number;
    s->began_us = ctx->started_us;
    s->subject = ctx->subject;
    s->library = ctx->library;
    return true;
}

bool pipeline_waits(struct command_ctx *ctx, uint64_t number)
{
    return joins_pipeline(ctx) && pipeline_waits_last(ctx, number);
}

/* Makes a span into the command's arguments one into their copy. */
static struct span span_in_deferred(const struct command_ctx *ctx,
                                    const struct deferred_command *k, struct span s)
{
    for (size_t i = 1; s.len != 0 && i < ctx->argc; i++) {
        if (ctx->argv[i].ptr == s.ptr && ctx->argv[i].len == s.len) {
            return k->argv[i];
        }
    }
    return SPAN_NONE;
}

bool pipeline_gathers(struct command_ctx *ctx, const struct lock_req *req)
{
    struct pipeline *p;
    struct step *s = ctx->step;

    /* Nothing that waits is ahead of a batch. */
    if (req->kind != KIND_PLAIN || (s != NULL && s->passes) || !joins_pipeline(ctx)) {
        return false;
    }
    p = ctx->client->pipeline;
    s = ctx->step;
    step_keep(p, s, ctx);
    s->req = *req;
    s->req.name = span_in_deferred(ctx, s->deferred, req->name);
    s->req.owner = span_in_deferred(ctx, s->deferred, req->owner);
    s->req.id = span_in_deferred(ctx, s->deferred, req->id);
    s->req.data = span_in_deferred(ctx, s->deferred, req->data);
    s->subject = ctx->subject;
    s->began_us = ctx->started_us;
    step_set_state(p, s, STEP_GATHERED);
    ctx->waits = true;
    return true;
}

struct deferred_command *pipeline_puts_off(struct command_ctx *ctx)
{
    ctx->put_off = true;
    step_keep(ctx->client->pipeline, ctx->step, ctx);
    return ctx->step->deferred;
}
