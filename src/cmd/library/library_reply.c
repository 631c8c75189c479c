#include "cmd/library/library_reply.h"

#include "cmd/cmd_priv.h"
#include "cmd/library/library_publish.h"
#include "cmd/library/value_text.h"
#include "engine/value_hold.h"

#include <inttypes.h>

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
    const struct info_hold *hold;
    struct span origin, value;
    bool fits;

    buf_clear(&lib->held);
    lib->ttl_ms = reply->kind == REPLY_INFO ? reply->info->ttl_ms : reply->value;
    if (reply->kind != REPLY_INFO) {
        buf_add_span(&lib->held, reply->data.ptr != NULL
                                     ? reply->data
                                     : SPAN(LATCHD_VALUE_OF_OTHERS));
        return state_of_held(lib, false, lib->ttl_ms == -1);
    }
    if (reply->info->state == LOCK_STATE_LENT_ELSEWHERE) {
        buf_add_str(&lib->held, LATCHD_VALUE_OF_OTHERS);
        return state_of_held(lib, false, false);
    }
    if (reply->info->hold_count == 0) {
        lib->ttl_ms = -2;
        return LOCK_KEY_FREE;
    }
    hold = &reply->info->holds[0];
    if (!value_field_split(hold->owner, &origin, &value)) {
        buf_printf(&lib->held, LATCHD_VALUE_OF_OTHERS "%" PRIu64, hold->token);
        return state_of_held(lib, false, false);
    }
    value_unescape(&lib->held, value);
    if (hold->lease == LEASE_ENDLESS) {
        lib->ttl_ms = -1;
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

void library_end_in_vain(struct library_call *lib)
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
    /* What failed and would not fail now failed all the same. */
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
        lib->ttl_ms = library_is_endless(lib) ? -1 : lib->lease_ms;
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
            library_publish(c, lib);
        }
        lib->done++;
        lib->ttl_ms = lib->phase != LIBRARY_EXTENDS ? -2
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
