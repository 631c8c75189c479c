#include "cmd/pipeline.h"

#include "cmd/pipeline_priv.h"

#include <stdlib.h>

size_t pipeline_bytes(const struct pipeline *p)
{
    size_t bytes = 0;

    if (p == NULL) {
        return 0;
    }
    for (size_t i = p->first; i < p->count; i++) {
        bytes += p->steps[i].reply.room;
    }
    return bytes + sizeof(*p) + p->room * sizeof(p->steps[0]) + p->deferred_bytes;
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

static struct step *step_find(struct pipeline *p, uint64_t number)
{
    for (size_t i = p->first; i < p->count; i++) {
        struct step *s = &p->steps[i];

        if (s->state == STEP_ASKED && s->number == number) {
            return s;
        }
    }
    return NULL;
}

const struct command *pipeline_command(struct pipeline *p, uint64_t number)
{
    const struct step *s = step_find(p, number);

    return s == NULL ? NULL : s->command;
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

/* Whether the answer is a grant that cannot be written yet. True: it is treated as if
 * it had not come. */
static bool comes_too_early(struct cmd *c, const struct client *client, struct step *s,
                            const struct effect_reply *reply)
{
    if (reply->kind == REPLY_UNREACHED) {
        return true;
    }
    if (reply->kind != REPLY_TOKEN || !s->passes ||
        !is_behind_a_wait(client->pipeline, s)) {
        return false;
    }
    s->granted_early = true;
    engine_on_undelivered(c->env.engine, client->id,
                          reply->grant); /* retained for KEEP */
    return true;
}

static void take_reply(struct cmd *c, struct conn *conn, struct step *s,
                       const struct effect_reply *reply)
{
    struct client *client = conn_data(conn);
    bool first = s == &client->pipeline->steps[client->pipeline->first];
    bool granted = reply->kind == REPLY_TOKEN || reply->kind == REPLY_TOKENS;

    if (!first && reply->kind == REPLY_INT && s->command->run == cmd_renew) {
        s->renewed = true;
        s->lease_ms = reply->value;
        s->token = reply->token;
        s->renewed_ms = c->env.now_ms(c->env.ctx);
        return;
    }
    reply_write(c, first ? conn_out(conn) : &s->reply, client, s->library, reply);
    if (granted && first) {
        client_granted(client, reply->grant, conn_input_count(conn));
    } else if (granted) {
        s->grant = reply->grant;
    }
}

void pipeline_reply(struct cmd *c, struct conn *conn, const struct effect_reply *reply)
{
    struct client *client = conn_data(conn);
    struct pipeline *p = client->pipeline;
    struct step *s = step_find(p, reply->to.call);

    if (s == NULL || (s->library != NULL && library_goes_on(c, s->library, reply))) {
        return;
    }
    tracking_push(
        c, client); /* losses from before must not seem to come after this reply */
    if (comes_too_early(c, client, s, reply)) {
        step_set_state(p, s, STEP_PUT_OFF);
    } else {
        stats_answered(c, s->command, s->began_us, reply_outcome(s->library, reply));
        if (!s->muted) {
            take_reply(c, conn, s, reply);
        }
        step_set_state(p, s, STEP_ANSWERED);
    }
    pipeline_go_on(c, conn, client);
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
