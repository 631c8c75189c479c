#include "cmd/library/library_reply.h"

#include "cmd/cmd_priv.h"
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

/* Takes in who holds a key. Other data, and a read/write lock, are somebody else's. */
static enum lock_call_state read_info(struct library_call *lib,
                                      const struct effect_reply *reply)
{
    const struct info_hold *hold;
    struct span origin, value;

    buf_clear(&lib->held);
    lib->ttl_ms = reply->kind == REPLY_INFO ? reply->info->ttl_ms : reply->value;
    if (reply->kind != REPLY_INFO) {
        buf_add_span(&lib->held, reply->data.ptr != NULL
                                     ? reply->data
                                     : SPAN(LATCHD_VALUE_OF_OTHERS));
        return LOCK_KEY_OTHERS;
    }
    if (reply->info->state == LOCK_STATE_LENT_ELSEWHERE) {
        buf_add_str(&lib->held, LATCHD_VALUE_OF_OTHERS);
        return LOCK_KEY_OTHERS;
    }
    if (reply->info->hold_count == 0) {
        lib->ttl_ms = -2;
        return LOCK_KEY_FREE;
    }
    hold = &reply->info->holds[0];
    if (!value_field_split(hold->owner, &origin, &value)) {
        buf_printf(&lib->held, LATCHD_VALUE_OF_OTHERS "%" PRIu64, hold->token);
        return LOCK_KEY_OTHERS;
    }
    value_unescape(&lib->held, value);
    if (hold->lease == LEASE_ENDLESS) {
        lib->ttl_ms = -1;
    }
    if (!value_field_fits(hold->owner, buf_span(&lib->pattern))) {
        return LOCK_KEY_OTHERS;
    }
    return hold->lease == LEASE_ENDLESS ? LOCK_KEY_MINE_ENDLESS : LOCK_KEY_MINE;
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

/* Whether the reply to what was done in vain depends on who holds. */
static bool must_look(const struct library_call *lib, enum lock_call_state other)
{
    const struct lock_reply *a = &lib->call.replies[LOCK_KEY_OTHERS];
    const struct lock_reply *b = &lib->call.replies[other];

    return lib->call.scope == LOCK_CALL_ALL_OR_NONE &&
           lib->call.compare != LOCK_COMPARE_NONE && !lib->keys_checked &&
           (tells_what_is_there(a) || tells_what_is_there(b) || !lock_reply_eq(a, b));
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
    if (may_be_mine) {
        return goes_to(c, lib, LIBRARY_EXTENDS, 0);
    }
    if (must_look(lib, LOCK_KEY_MINE)) {
        lib->keys_checked = true;
        return goes_to(c, lib, LIBRARY_LOOKS, 0);
    }
    return ends_with(lib, LOCK_KEY_OTHERS);
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

/* EXEC is answered null. */
static bool ends_changed(struct library_call *lib)
{
    lib->watch->changed = true;
    return ends_with(lib, LOCK_KEY_FREE);
}

/* A free key, or somebody else's, is left alone: it may be anybody's by now. */
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
    return library_watched(lib)->state == WATCH_VALUE_HOLD
               ? goes_to(c, lib, library_acts(lib), 0)
               : ends_with(lib, LOCK_KEY_FREE);
}

/* --- what was done -------------------------------------------------------- */

/* The key is free, or somebody else's. */
static enum lock_call_state state_in_vain(const struct library_call *lib)
{
    return lib->call.compare == LOCK_COMPARE_NONE ? LOCK_KEY_FREE : LOCK_KEY_OTHERS;
}

/* A command without a value must not tell another user's lock as a free one. */
static bool must_look_whose(const struct library_call *lib)
{
    return lib->call.compare == LOCK_COMPARE_NONE && !lib->overrides &&
           lib->phase != LIBRARY_LOOKS_WHOSE;
}

static bool goes_to_next(struct cmd *c, struct library_call *lib)
{
    if (lib->key + 1 < lib->key_count) {
        return goes_to(c, lib, library_acts(lib), lib->key + 1);
    }
    if (lib->done == 0 && lib->is_others) {
        return ends_with(lib, LOCK_KEY_OTHERS);
    }
    return ends_with(lib, lib->done > 0 ? LOCK_KEY_MINE : state_in_vain(lib));
}

static bool on_looked_whose(struct cmd *c, struct library_call *lib,
                            const struct effect_reply *reply)
{
    struct span origin, value;

    if (reply->kind == REPLY_INFO && reply->info->hold_count > 0 &&
        value_field_split(reply->info->holds[0].owner, &origin, &value) &&
        !value_field_fits(reply->info->holds[0].owner, buf_span(&lib->pattern))) {
        lib->is_others = true;
    }
    return goes_to_next(c, lib);
}

static bool on_acted(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply)
{
    bool each = lib->call.scope == LOCK_CALL_EACH_KEY;

    if (lib->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND) {
        library_note_poller(c, lib, is_done(reply));
    }
    if (lib->watch != NULL && !is_done(reply)) {
        return ends_changed(lib);
    }
    if (is_done(reply)) {
        lib->done++;
        lib->ttl_ms = lib->phase != LIBRARY_EXTENDS ? -2
                      : library_is_endless(lib)     ? -1
                                                    : reply->value;
        buf_clear(&lib->held);
        buf_add_span(&lib->held, lib->call.value);
    } else if (must_look_whose(lib)) {
        return goes_to(c, lib, LIBRARY_LOOKS_WHOSE, lib->key);
    } else if (!each && must_look(lib, LOCK_KEY_FREE)) {
        lib->keys_checked = true;
        return goes_to(c, lib, LIBRARY_LOOKS, lib->key);
    } else if (!each) {
        return ends_with(lib, state_in_vain(lib));
    }
    return goes_to_next(c, lib);
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

/* A look that comes before anything is done. */
static bool looks_first(const struct library_call *lib)
{
    return !lib->keys_checked &&
           (lib->call.kind == LOCK_CALL_EXTEND || lib->call.kind == LOCK_CALL_RELEASE);
}

static bool may_act_on(const struct library_call *lib, enum lock_call_state state)
{
    bool refused = state == LOCK_KEY_MINE_ENDLESS &&
                   lib->call.kind == LOCK_CALL_EXTEND &&
                   lib->call.endless == LOCK_ENDLESS_REFUSED;

    return is_mine(state) && !refused;
}

static bool on_looked(struct cmd *c, struct library_call *lib,
                      const struct effect_reply *reply)
{
    enum lock_call_state state = read_info(lib, reply);
    bool last = lib->key + 1 == lib->key_count;

    if (lib->call.kind == LOCK_CALL_EXISTS) {
        lib->done += state != LOCK_KEY_FREE;
        return last ? ends_with(lib, state)
                    : goes_to(c, lib, LIBRARY_LOOKS, lib->key + 1);
    }
    if (!looks_first(lib) || !may_act_on(lib, state)) {
        /* What failed and would not fail now failed all the same. */
        bool was_mine =
            lib->keys_checked && is_mine(state) && lib->call.kind != LOCK_CALL_ACQUIRE;
        bool was_free = lib->keys_checked && state == LOCK_KEY_FREE &&
                        lock_call_takes(lib->call.kind);

        return ends_with(lib, was_mine || was_free ? LOCK_KEY_OTHERS : state);
    }
    if (!last) {
        return goes_to(c, lib, LIBRARY_LOOKS, lib->key + 1);
    }
    lib->keys_checked = true;
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
    case LIBRARY_LOOKS:
        return on_looked(c, lib, reply);
    case LIBRARY_TAKES:
        return on_taken(c, lib, reply);
    case LIBRARY_EXTENDS:
    case LIBRARY_RELEASES:
        return on_acted(c, lib, reply);
    case LIBRARY_LOOKS_WHOSE:
        return on_looked_whose(c, lib, reply);
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

static int64_t whole_seconds(int64_t ms)
{
    return ms < 0 ? ms : (ms + 500) / 1000;
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
        resp_int(out, lib->state == LOCK_KEY_FREE && lib->done == 0 ? -2 : lib->ttl_ms);
        break;
    case LOCK_REPLY_TTL_S:
        resp_int(out, whole_seconds(lib->state == LOCK_KEY_FREE && lib->done == 0
                                        ? -2
                                        : lib->ttl_ms));
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
    if (lib->is_others && lib->done == 0) {
        return OUTCOME_NOPERM;
    }
    return is_null(lib, reply_of(lib)) ? OUTCOME_NULL : OUTCOME_OK;
}
