/* Batches of LOCKs, and commands that begin again after they were put off. */
#include "cmd/pipeline_priv.h"

/* --- batches ---------------------------------------------------------- */

/* Asks for a batch of gathered LOCKs. True: some of them are put off. */
static bool ask_run(struct cmd *c, struct client *client, struct pipeline *p)
{
    struct lock_req reqs[PIPELINE_MAX];
    struct step *steps[PIPELINE_MAX];
    size_t count = 0;
    size_t begun;

    for (size_t i = p->first; p->in_state[STEP_GATHERED] > count && i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_GATHERED) {
            s->number = ++c->next_call;
            s->req.from = (struct call_ref){ .conn = client->id, .call = s->number };
            reqs[count] = s->req;
            steps[count++] = s;
        }
    }
    if (count == 0) {
        return false;
    }
    begun = engine_lock_batch(c->env.engine, reqs, count);
    for (size_t i = 0; i < count; i++) {
        step_set_state(p, steps[i], i < begun ? STEP_ASKED : STEP_PUT_OFF);
    }
    return begun < count;
}

void pipeline_settle(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;

    if (p == NULL) {
        return;
    }
    if (ask_run(c, client, p)) {
        pipeline_again(c, conn);
    }
    if (p->again) {
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
    s->counted |= !ctx->put_off;
    if (ctx->put_off) {
        step_set_state(ctx->client->pipeline, s, STEP_PUT_OFF);
    } else if (!ctx->waits) {
        step_set_state(ctx->client->pipeline, s, STEP_ANSWERED);
    }
}

static void begin_anew(struct cmd *c, struct conn *conn, struct step *s)
{
    struct client *client = conn_data(conn);
    struct command_ctx ctx = {
        .cmd = c,
        .conn = conn,
        .client = client,
        .argv = s->deferred->argv,
        .argc = s->deferred->argc,
        .proto = client->proto,
        .out = s->muted ? &c->scratch : &s->reply,
        .muted = s->muted,
        .step = s,
        .counted = s->counted,
    };

    step_set_state(client->pipeline, s, STEP_BEGINS);
    dispatch_command(&ctx);
    s->command = ctx.command;
    pipeline_ran(&ctx);
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

    s->passes = false;
    if (!list_empty(&s->deferred->in_pause) || (s->granted_early && at > p->first)) {
        return false;
    }
    if (at == p->first || pipeline_fits_beside(c, p, at, &r)) {
        return true;
    }
    if (s->passage == PASSAGE_UNKNOWN) {
        s->passage = passage_of(&c->limits, &r);
    }
    s->passes = s->passage == PASSAGE_NAMED && passage_is_free(p, at, &r) &&
                (!step_is_lock(s) || engine_has_room(c->env.engine));
    return s->passes;
}

void pipeline_again(struct cmd *c, struct conn *conn)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;

    p->again = false;
    for (size_t i = p->first; p->in_state[STEP_PUT_OFF] > 0 && i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_PUT_OFF && may_begin(c, p, i)) {
            begin_anew(c, conn, s);
        }
    }
    if (p->steps[p->first].state == STEP_ANSWERED) {
        pipeline_go_on(c, conn, client);
    }
    p = client->pipeline;
    if (p != NULL && client->deferred != NULL && !p->again) {
        conn_suspend(conn);
    }
}
