#include "cmd/library_call.h"

#include "cmd/cmd_priv.h"
#include "engine/value_hold.h"
#include "util/hash.h"

/* Noted when it was answered last; its key is its hash. */
struct poller {
    struct recent_item item;
    uint64_t since_ms;
};

static struct span key_of(const uint64_t *poller)
{
    return span_of((const char *)poller, sizeof(*poller));
}

void pollers_init(struct recent *p)
{
    recent_init(p, sizeof(struct poller), POLLERS_MAX);
}

uint64_t pollers_since(const struct recent *p, uint64_t poller, uint64_t now_ms)
{
    const struct poller *found = recent_find(p, key_of(&poller));

    return found == NULL || now_ms - found->item.at > POLLER_KNOWN_MS ? 0
                                                                      : found->since_ms;
}

void pollers_remember(struct recent *p, uint64_t poller, uint64_t since_ms,
                      uint64_t now_ms)
{
    struct poller *found = recent_note(p, key_of(&poller), now_ms);

    found->since_ms = since_ms;
}

/* The poller has what it asked for. */
static void pollers_forget(struct recent *p, uint64_t poller)
{
    struct poller *found = recent_find(p, key_of(&poller));

    if (found != NULL) {
        recent_drop(p, found);
    }
}

void pollers_expire(struct recent *p, uint64_t now_ms)
{
    recent_expire(p, now_ms, POLLER_KNOWN_MS + 1);
}

/* Parks who asks for a lock again: which call waits in the queue, and what ends it. */

/* A library believes that it has the lock from when it asked, and some give up a try
 * after a twentieth of the time for which they ask: a wait has to be shorter. */
enum { PARK_PART = 25 };

static bool library_is_endless(const struct library_call *lib);
static bool library_must_check(const struct library_call *lib);
static const struct watched_key *library_watched(const struct library_call *lib);
static const struct watched_key *library_next_compared(const struct library_call *lib,
                                                       size_t at);
static enum library_phase library_acts(const struct library_call *lib);
static void library_ask(struct cmd *c, struct library_call *lib);

/* The asker of a key: a user at an address (without its port), with a value. */
static uint64_t hash_asker(const struct command_ctx *ctx,
                           const struct library_call *lib)
{
    struct buf text = { 0 };
    struct conn_info info;
    struct span address, port;
    uint64_t hash;

    conn_info(ctx->conn, &info);
    port = address = span_str(info.peer);
    if (!span_cut_last(&port, ':', &address)) {
        address = span_str(info.peer);
    }
    buf_add_span(&text, address);
    buf_add_str(&text, " ");
    buf_add_span(&text, buf_span(&lib->value)); /* has no white space in it */
    buf_add_str(&text, " ");
    buf_add_span(&text, lib->keys[0]);
    hash = hash_bytes(buf_ptr(&text), buf_len(&text));
    buf_reset(&text);
    return hash;
}

static uint64_t now_of(const struct cmd *c)
{
    return c->env.now_ms(c->env.ctx);
}

/* Whether the command may wait: nothing is behind it, and nobody sees a part of it. */
static bool may_park(const struct command_ctx *ctx, const struct library_call *lib)
{
    return ctx->cmd->limits.library_park_ms > 0 && lock_call_takes(lib->call.kind) &&
           lib->key_count == 1 && ctx->step == NULL &&
           !multi_is_open(ctx->client->multi) && !ctx->muted &&
           !conn_has_more(ctx->conn) && engine_has_room(ctx->cmd->env.engine);
}

/* Decides whether the asker, if it polls, waits for the lock, and for how long. */
static void library_choose_park(const struct command_ctx *ctx, struct library_call *lib)
{
    struct cmd *c = ctx->cmd;
    uint64_t part = (uint64_t)lib->lease_ms / PARK_PART;
    uint64_t most = c->limits.library_park_ms;

    if (lock_call_takes(lib->call.kind)) {
        lib->asker = hash_asker(ctx, lib);
        lib->asks_since_ms = pollers_since(&c->pollers, lib->asker, now_of(c));
    }
    if (lib->asks_since_ms != 0 && may_park(ctx, lib)) {
        lib->park_ms = part < most ? part : most;
    }
}

/* The asker has the key, or was told that another has it. */
static void library_note_poller(struct cmd *c, const struct library_call *lib,
                                bool taken)
{
    if (taken && lib->asks_since_ms != 0) {
        pollers_forget(&c->pollers, lib->asker);
    } else if (!taken && lib->key_count == 1 && c->limits.library_park_ms > 0) {
        pollers_remember(&c->pollers, lib->asker,
                         lib->asks_since_ms == 0 ? now_of(c) : lib->asks_since_ms,
                         now_of(c));
    }
}

bool library_is_parked(const struct library_call *lib)
{
    return lib != NULL && lib->phase == LIBRARY_TAKES && lib->park_ms > 0;
}

void library_end_park(struct cmd *c, const struct client *client)
{
    const struct library_call *lib = client->call == 0 ? NULL : client_library(client);

    if (library_is_parked(lib)) {
        engine_end_wait(c->env.engine, lib->from);
    }
}

/* --- what is there ------------------------------------------------------ */

/* An answer that is neither yes nor no, and goes to the client as it is. */
static bool is_failure(const struct effect_reply *reply)
{
    return reply->kind == REPLY_ERROR && reply->error != LOCK_NOTHELD &&
           reply->error != LOCK_WRONGTYPE;
}

static bool is_done(const struct effect_reply *reply)
{
    return reply->kind == REPLY_TOKEN || reply->kind == REPLY_TOKENS ||
           reply->kind == REPLY_INT;
}

/* A call that compares no value changes whatever lock there is.. */
static bool changes_any(const struct lock_call *call)
{
    return call->compare == LOCK_COMPARE_NONE && !lock_call_takes(call->kind) &&
           !lock_call_is_query(call->kind);
}

/* ..or asks whether there is one. */
static bool asks_for_any(const struct lock_call *call)
{
    return call->compare == LOCK_COMPARE_NONE && !changes_any(call);
}

static enum lock_call_state state_of_held(const struct library_call *lib, bool fits,
                                          bool endless)
{
    if (!fits && !asks_for_any(&lib->call)) {
        return LOCK_KEY_OTHERS;
    }
    return endless ? LOCK_KEY_MINE_ENDLESS : LOCK_KEY_MINE;
}

/* Takes in who holds a key. Other data, and a read/write lock, are somebody else's. */
static enum lock_call_state read_info(struct library_call *lib,
                                      const struct effect_reply *reply)
{
    const struct hold_view *hold;
    struct span origin, value;
    bool fits;

    buf_clear(&lib->held);
    lib->ttl_ms = reply->kind == REPLY_INFO ? reply->info->ttl_ms : reply->value;
    if (reply->kind != REPLY_INFO) {
        buf_add_span(&lib->held, reply->data.ptr != NULL
                                     ? reply->data
                                     : SPAN(LATCHD_VALUE_OF_OTHERS));
        return state_of_held(lib, false, lib->ttl_ms == TTL_NONE);
    }
    if (reply->info->state == INFO_STATE_LENT_ELSEWHERE) {
        buf_add_str(&lib->held, LATCHD_VALUE_OF_OTHERS);
        return state_of_held(lib, false, false);
    }
    if (reply->info->hold_count == 0) {
        lib->ttl_ms = TTL_ABSENT;
        return LOCK_KEY_FREE;
    }
    hold = &reply->info->holds[0];
    if (!value_field_split(hold->owner, &origin, &value)) {
        buf_printf(&lib->held, LATCHD_VALUE_OF_OTHERS "%" PRIu64, hold->token);
        return state_of_held(lib, false, false);
    }
    value_unescape(&lib->held, value);
    if (hold->lease == LEASE_ENDLESS) {
        lib->ttl_ms = TTL_NONE;
    }
    fits = value_field_fits(hold->owner, buf_span(&lib->pattern));
    lib->is_others = lib->is_others || (changes_any(&lib->call) && !fits);
    return state_of_held(lib, fits, hold->lease == LEASE_ENDLESS);
}

static bool is_mine(enum lock_call_state state)
{
    return state == LOCK_KEY_MINE || state == LOCK_KEY_MINE_ENDLESS;
}

static bool tells_what_is_there(const struct lock_reply *r)
{
    return lock_reply_has(r, LOCK_REPLY_VALUE) ||
           lock_reply_has(r, LOCK_REPLY_TTL_MS) || lock_reply_has(r, LOCK_REPLY_TTL_S);
}

/* Whether a key may be in that state if nothing could be done to it. */
static bool may_be_in_vain(const struct lock_call *call, enum lock_call_state state)
{
    switch (state) {
    case LOCK_KEY_FREE:
        return !lock_call_takes(call->kind);
    case LOCK_KEY_MINE:
        return call->kind == LOCK_CALL_ACQUIRE;
    case LOCK_KEY_MINE_ENDLESS:
        return call->kind == LOCK_CALL_ACQUIRE || call->endless == LOCK_ENDLESS_REFUSED;
    case LOCK_KEY_OTHERS:
        return !asks_for_any(call);
    default:
        return false;
    }
}

/* The state that stands for all of these, where it makes no difference. */
static enum lock_call_state state_in_vain(const struct lock_call *call)
{
    return asks_for_any(call) ? LOCK_KEY_MINE : LOCK_KEY_OTHERS;
}

/* Whether another user's lock, which is left alone, is told by an error. */
static bool may_be_refused(const struct library_call *lib)
{
    return changes_any(&lib->call) && !lib->overrides;
}

/* Whether the reply to what was done in vain depends on who holds. */
static bool must_explain(const struct library_call *lib)
{
    const struct lock_call *call = &lib->call;
    const struct lock_reply *usual = &call->replies[state_in_vain(call)];
    bool differs = false;

    for (int s = 0; s < LOCK_KEY_STATES; s++) {
        const struct lock_reply *r = &call->replies[s];

        differs = differs || (may_be_in_vain(call, (enum lock_call_state)s) &&
                              (tells_what_is_there(r) || !lock_reply_eq(r, usual)));
    }
    return may_be_refused(lib) || (differs && call->scope == LOCK_CALL_ALL_OR_NONE);
}

/* --- what comes next ---------------------------------------------------- */

static bool goes_to(struct cmd *c, struct library_call *lib, enum library_phase phase,
                    size_t key)
{
    lib->phase = phase;
    lib->key = key;
    library_ask(c, lib);
    return true;
}

static bool ends_with(struct library_call *lib, enum lock_call_state state)
{
    lib->phase = LIBRARY_DONE;
    lib->state = state;
    return false;
}

/* Ends a call that takes, without a look: somebody holds, and it is not known who. */
static void library_end_in_vain(struct library_call *lib)
{
    buf_clear(&lib->held);
    buf_add_str(&lib->held, LATCHD_VALUE_OF_OTHERS);
    lib->ttl_ms = 0;
    lib->phase = LIBRARY_DONE;
    lib->state = state_in_vain(&lib->call);
}

/* Of keys that are changed each for itself. */
static bool goes_to_next(struct cmd *c, struct library_call *lib)
{
    if (lib->key + 1 < lib->key_count) {
        return goes_to(c, lib, library_acts(lib), lib->key + 1);
    }
    return ends_with(lib, lib->first);
}

/* Nothing could be done to the key under way. */
static bool give_up(struct cmd *c, struct library_call *lib)
{
    if (must_explain(lib)) {
        return goes_to(c, lib, LIBRARY_EXPLAINS, lib->key);
    }
    return lib->call.scope == LOCK_CALL_EACH_KEY
               ? goes_to_next(c, lib)
               : ends_with(lib, state_in_vain(&lib->call));
}

/* Tells why nothing could be done, which was a moment ago. */
static bool ends_explained(struct library_call *lib, enum lock_call_state state)
{
    if (lock_call_takes(lib->call.kind) && state == LOCK_KEY_FREE) {
        library_end_in_vain(lib);
        return false;
    }
    /* A call that failed and would not fail now failed all the same. */
    return ends_with(lib, is_mine(state) && !may_be_in_vain(&lib->call, state)
                              ? LOCK_KEY_OTHERS
                              : state);
}

static bool on_explained(struct cmd *c, struct library_call *lib,
                         const struct effect_reply *reply)
{
    enum lock_call_state state = read_info(lib, reply);

    /* Of several keys the first one that is not free was in the way. */
    if (state == LOCK_KEY_FREE && lock_call_takes(lib->call.kind) &&
        lib->key + 1 < lib->key_count) {
        return goes_to(c, lib, LIBRARY_EXPLAINS, lib->key + 1);
    }
    return lib->call.scope == LOCK_CALL_EACH_KEY ? goes_to_next(c, lib)
                                                 : ends_explained(lib, state);
}

/* EXEC is answered null. */
static bool ends_changed(struct library_call *lib)
{
    lib->watch->changed = true;
    return ends_with(lib, LOCK_KEY_FREE);
}

static bool on_taken(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply)
{
    bool may_be_mine = lib->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND;

    if (is_done(reply) || !may_be_mine) {
        library_note_poller(c, lib, is_done(reply));
    }
    if (is_done(reply)) {
        lib->done = lib->key_count;
        lib->ttl_ms = library_is_endless(lib) ? TTL_NONE : lib->lease_ms;
        buf_clear(&lib->held);
        buf_add_span(&lib->held, lib->call.value);
        return ends_with(lib, LOCK_KEY_FREE);
    }
    if (lib->watch != NULL) {
        return ends_changed(lib);
    }
    if (may_be_mine) {
        return goes_to(c, lib,
                       library_must_check(lib) ? LIBRARY_CHECKS : LIBRARY_EXTENDS, 0);
    }
    return give_up(c, lib);
}

/* --- watched keys --------------------------------------------------------- */

static bool on_remembered(struct cmd *c, struct library_call *lib,
                          const struct effect_reply *reply)
{
    watched_key_remember(watch_find(lib->watch, lib->keys[lib->key]), reply);
    return lib->key + 1 < lib->key_count
               ? goes_to(c, lib, LIBRARY_REMEMBERS, lib->key + 1)
               : ends_with(lib, LOCK_KEY_FREE);
}

/* But for a SET that takes it, a free key is left alone, and so is somebody else's: it
 * may be anybody's by now. */
static bool on_compared(struct cmd *c, struct library_call *lib,
                        const struct effect_reply *reply)
{
    const struct watched_key *next = library_next_compared(lib, lib->key + 1);

    if (!watched_key_is_same(&lib->watch->keys[lib->key], reply)) {
        return ends_changed(lib);
    }
    if (next != NULL) {
        return goes_to(c, lib, LIBRARY_COMPARES, (size_t)(next - lib->watch->keys));
    }
    if (lock_call_takes(lib->call.kind)) {
        return library_watched(lib)->state == WATCH_FREE
                   ? goes_to(c, lib, LIBRARY_TAKES, 0)
                   : ends_with(lib, LOCK_KEY_OTHERS);
    }
    return library_watched(lib)->state == WATCH_VALUE_HOLD
               ? goes_to(c, lib, library_acts(lib), 0)
               : ends_with(lib, LOCK_KEY_FREE);
}

/* The waiters of a lock library sleep until the message of its release comes. */
static void publish_message(struct cmd *c, const struct library_call *lib)
{
    const struct lock_publish *message = &lib->call.publish;

    if (message->channel.ptr == NULL || lib->may_not_publish) {
        return;
    }
    cmd_publish(c, message->channel, message->message);
}

/* --- what was done -------------------------------------------------------- */

static bool on_acted(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply)
{
    if (lib->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND) {
        library_note_poller(c, lib, is_done(reply));
    }
    if (lib->watch != NULL && !is_done(reply)) {
        return ends_changed(lib);
    }
    if (is_done(reply)) {
        if (lib->phase == LIBRARY_RELEASES) {
            publish_message(c, lib);
        }
        lib->done++;
        lib->ttl_ms = lib->phase != LIBRARY_EXTENDS ? TTL_ABSENT
                      : library_is_endless(lib)     ? -1
                                                    : reply->value;
        buf_clear(&lib->held);
        buf_add_span(&lib->held, lib->call.value);
        return goes_to_next(c, lib);
    }
    return give_up(c, lib);
}

/* Nothing was done: the keys stay as they are, and the reply is an error. */
static bool refuse_lease(struct library_call *lib, uint64_t most)
{
    buf_clear(&lib->held);
    buf_printf(&lib->held, LIBRARY_LEASE_TOO_LONG, most);
    lib->call.replies[LOCK_KEY_MINE] = (struct lock_reply){
        .kind = LOCK_REPLY_PLAIN_ERROR,
        .text = buf_span(&lib->held),
    };
    return ends_with(lib, LOCK_KEY_MINE);
}

static bool may_act_on(const struct library_call *lib, enum lock_call_state state)
{
    bool refused = state == LOCK_KEY_MINE_ENDLESS &&
                   lib->call.kind == LOCK_CALL_EXTEND &&
                   lib->call.endless == LOCK_ENDLESS_REFUSED;

    return is_mine(state) && !refused;
}

/* The first key decides, unless all are counted. */
static bool on_queried(struct cmd *c, struct library_call *lib,
                       const struct effect_reply *reply)
{
    enum lock_call_state state = read_info(lib, reply);

    lib->done += state != LOCK_KEY_FREE;
    return lib->call.scope == LOCK_CALL_EACH_KEY && lib->key + 1 < lib->key_count
               ? goes_to(c, lib, LIBRARY_QUERIES, lib->key + 1)
               : ends_with(lib, state);
}

static bool on_checked(struct cmd *c, struct library_call *lib,
                       const struct effect_reply *reply)
{
    enum lock_call_state state = read_info(lib, reply);

    if (!may_act_on(lib, state)) {
        return ends_explained(lib, state);
    }
    lib->first = lib->key == 0 ? state : lib->first;
    if (lib->key + 1 < lib->key_count) {
        return goes_to(c, lib, LIBRARY_CHECKS, lib->key + 1);
    }
    if (lib->call.end == LOCK_END_ADDED && lib->ttl_ms > 0) {
        lib->lease_ms = lib->call.end_ms + lib->ttl_ms;
        if (lib->lease_ms > (int64_t)c->limits.max_lease_ms) {
            return refuse_lease(lib, c->limits.max_lease_ms);
        }
    }
    return goes_to(c, lib, library_acts(lib), 0);
}

bool library_goes_on(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply)
{
    if (is_failure(reply)) {
        lib->phase = LIBRARY_DONE;
        return false;
    }
    switch (lib->phase) {
    case LIBRARY_REMEMBERS:
        return on_remembered(c, lib, reply);
    case LIBRARY_COMPARES:
        return on_compared(c, lib, reply);
    case LIBRARY_QUERIES:
        return on_queried(c, lib, reply);
    case LIBRARY_CHECKS:
        return on_checked(c, lib, reply);
    case LIBRARY_EXPLAINS:
        return on_explained(c, lib, reply);
    case LIBRARY_TAKES:
        return on_taken(c, lib, reply);
    case LIBRARY_EXTENDS:
    case LIBRARY_RELEASES:
        return on_acted(c, lib, reply);
    case LIBRARY_DONE:
        break;
    }
    return false;
}

/* --- the reply ---------------------------------------------------------- */

static const struct lock_reply *reply_of(const struct library_call *lib)
{
    return &lib->call.replies[lib->state];
}

static bool is_null(const struct library_call *lib, const struct lock_reply *r)
{
    return r->kind == LOCK_REPLY_NULL ||
           (r->kind == LOCK_REPLY_VALUE && lib->state == LOCK_KEY_FREE &&
            lib->done == 0);
}

/* The time to live, in units of so many ms. A lock that was found taken has at least
 * one left: to some libraries 0 means that the lock is theirs. */
static int64_t ttl_in(const struct library_call *lib, int64_t unit_ms)
{
    int64_t ttl = lib->ttl_ms < 0 ? lib->ttl_ms : (lib->ttl_ms + unit_ms / 2) / unit_ms;

    if (lib->state == LOCK_KEY_FREE && lib->done == 0) {
        return -2;
    }
    return ttl == 0 && lock_call_takes(lib->call.kind) ? 1 : ttl;
}

/* A script's own status or error: one line, whatever it is made of. */
static void write_line(struct buf *out, const char *sign, struct span text)
{
    buf_add_str(out, sign);
    for (size_t i = 0; i < text.len; i++) {
        bool control = (unsigned char)text.ptr[i] < ' ';

        buf_add(out, control ? " " : &text.ptr[i], 1);
    }
    buf_add_str(out, "\r\n");
}

/* A reply that is no list, or an item of one. */
static void write_reply(struct buf *out, int proto, const struct library_call *lib,
                        const struct lock_reply *r)
{
    if (is_null(lib, r)) {
        resp_null(out, proto);
        return;
    }
    switch (r->kind) {
    case LOCK_REPLY_INTEGER:
        resp_int(out, r->integer);
        break;
    case LOCK_REPLY_STATUS:
        write_line(out, "+", r->text);
        break;
    case LOCK_REPLY_BULK:
        resp_bulk(out, r->text);
        break;
    case LOCK_REPLY_ERROR:
        write_line(out, "-", r->text);
        break;
    case LOCK_REPLY_PLAIN_ERROR:
        write_line(out, "-ERR ", r->text);
        break;
    case LOCK_REPLY_WRONG_TYPE:
        resp_error(out, LATCHD_ERR_WRONGTYPE,
                   SPAN("Operation against a key holding the wrong kind of value"));
        break;
    case LOCK_REPLY_KEY_COUNT:
        resp_int(out, (int64_t)lib->call.key_count);
        break;
    case LOCK_REPLY_DONE_COUNT:
        resp_int(out, (int64_t)lib->done);
        break;
    case LOCK_REPLY_VALUE:
        resp_bulk(out, buf_span(&lib->held));
        break;
    case LOCK_REPLY_TTL_MS:
        resp_int(out, ttl_in(lib, 1));
        break;
    case LOCK_REPLY_TTL_S:
        resp_int(out, ttl_in(lib, 1000));
        break;
    case LOCK_REPLY_NULL:
    case LOCK_REPLY_LIST:
    case LOCK_REPLY_KINDS:
        resp_null(out, proto);
        break;
    }
}

void library_write(struct buf *out, int proto, const struct library_call *lib,
                   const struct effect_reply *reply)
{
    const struct lock_reply *r = reply_of(lib);

    if (is_failure(reply)) {
        resp_error(out, lock_error_word(reply->error), reply->text);
        return;
    }
    if (lib->is_others && lib->done == 0) {
        resp_error(out, LATCHD_ERR_NOPERM, SPAN(LIBRARY_IS_OTHERS));
        return;
    }
    if (lib->may_not_publish && lib->done > 0) {
        resp_error(out, LATCHD_ERR_NOPERM, SPAN(LIBRARY_NO_CHANNEL));
        return;
    }
    if (r->kind != LOCK_REPLY_LIST) {
        write_reply(out, proto, lib, r);
        return;
    }
    resp_array(out, r->item_count);
    for (unsigned i = 0; i < r->item_count; i++) {
        struct lock_reply item = lock_reply_item_at(r, i);

        write_reply(out, proto, lib, &item);
    }
}

enum outcome library_outcome(const struct library_call *lib,
                             const struct effect_reply *reply)
{
    if (is_failure(reply)) {
        return outcome_of_error(lock_error_word(reply->error));
    }
    if ((lib->is_others && lib->done == 0) || (lib->may_not_publish && lib->done > 0)) {
        return OUTCOME_NOPERM;
    }
    return is_null(lib, reply_of(lib)) ? OUTCOME_NULL : OUTCOME_OK;
}

void library_call_free(struct library_call *lib)
{
    if (lib != NULL) {
        buf_reset(&lib->value);
        buf_reset(&lib->pattern);
        buf_reset(&lib->held);
        free(lib);
    }
}

/* --- the copy that waits ------------------------------------------------ */

static size_t reply_bytes(const struct lock_call *call)
{
    size_t bytes = 0;

    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        const struct lock_reply *r = &call->replies[i];

        bytes += r->text.len;
        for (unsigned k = 0; k < r->item_count; k++) {
            bytes += r->items[k].text.len;
        }
    }
    return bytes;
}

static void copy_reply(struct lock_reply *r, char **at)
{
    r->text = span_put(at, r->text);
    for (unsigned i = 0; i < r->item_count; i++) {
        r->items[i].text = span_put(at, r->items[i].text);
    }
}

static bool has_key(const struct library_call *lib, struct span key)
{
    for (size_t i = 0; i < lib->key_count; i++) {
        if (span_eq(lib->keys[i], key)) {
            return true;
        }
    }
    return false;
}

/* Of several that are all or none, the same key counts once. */
static void copy_keys(struct library_call *lib, const struct lock_call *call, char **at)
{
    bool each = call->scope == LOCK_CALL_EACH_KEY;

    for (size_t i = 0; i < call->key_count; i++) {
        if (each || !has_key(lib, call->keys[i])) {
            lib->keys[lib->key_count++] = span_put(at, call->keys[i]);
        }
    }
}

static struct library_call *copy_call(const struct lock_call *call)
{
    size_t bytes = reply_bytes(call) + call->value.len + call->publish.channel.len +
                   call->publish.message.len;
    struct library_call *lib;
    char *at;

    for (size_t i = 0; i < call->key_count; i++) {
        bytes += call->keys[i].len;
    }
    lib = xcalloc(1, sizeof(*lib) + call->key_count * sizeof(struct span) + bytes);
    at = (char *)&lib->keys[call->key_count];
    lib->call = *call;
    copy_keys(lib, call, &at);
    lib->call.keys = lib->keys;
    lib->call.value = span_put(&at, call->value);
    lib->call.publish.channel = span_put(&at, call->publish.channel);
    lib->call.publish.message = span_put(&at, call->publish.message);
    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        copy_reply(&lib->call.replies[i], &at);
    }
    return lib;
}

/* The texts by which the engine knows the value: to take it, and to find it. */
static void make_texts(struct library_call *lib, const struct command_ctx *ctx)
{
    const struct lock_call *call = &lib->call;
    const struct watched_key *watched = library_watched(lib);
    const struct acl_user *user = ctx->client->user;
    struct span value = call->value;

    if (watched != NULL && watched->state == WATCH_VALUE_HOLD) {
        buf_add_span(&lib->pattern, buf_span(&watched->holder));
        return;
    }
    value_add_origin(&lib->value, span_of(user->name, user->name_len));
    if (call->compare == LOCK_COMPARE_NONE && !lib->overrides) {
        buf_add_span(&lib->pattern, buf_span(&lib->value));
    } else {
        buf_add_str(&lib->pattern, "*");
    }
    buf_add_str(&lib->value, ":");
    buf_add_str(&lib->pattern, ":");
    value_escape(&lib->value, value);
    if (call->compare == LOCK_COMPARE_NONE) {
        buf_add_str(&lib->pattern, "*");
    } else if (call->compare == LOCK_COMPARE_PREFIX && call->prefix_len <= value.len) {
        value_escape(&lib->pattern, span_of(value.ptr, call->prefix_len));
        buf_add_str(&lib->pattern, "*");
    } else {
        value_escape(&lib->pattern, value);
    }
}

/* --- what it comes to --------------------------------------------------- */

/* The lease to ask for, as far as it is known before; 0 and less: it is over. */
static int64_t lease_of(const struct cmd *c, const struct lock_call *call)
{
    switch (call->end) {
    case LOCK_END_NONE:
        return (int64_t)c->limits.endless_lease_ms;
    case LOCK_END_AT:
        return call->end_ms - (int64_t)(clock_wall_us() / 1000);
    case LOCK_END_IN:
    case LOCK_END_ADDED:
        break;
    }
    return call->end_ms;
}

/* Whether the call makes its keys endless. */
static bool library_is_endless(const struct library_call *lib)
{
    return lib->call.end == LOCK_END_NONE;
}

/* Whether the keys must be looked at before they are changed. */
static bool library_must_check(const struct library_call *lib)
{
    const struct lock_call *call = &lib->call;

    if (call->scope == LOCK_CALL_EACH_KEY) {
        return false;
    }
    return lib->key_count > 1 || call->end == LOCK_END_ADDED ||
           call->endless == LOCK_ENDLESS_REFUSED ||
           !lock_reply_eq(&call->replies[LOCK_KEY_MINE],
                          &call->replies[LOCK_KEY_MINE_ENDLESS]);
}

static enum library_phase first_phase(const struct library_call *lib)
{
    if (library_next_compared(lib, 0) != NULL) {
        return LIBRARY_COMPARES;
    }
    if (lock_call_is_query(lib->call.kind)) {
        return LIBRARY_QUERIES;
    }
    if (lock_call_takes(lib->call.kind)) {
        return LIBRARY_TAKES;
    }
    return library_must_check(lib) ? LIBRARY_CHECKS : library_acts(lib);
}

/* The watched key that a transaction acts on; NULL: nothing is watched. */
static const struct watched_key *library_watched(const struct library_call *lib)
{
    return lib->watch == NULL ? NULL : watch_find(lib->watch, lib->keys[0]);
}

/* The first watched key, from place `at` on, that has to be looked at: all but the
 * value hold that is acted on, which is compared in the same step. NULL: there is none.
 */
static const struct watched_key *library_next_compared(const struct library_call *lib,
                                                       size_t at)
{
    const struct watched_key *acted_on = library_watched(lib);

    for (; lib->watch != NULL && at < lib->watch->count; at++) {
        const struct watched_key *key = &lib->watch->keys[at];

        if (key != acted_on || key->state != WATCH_VALUE_HOLD) {
            return key;
        }
    }
    return NULL;
}

/* The phase that changes the keys. */
static enum library_phase library_acts(const struct library_call *lib)
{
    bool releases = lib->call.kind == LOCK_CALL_RELEASE ||
                    lib->call.kind == LOCK_CALL_FORCE_RELEASE || lib->lease_ms <= 0;

    return releases ? LIBRARY_RELEASES : LIBRARY_EXTENDS;
}

/* --- requests ----------------------------------------------------------- */

static void ask_to_take(struct cmd *c, struct library_call *lib)
{
    struct lock_req req = {
        .from = lib->from,
        .name = lib->keys[0],
        .terms = {
            .value = buf_span(&lib->value),
            .has = OPT_WAIT | (library_is_endless(lib) ? OPT_ENDLESS : OPT_LEASE),
            .wait_ms = lib->park_ms,
            .lease_ms = (uint64_t)lib->lease_ms,
            .user = lib->user,
        },
        .polls_since = lib->park_ms > 0 ? lib->asks_since_ms : 0,
    };

    if (lib->key_count > 1) {
        struct mlock_req many = { req.from,       req.terms,       lib->keys,
                                  lib->key_count, req.polls_since, SPAN_NONE };

        engine_mlock(c->env.engine, &many);
    } else {
        engine_lock(c->env.engine, &req);
    }
}

/* Makes the request of the phase. */
static void library_ask(struct cmd *c, struct library_call *lib)
{
    const struct watched_key *watched = library_watched(lib);
    struct hold_req req = {
        .from = lib->from,
        .lock_kind = KIND_PLAIN,
        .name = lib->phase == LIBRARY_COMPARES
                    ? watched_name(&lib->watch->keys[lib->key])
                    : lib->keys[lib->key],
        .value = buf_span(&lib->pattern),
        .token = watched == NULL ? 0 : watched->token,
        .user = lib->user,
        .overrides = lib->overrides,
    };

    switch (lib->phase) {
    case LIBRARY_REMEMBERS:
    case LIBRARY_COMPARES:
    case LIBRARY_QUERIES:
    case LIBRARY_CHECKS:
    case LIBRARY_EXPLAINS:
        engine_lock_info(c->env.engine, lib->from, req.name);
        break;
    case LIBRARY_TAKES:
        ask_to_take(c, lib);
        break;
    case LIBRARY_EXTENDS:
        req.lease_ms = (uint64_t)lib->lease_ms;
        req.endless = library_is_endless(lib);
        engine_renew(c->env.engine, &req);
        break;
    case LIBRARY_RELEASES:
        engine_unlock(c->env.engine, &req);
        break;
    case LIBRARY_DONE:
        break;
    }
}

/* --- the command -------------------------------------------------------- */

static const struct lock_syntax SYNTAX_KEY = { "", 0, RULE_NAME | RULE_TAKES };

/* Whether all keys may be names of locks. False: an error was written, or for who only
 * looks the reply that nothing is there. */
static bool check_keys(struct command_ctx *ctx, struct library_call *lib)
{
    char text[ARGS_ERROR_ROOM];
    struct lock_args args;

    if (lib->key_count > LATCHD_MLOCK_MAX ||
        (lib->key_count > 1 && lib->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND)) {
        ctx_error(ctx, LATCHD_ERR, "so many keys at once are not served");
        return false;
    }
    for (size_t i = 0; i < lib->key_count; i++) {
        if (lock_args_parse(&SYNTAX_KEY, &ctx->cmd->limits, &lib->keys[i], 1, &args,
                            text)) {
            continue;
        }
        if (lock_call_is_query(lib->call.kind)) {
            struct effect_reply nothing = { .kind = REPLY_NULL };

            library_write(ctx->out, ctx->proto, lib, &nothing);
        } else {
            ctx_error(ctx, LATCHD_ERR, "%s", text);
        }
        return false;
    }
    return true;
}

static bool check_value(struct command_ctx *ctx, const struct lock_call *call)
{
    if (call->value.len > LATCHD_VALUE_MAX) {
        ctx_error(ctx, LATCHD_ERR, "the value of a lock must be at most %d bytes",
                  LATCHD_VALUE_MAX);
        return false;
    }
    if (lock_call_takes(call->kind) &&
        span_starts(call->value, SPAN(LATCHD_RESERVED_OWNER_PREFIX))) {
        ctx_error(ctx, LATCHD_ERR, "the value of a lock must not begin with '%s'",
                  LATCHD_RESERVED_OWNER_PREFIX);
        return false;
    }
    return true;
}

static bool check_lease(struct command_ctx *ctx, const struct library_call *lib)
{
    uint64_t most = ctx->cmd->limits.max_lease_ms;

    if (lib->call.end != LOCK_END_NONE && lib->lease_ms > 0 &&
        (uint64_t)lib->lease_ms > most) {
        ctx_error(ctx, LATCHD_ERR, LIBRARY_LEASE_TOO_LONG, most);
        return false;
    }
    return true;
}

/* Looks whether the user may publish as the call would, if it does at all. As at a
 * Redis, the release goes on without, and is answered with an error. */
static void check_publish(struct command_ctx *ctx, struct library_call *lib)
{
    const struct acl_user *user = ctx->client->user;
    struct span channel = lib->call.publish.channel;

    if (channel.ptr == NULL || permissions_may_channel(&user->terms, channel)) {
        return;
    }
    acl_check_denied(ctx, DENIAL_CHANNEL, channel, span_of(user->name, user->name_len));
    lib->may_not_publish = true;
}

static void begin_call(struct command_ctx *ctx, struct library_call *lib)
{
    ctx->library = lib;
    lib->from = ctx_wait(ctx);
    library_ask(ctx->cmd, lib);
}

void library_begin(struct command_ctx *ctx, const struct lock_call *call)
{
    struct library_call *lib = copy_call(call);

    lib->user = ctx->client->user->id;
    lib->overrides = ctx_overrides(ctx);
    lib->lease_ms = lease_of(ctx->cmd, call);
    lib->first = LOCK_KEY_MINE;
    lib->watch =
        multi_is_running(ctx->client->multi) ? multi_watch(ctx->client->multi) : NULL;
    lib->phase = first_phase(lib);
    if (lib->phase == LIBRARY_COMPARES) {
        lib->key = (size_t)(library_next_compared(lib, 0) - lib->watch->keys);
    }
    if (!check_value(ctx, call) || !check_keys(ctx, lib) || !check_lease(ctx, lib)) {
        library_call_free(lib);
        return;
    }
    if (lock_call_takes(call->kind) && lib->lease_ms <= 0) {
        /* Redis would say OK, and keep nothing: nobody is told of such a lock. */
        struct effect_reply in_vain = { .kind = REPLY_NULL };

        library_end_in_vain(lib);
        library_write(ctx->out, ctx->proto, lib, &in_vain);
        library_call_free(lib);
        return;
    }
    make_texts(lib, ctx);
    check_publish(ctx, lib);
    library_choose_park(ctx, lib);
    begin_call(ctx, lib);
}

void library_begin_watch(struct command_ctx *ctx, const struct span *keys,
                         size_t key_count)
{
    struct lock_call call = { .kind = LOCK_CALL_EXISTS,
                              .scope = LOCK_CALL_EACH_KEY,
                              .keys = keys,
                              .key_count = key_count };
    struct library_call *lib;

    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        call.replies[i] =
            (struct lock_reply){ .kind = LOCK_REPLY_STATUS, .text = SPAN("OK") };
    }
    lib = copy_call(&call);
    lib->phase = LIBRARY_REMEMBERS;
    lib->watch = multi_watch(ctx->client->multi);
    if (check_keys(ctx, lib)) {
        begin_call(ctx, lib);
    } else {
        library_call_free(lib);
    }
}
