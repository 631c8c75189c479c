/* The stage `engine`: the lock engine on a workbench, support/engine.h: the scenario
 * plays time, clients and Redis.
 *
 * Clients are numbers. `1: LOCK job WAIT 0` asks, `1 -> 100` hears the oldest reply,
 * which must be that client's; `1 -> ...` says that nobody was told anything. The
 * oldest op is answered by its kind: `acquire: ok token=100 count=1 -> name=job`.
 * Without an answer it is only taken, and `answer ok token=100` answers the last one
 * that was. */
#include "cmd/cmd.h"
#include "cmd/lock_args.h"
#include "scenarios/engine_fields.h"
#include "scenarios/op_fields.h"
#include "support/engine.h"
#include "support/op_words.h"
#include "support/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAKEN_MAX = 8 };

static struct engine_fixture e;
static struct engine_config config;

/* Ops that were taken and not answered. */
static struct seen_op taken[TAKEN_MAX];
static size_t taken_count;

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- ops ------------------------------------------------------------------------ */

static void show_claim(const struct claim *c, struct value *ret)
{
    scn_put_text(ret, "lock_kind", "%s", LOCK_KINDS[c->lock_kind]);
    scn_put_text(ret, "owner_kind", "%s", OWNER_KINDS[c->owner_kind]);
    scn_put_int(ret, "claim_lease_ms", (int64_t)c->lease_ms);
    put_claim_fields(ret, c);
    scn_put_text(ret, "data", "%.*s", (int)c->data.len, c->data.ptr);
}

/* Since when the members wait, if the op tells it. */
static void show_waited(const struct seen_op *op, struct value *ret)
{
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; op->op.queue.waited_ms != NULL && i < op->op.queue.count &&
                       i < ENGINE_WAITED_MAX;
         i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu64,
                                i == 0 ? "" : " ", op->waited_ms[i]);
    }
    scn_put_text(ret, "waited_ms", "%s", text);
}

/* Several names, or several members. */
static void show_list(const struct seen_op *op, struct value *ret)
{
    char text[1024] = "", blocks[1024] = "";
    size_t len = 0, blocks_len = 0;

    for (size_t i = 0; i < op_item_count(&op->op) && len < sizeof text; i++) {
        len += (size_t)snprintf(
            text + len, sizeof text - len, "%s%s", i == 0 ? "" : " ",
            op->op.kind == OP_RENEW ? op->item_names[i] : op->batch[i]);
        if (op->op.kind == OP_ACQUIRE_BATCH && blocks_len < sizeof blocks) {
            blocks_len +=
                (size_t)snprintf(blocks + blocks_len, sizeof blocks - blocks_len,
                                 "%s%" PRIu32, i == 0 ? "" : " ", op->blocks_us[i]);
        }
    }
    scn_put_text(ret, "blocks_us", "%s", blocks);
    scn_put_text(ret, "names", "%s", text);
    scn_put_int(ret, "items", (int64_t)op_item_count(&op->op));
    scn_put_text(ret, "members", "%s", op->members);
}

static void show_op(const struct seen_op *op, struct value *ret)
{
    const struct claim *claim = op_claim(&op->op);

    scn_put_text(ret, "", "%s", OP_WORDS[op->op.kind]);
    scn_put_text(ret, "name", "%s", op->name);
    scn_put_text(ret, "field", "%s", op->field);
    scn_put_text(ret, "entry", "%s", op->entry);
    scn_put_text(ret, "member", "%s", op->member);
    scn_put_text(ret, "target_field", "%s", op->target_field);
    scn_put_text(ret, "target_entry", "%s", op->target_entry);
    put_op_fields(ret, &op->op, op->items);
    if (claim != NULL) {
        show_claim(claim, ret);
    }
    if (op->op.kind == OP_RELEASE || op->op.kind == OP_ATTACH) {
        const struct target *t =
            op->op.kind == OP_RELEASE ? &op->op.release.target : &op->op.attach.target;

        scn_put_text(ret, "target", "%s", TARGETS[t->kind]);
        scn_put_text(ret, "target_kind", "%s", LOCK_KINDS[t->lock_kind]);
    }
    if (op->op.kind == OP_RELEASE) {
        scn_put_text(ret, "yield", "%s", YIELDS[op->op.release.yield]);
    }
    if (op->op.kind == OP_LATCH) {
        scn_put_text(ret, "verb", "%s", LATCH_VERBS[op->op.latch.verb]);
    }
    if (op->op.kind == OP_RENEW) {
        scn_put_text(ret, "kind", "%s", LOCK_KINDS[op->items[0].lock_kind]);
    }
    if (op->op.kind == OP_QUEUE) {
        show_waited(op, ret);
    }
    show_list(op, ret);
}

/* The fair queue that INSPECT finds, between blanks; the text lives as long as its
 * step.
 */
static void read_queue(const char *text, struct op_result *ret)
{
    static struct span members[ENGINE_WAITED_MAX];
    size_t count = 0;

    for (; *text != '\0' && count < ENGINE_WAITED_MAX; text += *text == ' ') {
        members[count] = span_of(text, strcspn(text, " "));
        text += members[count++].len;
    }
    ret->inspect.queue = members;
    ret->inspect.queue_count = count;
}

/* `kind=read`, a text, or a number; `holder=ann`: INSPECT finds that field alone;
 * `queue=redisson:1`: that is its fair queue. */
static void read_result_word(const char *word, struct op_result *ret)
{
    static struct op_field holder;
    int kind = read_choice(word, "kind", LOCK_KINDS, LOCK_KIND_COUNT);
    int state = read_choice(word, "state", LATCH_STATES, LATCH_STATE_COUNT);
    const char *owner = scn_option(word, "holder");
    const char *queue = scn_option(word, "queue");

    if (queue != NULL) {
        read_queue(queue, ret);
        return;
    }
    if (kind >= 0) {
        ret->lock_kind = (enum lock_kind)kind;
        return;
    }
    if (state >= 0) {
        ret->latch.state = (enum latch_state)state;
        return;
    }
    if (owner != NULL) {
        holder = (struct op_field){ .owner = span_str(owner), .count = 1 };
        ret->inspect.fields = &holder;
        ret->inspect.field_count = 1;
        return;
    }
    set_result_field(ret, word);
}

/* The status, then what else the result has. */
static void read_result(const struct scn_words *words, size_t from,
                        struct op_result *ret)
{
    int status =
        find_word(OP_STATUS_WORDS, OP_STATUS_WORD_COUNT, scn_word(words, from));

    if (status < 0) {
        scn_fail("'%s' is no status of an op", words->at[from]);
    }
    *ret = (struct op_result){ .status = (enum op_status)status };
    for (size_t i = from + 1; i < words->count; i++) {
        read_result_word(words->at[i], ret);
    }
}

/* `renew: ok`: each item is that; `renew: gone ok`: one after the other. Of the op as a
 * whole: `renew: late`, `renew: status=noreplicas gone`. */
static void answer_renew(const struct seen_op *op, const struct scn_words *words,
                         size_t from)
{
    enum renew_result items[OP_RENEW_MAX];
    struct op_result r = { .status = OP_OK, .renew.items = items };

    int status =
        read_choice(words->at[from], "status", OP_STATUS_WORDS, OP_STATUS_WORD_COUNT);

    if (status >= 0) {
        r.status = (enum op_status)status;
        from++;
    }
    r.renew.count = from < words->count ? op->op.renew.count : 0;
    for (size_t i = 0; i < r.renew.count; i++) {
        size_t at = from + i < words->count ? from + i : words->count - 1;
        int item = find_word(RENEW_WORDS, RENEW_WORD_COUNT, words->at[at]);

        if (item < 0) {
            read_result(words, from, &r);
            break;
        }
        items[i] = (enum renew_result)item;
    }
    fixture_answer(&e, op, r);
}

/* `batch: 10 11 attached=1 busy ttl=5`, `batch: 1..100`: tokens of those that are
 * granted and what else their results have, then what the next one got; `skipped`
 * before it are others. */
static void answer_batch(const struct seen_op *op, const struct scn_words *words,
                         size_t from)
{
    struct op_result results[ENGINE_MANY_MAX] = { 0 };
    struct op_result r = { .status = OP_OK, .batch.results = results };
    size_t i = from;

    for (; i < words->count && strtoull(words->at[i], NULL, 10) != 0; i++) {
        char *end;
        uint64_t token = strtoull(words->at[i], &end, 10);
        uint64_t last = *end == '.' ? strtoull(end + 2, NULL, 10) : token;

        for (; token <= last; token++) {
            ck_assert_uint_lt(r.batch.count, ENGINE_MANY_MAX);
            results[r.batch.count].token = token;
            results[r.batch.count++].count = 1;
        }
    }
    for (; i < words->count && strchr(words->at[i], '=') != NULL; i++) {
        for (size_t k = 0; k < r.batch.count; k++) {
            read_result_word(words->at[i], &results[k]);
        }
    }
    for (; i < words->count && strcmp(words->at[i], "skipped") == 0; i++) {
        results[r.batch.count++].status = OP_SKIPPED;
    }
    if (i < words->count) {
        read_result(words, i, &results[r.batch.count]);
        if (i == from && results[0].status != OP_BUSY) {
            r = results[0]; /* of the op as a whole */
        } else {
            r.batch.count++;
        }
    }
    fixture_answer(&e, op, r);
}

static void answer(const struct seen_op *op, const struct scn_words *words, size_t from)
{
    struct op_result r;

    if (op->op.kind == OP_RENEW) {
        answer_renew(op, words, from);
    } else if (op->op.kind == OP_ACQUIRE_BATCH) {
        answer_batch(op, words, from);
    } else {
        read_result(words, from, &r);
        fixture_answer(&e, op, r);
    }
}

/* The oldest op is of that kind, and is shown; with words it is answered, too. */
static void do_op(enum op_kind kind, const struct scn_words *words, struct value *ret)
{
    struct seen_op op;

    if (e.op_count > 0 && e.ops[0].op.kind != kind) {
        scn_fail("the oldest op is %s, not %s", OP_WORDS[e.ops[0].op.kind],
                 OP_WORDS[kind]);
    }
    fixture_take_op(&e, kind, &op);
    show_op(&op, ret);
    if (words->count > 0) {
        answer(&op, words, 0);
        return;
    }
    ck_assert_uint_lt(taken_count, TAKEN_MAX);
    taken[taken_count++] = op;
}

#define OP_VERB(verb, KIND)                                                            \
    static void do_##verb(const struct scn_words *words, struct value *ret)            \
    {                                                                                  \
        do_op(KIND, words, ret);                                                       \
    }
OP_VERB(acquire, OP_ACQUIRE)
OP_VERB(batch, OP_ACQUIRE_BATCH)
OP_VERB(release, OP_RELEASE)
OP_VERB(renew, OP_RENEW)
OP_VERB(attach, OP_ATTACH)
OP_VERB(restore, OP_RESTORE)
OP_VERB(inspect, OP_INSPECT)
OP_VERB(queue, OP_QUEUE)
OP_VERB(leave, OP_LEAVE)
OP_VERB(limit, OP_LIMIT)
OP_VERB(latch, OP_LATCH)

/* `answer ok token=7`: the op that was taken last; `answer @1 ok`: the one before. */
static void do_answer(const struct scn_words *words, struct value *ret)
{
    bool told = *scn_word(words, 0) == '@';
    size_t back = told ? strtoul(words->at[0] + 1, NULL, 10) : 0;
    struct seen_op op;

    (void)ret;
    if (back >= taken_count) {
        scn_fail("no such op was taken");
    }
    op = taken[taken_count - 1 - back];
    for (size_t i = taken_count - back; i < taken_count; i++) {
        taken[i - 1] = taken[i];
    }
    taken_count--;
    answer(&op, words, told ? 1 : 0);
}

/* `serve 400 acquire busy ttl=30000 -> >=6`: time passes, and each such op is answered
 * with that at once; so many there were. */
static void do_serve(const struct scn_words *words, struct value *ret)
{
    int kind = find_word(OP_WORDS, OP_SCAN, scn_word(words, 1));
    struct seen_op op;
    int64_t count = 0;

    if (kind < 0) {
        scn_fail("there is no op '%s'", words->at[1]);
    }
    for (int64_t ms = scn_number(words, 0); ms > 0; ms--) {
        fixture_pass(&e, 1);
        for (; e.op_count > 0; count++) {
            fixture_take_op(&e, (enum op_kind)kind, &op);
            answer(&op, words, 2);
        }
    }
    scn_int(ret, count);
}

static void do_no_op(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    if (e.op_count > 0) {
        scn_fail("the engine asked Redis for %s %s", OP_WORDS[e.ops[0].op.kind],
                 e.ops[0].name);
    }
}

/* The oldest op, which stays there. */
static void do_next(const struct scn_words *words, struct value *ret)
{
    (void)words;
    if (e.op_count > 0) {
        show_op(&e.ops[0], ret);
    }
}

/* Nobody has been told anything that was not heard. */
static void do_silence(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    fixture_hears_nothing(&e);
}

/* How many ops are not taken yet. */
static void do_ops(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, (int64_t)e.op_count);
}

/* --- clients -------------------------------------------------------------------- */

static void parse(const struct lock_syntax *syntax, const struct scn_words *words,
                  struct lock_args *ret)
{
    static const struct cmd_limits LIMITS = {
        .max_name = 512,
        .max_lease_ms = UINT64_C(100) * 365 * 86400000,
        .max_keep_ms = 86400000,
        .watchdog_ms = 30000,
        .endless_lease_ms = 86400000,
    };
    static struct span argv[SCN_WORDS_MAX]; /* MLOCK: its names point here */
    char error[ARGS_ERROR_ROOM];

    for (size_t i = 1; i < words->count; i++) {
        argv[i - 1] = span_str(words->at[i]);
    }
    if (!lock_args_parse(syntax, &LIMITS, argv, words->count - 1, ret, error)) {
        scn_fail("%s: %s", words->at[0], error);
    }
}

static void ask_mlock(uint64_t conn, const struct lock_args *args)
{
    char names[2048] = "";
    size_t len = 0;

    for (size_t i = 0; i < args->name_count; i++) {
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%.*s",
                                i == 0 ? "" : " ", (int)args->names[i].len,
                                args->names[i].ptr);
    }
    fixture_mlock(&e, conn, names, args->terms);
}

/* What no option says, but a script of a lock library does, or its connection. */
struct beside {
    struct span value;
    uint64_t polled_ms; /* 1 more than for how long it has polled; 0: it does not */
    uint32_t user;
    bool endless, overrides, tells_token, local;
};

static bool read_beside(const char *word, struct beside *ret)
{
    static const struct scn_field FIELDS[] = {
        SCN_FIELD(struct beside, user),        SCN_FIELD(struct beside, endless),
        SCN_FIELD(struct beside, local),       SCN_FIELD(struct beside, overrides),
        SCN_FIELD(struct beside, tells_token), SCN_FIELD(struct beside, polled_ms),
    };
    const char *value = scn_option(word, "value");

    if (value != NULL) {
        ret->value = span_str(value);
        return true;
    }
    for (size_t i = 0; i < COUNT(FIELDS); i++) {
        if (scn_option(word, FIELDS[i].name) != NULL) {
            scn_set_field(ret, &FIELDS[i], 1, word);
            ret->polled_ms += FIELDS[i].offset == offsetof(struct beside, polled_ms);
            return true;
        }
    }
    return false;
}

/* Takes such words off the end of the line. */
static struct beside take_beside(struct scn_words *words)
{
    struct beside ret = { 0 };

    while (words->count > 1 && read_beside(words->at[words->count - 1], &ret)) {
        words->count--;
    }
    return ret;
}

/* The calls of LOCKs; the last one is what `end-wait` ends. */
static uint64_t last_lock;

static void ask_lock(uint64_t conn, const struct lock_args *args,
                     const struct beside *beside)
{
    struct lock_req req = { .from = { conn, ++last_lock },
                            .name = args->name,
                            .terms = args->terms };

    if (beside->polled_ms > 0) {
        req.polls_since = e.now - (beside->polled_ms - 1);
    }
    engine_lock(e.engine, &req);
    fixture_collect(&e);
}

static struct hold_req hold_req_of(const struct lock_args *args,
                                   const struct beside *beside)
{
    return (struct hold_req){
        .value = beside->value,
        .user = beside->user,
        .endless = beside->endless,
        .overrides = beside->overrides,
        .tells_token = beside->tells_token,
        .lock_kind = args->terms.lock_kind,
        .owner = args->terms.owner,
        .id = args->terms.id,
        .to = args->to,
        .token = args->token,
        .lease_ms = args->terms.lease_ms,
        .any = (args->terms.has & OPT_ANY) != 0,
    };
}

static void ask_leader(uint64_t conn, const struct lock_args *args)
{
    const struct leader_req req = {
        .from = { conn, ++last_lock },
        .name = args->name,
        .after = args->after,
        .wait_ms = args->terms.wait_ms,
        .has_after = (args->terms.has & OPT_AFTER) != 0,
        .has_wait = (args->terms.has & OPT_WAIT) != 0,
    };

    engine_leader(e.engine, &req);
    fixture_collect(&e);
}

/* `LATCH AWAIT job WAIT 100`, `LATCH SET job 7`, `LATCH COUNT job ID r` */
static void ask_latch(uint64_t conn, const struct scn_words *words)
{
    static const char *const WORDS[] = { "SET", "COUNT", "AWAIT", "DELETE", "INFO" };
    int word = find_word(WORDS, COUNT(WORDS), scn_word(words, 1));
    struct latch_req req = { .from = { conn, ++last_lock } };

    if (word < 0) {
        scn_fail("'LATCH %s' is no command here", words->at[1]);
    }
    req.word = (enum latch_word)word;
    req.name = span_str(scn_word(words, 2));
    if (req.word == LATCH_SETS) {
        req.count = scn_number(words, 3);
    } else if (words->count > 3 && strcmp(words->at[3], "ID") == 0) {
        req.id = span_str(scn_word(words, 4));
    } else if (words->count > 3 && strcmp(words->at[3], "WAIT") == 0) {
        req.has_wait = true;
        req.wait_ms = (uint64_t)scn_number(words, 4);
    } else if (words->count > 3) {
        scn_fail("'%s' is no option here", words->at[3]);
    }
    engine_latch(e.engine, &req);
    fixture_collect(&e);
}

static const struct {
    const char *word;
    const struct lock_syntax *syntax;
    void (*of_hold)(struct engine_fixture *e, uint64_t conn, const char *name,
                    struct hold_req req);
} COMMANDS[] = {
    { "LOCK", &SYNTAX_LOCK, NULL },
    { "MLOCK", &SYNTAX_MLOCK, NULL },
    { "UNLOCK", &SYNTAX_UNLOCK, fixture_unlock },
    { "RENEW", &SYNTAX_RENEW, fixture_renew },
    { "FORCEUNLOCK", &SYNTAX_FORCEUNLOCK, fixture_force },
    { "CANCEL", &SYNTAX_CANCEL, NULL },
    { "LEADER", &SYNTAX_LEADER, NULL },
    { "LOCKINFO", &SYNTAX_LOCKINFO, NULL },
};

/* How many it ended, and whether others' are left. */
static void cancel(const struct lock_args *args, const struct beside *beside,
                   struct value *ret)
{
    struct hold_req req = hold_req_of(args, beside);
    bool others;

    req.name = args->name;
    scn_put_int(ret, "", (int64_t)engine_cancel(e.engine, &req, &others));
    scn_put_int(ret, "others", others);
    ck_assert(!others || beside->user != 0);
    fixture_collect(&e);
}

static void ask(uint64_t conn, const struct scn_words *said, struct value *ret)
{
    struct scn_words without = *said;
    const struct scn_words *words = &without;
    const struct beside beside = take_beside(&without);
    struct lock_args args;
    size_t i = 0;

    if (strcmp(words->at[0], "LATCH") == 0) {
        ask_latch(conn, words);
        return;
    }
    while (i < COUNT(COMMANDS) && strcmp(COMMANDS[i].word, words->at[0]) != 0) {
        i++;
    }
    if (i == COUNT(COMMANDS)) {
        scn_fail("'%s' is no command here", words->at[0]);
    }
    parse(COMMANDS[i].syntax, words, &args);
    args.terms.value = beside.value;
    args.terms.user = beside.user;
    args.terms.has |=
        (beside.endless ? OPT_ENDLESS : 0) | (beside.local ? OPT_LOCAL : 0);
    if (COMMANDS[i].of_hold != NULL) {
        COMMANDS[i].of_hold(&e, conn, words->at[1], hold_req_of(&args, &beside));
    } else if (COMMANDS[i].syntax == &SYNTAX_LOCK) {
        ask_lock(conn, &args, &beside);
    } else if (COMMANDS[i].syntax == &SYNTAX_MLOCK) {
        ask_mlock(conn, &args);
    } else if (COMMANDS[i].syntax == &SYNTAX_LEADER) {
        ask_leader(conn, &args);
    } else if (COMMANDS[i].syntax == &SYNTAX_LOCKINFO) {
        engine_lock_info(e.engine, (struct call_ref){ conn, 0 }, args.name);
        fixture_collect(&e);
    } else {
        cancel(&args, &beside, ret);
    }
}

static void show_error(const struct said *said, struct value *ret)
{
    static const char *const ERRORS[] = {
        [LOCK_ERR] = "ERR",
        [LOCK_WRONGTYPE] = "WRONGTYPE",
        [LOCK_NOTHELD] = "NOTHELD",
        [LOCK_DEADLOCK] = "DEADLOCK",
        [LOCK_BACKEND] = "BACKEND",
        [LOCK_LIMIT] = "LIMIT",
        [LOCK_GOAWAY] = "GOAWAY",
        [LOCK_NOPERM] = "NOPERM",
        [LOCK_UNBLOCKED] = "UNBLOCKED",
        [LOCK_NOREPLICAS] = "NOREPLICAS",
        [LOCK_CROSSSLOT] = "CROSSSLOT",
    };

    scn_text(ret, "%s%s%s", ERRORS[said->error], *said->text == '\0' ? "" : " ",
             said->text);
    ret->type = VALUE_ERROR;
}

static void show_info(const struct said *said, struct value *ret)
{
    static const char *const STATES[] = { "free",     "held", "uncertain",
                                          "withheld", "lent", "lent-elsewhere",
                                          "resting" };

    scn_put_text(ret, "", "info");
    scn_put_text(ret, "kind", "%s", LOCK_KINDS[said->info.lock_kind]);
    scn_put_text(ret, "state", "%s", STATES[said->info.state]);
    scn_put_text(ret, "lease", "%s", lease_kind_name(said->hold.lease));
    scn_put_int(ret, "ttl", said->info.ttl_ms);
    scn_put_int(ret, "free", said->info.free);
    scn_put_int(ret, "limit", said->info.limit);
    scn_put_int(ret, "waiting", (int64_t)said->info.waiting);
    scn_put_int(ret, "holds", (int64_t)said->info.hold_count);
    scn_put_text(ret, "queue", "%s", said->text);
    scn_put_text(ret, "owner", "%s", said->owner);
    scn_put_int(ret, "token", (int64_t)said->hold.token);
    scn_put_int(ret, "count", said->hold.count);
    scn_put_int(ret, "here", said->hold.here);
    scn_put_int(ret, "conn", (int64_t)said->hold.conn);
    scn_put_int(ret, "left_ms", (int64_t)said->hold.left_ms);
    scn_put_int(ret, "held_ms", (int64_t)said->hold.held_ms);
    scn_put_int(ret, "uncertain", said->hold.uncertain);
    scn_put_int(ret, "local", said->hold.local);
}

static void show_tokens(const struct said *said, struct value *ret)
{
    char text[1024] = "";
    size_t len = 0;

    for (size_t i = 0; i < said->token_count && len < sizeof text; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu64,
                                i == 0 ? "" : " ", said->tokens[i]);
    }
    scn_put_text(ret, "", "%s", text);
    scn_put_int(ret, "grant", (int64_t)said->grant);
}

/* The oldest reply, as far as it is a number it has `grant` and `token` beside it. */
static void show_reply(const struct said *said, struct value *ret)
{
    switch (said->kind) {
    case REPLY_TOKEN:
    case REPLY_INT:
        scn_put_int(ret, "", said->value);
        scn_put_int(ret, "grant", (int64_t)said->grant);
        scn_put_int(ret, "token", (int64_t)said->token);
        break;
    case REPLY_TOKENS:
        show_tokens(said, ret);
        break;
    case REPLY_ERROR:
        show_error(said, ret);
        break;
    case REPLY_INFO:
        show_info(said, ret);
        break;
    case REPLY_LATCH:
        scn_put_int(ret, "", said->value);
        scn_put_text(ret, "state", "%s", LATCH_STATES[said->latch_state]);
        scn_put_int(ret, "waiting", (int64_t)said->waiting);
        break;
    case REPLY_NULL:
        break;
    case REPLY_UNREACHED:
        scn_text(ret, "unreached");
        break;
    default:
        scn_text(ret, "%s", said->text);
        break;
    }
}

/* Of the reply that was heard last. */
static uint64_t heard_call;

static void say(const struct scn_saying *saying, struct value *ret)
{
    uint64_t conn = strtoull(saying->who, NULL, 10);
    struct said said;

    if (conn == 0) {
        scn_fail("'%s' is no client, as that is a number", saying->who);
    }
    if (saying->words->count > 0) {
        ask(conn, saying->words, ret);
    }
    if (saying->want == SCN_NOTHING || ret->type != VALUE_NIL) {
        return;
    }
    if (saying->want == SCN_SILENCE) {
        scn_text(ret, e.said_count == 0 ? "..." : "something");
        return;
    }
    if (e.said_count == 0 || e.said[0].to.conn != conn) {
        scn_text(ret, "...");
        return;
    }
    said = fixture_hears(&e, conn, e.said[0].kind);
    heard_call = said.to.call;
    show_reply(&said, ret);
}

/* `grant 1 100 LOCK job`: a whole LOCK of client 1, which Redis grants with that token.
 * Answers with the number of the grant. */
static void do_grant(const struct scn_words *words, struct value *ret)
{
    uint64_t conn = (uint64_t)scn_number(words, 0),
             token = (uint64_t)scn_number(words, 1);
    struct scn_words lock = { .count = words->count - 2 };
    struct beside beside;
    struct lock_args args;

    memcpy(lock.at, words->at + 2, lock.count * sizeof lock.at[0]);
    beside = take_beside(&lock);
    parse(&SYNTAX_LOCK, &lock, &args);
    args.terms.value = beside.value;
    args.terms.user = beside.user;
    scn_int(ret, (int64_t)fixture_grant(&e, conn, lock.at[1], args.terms, token));
}

static void do_close(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 0; i < words->count; i++) {
        fixture_close(&e, (uint64_t)scn_number(words, i));
    }
}

/* `undelivered 1 $grant` */
static void do_undelivered(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_undelivered(e.engine, (uint64_t)scn_number(words, 0),
                          (uint64_t)scn_number(words, 1));
    fixture_collect(&e);
}

/* How often the client has to be heard, and the one the net was told so last. */
static void do_heartbeat(const struct scn_words *words, struct value *ret)
{
    scn_put_int(ret, "",
                engine_conn_heartbeat(e.engine, (uint64_t)scn_number(words, 0)));
    scn_put_int(ret, "conn", (int64_t)e.heartbeat.conn);
    scn_put_int(ret, "every_ms", e.heartbeat.every_ms);
}

/* `unblock 1`, `unblock 1 error`: as CLIENT UNBLOCK does; 0: it does not wait. */
static void do_unblock(const struct scn_words *words, struct value *ret)
{
    scn_int(ret,
            engine_unblock(e.engine, (uint64_t)scn_number(words, 0), words->count > 1));
    fixture_collect(&e);
}

struct refused {
    struct span name;
    int64_t asked;
};

static bool is_refused(void *ctx, uint64_t call, struct span name)
{
    struct refused *r = ctx;

    r->asked++;
    return call != 0 && span_eq(name, r->name);
}

/* `refuse-waits 1 job -> 2`: its user may not wait for that any more; so many of its
 * waits were asked about. */
static void do_refuse_waits(const struct scn_words *words, struct value *ret)
{
    struct refused r = { .name = span_str(scn_word(words, 1)) };

    engine_refuse_waits(e.engine, (uint64_t)scn_number(words, 0), is_refused, &r);
    fixture_collect(&e);
    scn_int(ret, r.asked);
}

static void do_busy(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, engine_conn_busy(e.engine, (uint64_t)scn_number(words, 0)));
}

/* `run 1 3 a b c LOCAL -> 2`: LOCKs that came together on a connection; so many began.
 */
static void do_run(const struct scn_words *words, struct value *ret)
{
    uint64_t conn = (uint64_t)scn_number(words, 0);
    size_t count = (size_t)scn_number(words, 1);
    struct lock_req reqs[ENGINE_MANY_MAX] = { 0 };
    struct scn_words lock = { .count = words->count - count, .at = { "LOCK" } };
    struct lock_args args;

    ck_assert_uint_lt(count, ENGINE_MANY_MAX);
    ck_assert_uint_ge(words->count, count + 2);
    memcpy(lock.at + 2, words->at + 2 + count, (lock.count - 2) * sizeof lock.at[0]);
    for (size_t i = 0; i < count; i++) {
        lock.at[1] = words->at[2 + i];
        parse(&SYNTAX_LOCK, &lock, &args);
        reqs[i] = (struct lock_req){ .from = { conn, i + 1 },
                                     .name = args.name,
                                     .terms = args.terms };
    }
    scn_int(ret, (int64_t)engine_lock_batch(e.engine, reqs, count));
    fixture_collect(&e);
}

/* `1 -> nil`, `call -> 2`: that answered its second LOCK of a run. */
static void do_call(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, (int64_t)heard_call);
}

static void do_has_room(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, engine_has_room(e.engine));
}

/* `end-wait 2`: of its last LOCK; `end-wait 2 1`: of a call that it did not make. */
static void do_end_wait(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_end_wait(e.engine, (struct call_ref){
                                  (uint64_t)scn_number(words, 0),
                                  last_lock + (uint64_t)scn_number_or(words, 1, 0) });
    fixture_collect(&e);
}

/* `grant-state 1 $grant -> fresh` */
static void do_grant_state(const struct scn_words *words, struct value *ret)
{
    static const char *const STATES[] = {
        [GRANT_FRESH] = "fresh", [GRANT_STALE] = "stale", [GRANT_OVER] = "over"
    };

    scn_text(ret, "%s",
             STATES[engine_grant_state(e.engine, (uint64_t)scn_number(words, 0),
                                       (uint64_t)scn_number(words, 1))]);
}

/* `heard 0`: nobody hears of grants and releases. */
static void do_heard(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_set_heard(e.engine, scn_number(words, 0) != 0);
}

/* `follow job 1`: this daemon's clients hear of its leaders; 0: no more. */
static void do_follow(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_follow(e.engine, span_str(scn_word(words, 0)), scn_number(words, 1) != 0);
    fixture_collect(&e);
}

/* --- the engine and its Redis --------------------------------------------------- */

static uint64_t ahead_ms; /* so far the clock is ahead of the engine's time */

static uint64_t read_clock(void)
{
    return e.now + ahead_ms;
}

/* `clock 20`: so much later it is in the middle of a turn. */
static void do_clock(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    ahead_ms = (uint64_t)scn_number(words, 0);
}

static void begin(void)
{
    taken_count = 0;
    ahead_ms = 0;
    last_lock = 1000000;
    fixture_init(&e);
    config = e.config;
}

static void end(void)
{
    fixture_fini(&e);
}

/* Nothing happens by itself: `until` counts its rounds. */
static uint64_t rounds;

static void count_round(void)
{
    rounds++;
}

static uint64_t count_rounds(void)
{
    return rounds;
}

static void do_after(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fixture_pass(&e, (uint64_t)scn_number(words, 0));
}

/* Time goes on, and the engine is not called meanwhile. */
static void do_stall(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    e.now += (uint64_t)scn_number(words, 0);
    engine_tick(e.engine, e.now);
    fixture_collect(&e);
}

static void do_configure(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    for (size_t i = 0; i < words->count; i++) {
        set_engine_config(&config, words->at[i]);
    }
    engine_configure(e.engine, &config);
    fixture_collect(&e);
}

/* The names of a group begin with one letter of four. */
static uint32_t group_of(struct span name)
{
    return (uint32_t)(name.ptr[0] - 'a') % 4;
}

/* Another engine takes the place of the first one; the store is not up yet. `replace
 * quorum`: Redis is one; `replace groups`: names are in groups; `replace waiting 5000`:
 * it grants nothing for so long. */
static void do_replace(const struct scn_words *words, struct value *ret)
{
    const char *what = words->count > 0 ? words->at[0] : "";
    struct engine_setup setup = { .read_clock = read_clock,
                                  .quorum = strcmp(what, "quorum") == 0 };

    (void)ret;
    if (strcmp(what, "groups") == 0) {
        setup.group_of = group_of;
        setup.group_count = 4;
    }
    if (strcmp(what, "waiting") == 0) { /* each engine begins at the same time */
        setup.no_grants_until_ms = FIXTURE_BEGINS_MS + (uint64_t)scn_number(words, 1);
    }
    fixture_replace(&e, setup);
}

/* `store down`, `store up`, `store up other`: another server. */
static void do_store(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    if (strcmp(scn_word(words, 0), "down") == 0) {
        engine_on_store_down(e.engine);
    } else {
        engine_on_store_up(e.engine, words->count == 1);
    }
    fixture_collect(&e);
}

static bool is_that_group(void *ctx, unsigned group)
{
    return *(const unsigned *)ctx == group;
}

/* Of all groups, or of the one that is named. */
static void fail_over(const struct scn_words *words,
                      void (*event)(struct engine *, engine_concerns_fn *, void *))
{
    unsigned group = (unsigned)scn_number_or(words, 0, 0);

    event(e.engine, words->count > 0 ? is_that_group : NULL, &group);
    fixture_collect(&e);
}

static void do_failover(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fail_over(words, engine_on_failover);
}

/* The last failover lost nothing. */
static void do_lossless(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    fail_over(words, engine_on_lossless_failover);
}

/* `clock-behind 7000`: the clock of Redis, which was there. */
static void do_clock_behind(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_clock_behind(e.engine, (uint64_t)scn_number(words, 0));
    fixture_collect(&e);
}

/* This Redis has just started. */
static void do_young(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    engine_store_is_young(e.engine);
}

/* Announcements are received from now on. */
static void do_listening(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    engine_listening(e.engine);
    fixture_collect(&e);
}

static void do_clock_jump(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
}

/* `subscribed job`, with the number of the class behind it if it is not plain. */
static void do_subscribed(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_subscribed(e.engine, span_str(scn_word(words, 0)),
                         (enum lock_class)scn_number_or(words, 1, CLASS_PLAIN));
    fixture_collect(&e);
}

/* `watch 1000`: Redis tells of changes, of so many names; `watch 0`: of none. */
static void do_watch(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_watch(e.engine, (uint64_t)scn_number(words, 0), NULL, NULL);
    fixture_collect(&e);
}

/* `watched job`; `watched job missing` */
static void do_watched(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_watched(e.engine, span_str(scn_word(words, 0)), words->count > 1);
    fixture_collect(&e);
}

/* `touched job`; `touched`: any name. */
static void do_touched(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_touched(e.engine,
                      words->count == 0 ? SPAN_NONE : span_str(scn_word(words, 0)),
                      NULL, NULL);
    fixture_collect(&e);
}

/* `message job 0` */
static void do_message(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_on_message(e.engine, span_str(scn_word(words, 0)),
                      (enum lock_class)scn_number_or(words, 2, CLASS_PLAIN),
                      span_str(scn_word(words, 1)));
    fixture_collect(&e);
}

static void do_announced(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    engine_announced(e.engine, span_str(scn_word(words, 0)));
    fixture_collect(&e);
}

static void do_stop(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    engine_stop(e.engine);
    fixture_collect(&e);
}

static void do_stopped(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, engine_stopped(e.engine));
}

/* --- looks ---------------------------------------------------------------------- */

static void do_stats(const struct scn_words *words, struct value *ret)
{
    uint64_t next = engine_next_deadline(e.engine);

    (void)words;
    put_engine_stats(ret, e.engine);
    scn_put_int(ret, "next_deadline", (int64_t)next);
    scn_put_int(ret, "next_in_ms", (int64_t)(next == UINT64_MAX ? next : next - e.now));
}

static void do_empty(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    fixture_is_empty(&e);
}

/* The notices since the start, or since `forget`: `told notices -> "granted:job"`. */
static char *told(const char *what)
{
    const struct {
        const char *name;
        char *text;
    } lists[] = {
        { "notices", e.notices }, { "to", e.told },
        { "subs", e.subs },       { "announced", e.announced },
        { "watches", e.watches }, { "heartbeats", e.heartbeats },
        { "leaders", e.leaders }, { "waited", e.waited },
    };

    for (size_t i = 0; i < COUNT(lists); i++) {
        if (strcmp(lists[i].name, what) == 0) {
            return lists[i].text;
        }
    }
    scn_fail("there is no list of %s", what);
}

static void do_told(const struct scn_words *words, struct value *ret)
{
    scn_text(ret, "%s", told(scn_word(words, 0)));
}

static void do_forget(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    told(scn_word(words, 0))[0] = '\0';
}

static void do_timings(const struct scn_words *words, struct value *ret)
{
    (void)words;
    put_engine_timings(ret, e.engine);
}

static void do_survey(const struct scn_words *words, struct value *ret)
{
    put_survey(ret, e.engine, scn_word(words, 0), (size_t)scn_number(words, 1),
               span_str(words->count > 2 ? words->at[2] : ""));
}

/* `waiters job 9 -> "2 3"`: the connections of its queue, at most so many; beside them
 * a row for each thing that is known of them. */
static void do_waiters(const struct scn_words *words, struct value *ret)
{
    put_waiters(ret, e.engine, span_str(scn_word(words, 0)),
                (size_t)scn_number_or(words, 1, INT64_MAX));
}

static void do_name(const struct scn_words *words, struct value *ret)
{
    put_name(ret, e.engine, span_str(scn_word(words, 0)));
}

static void do_names(const struct scn_words *words, struct value *ret)
{
    (void)words;
    put_names(ret, e.engine);
}

static const struct scn_verb VERBS[] = {
    { "acquire", SCN_WORDS_MAX, do_acquire },
    { "batch", SCN_WORDS_MAX, do_batch },
    { "release", SCN_WORDS_MAX, do_release },
    { "renew", SCN_WORDS_MAX, do_renew },
    { "attach", SCN_WORDS_MAX, do_attach },
    { "restore", SCN_WORDS_MAX, do_restore },
    { "inspect", SCN_WORDS_MAX, do_inspect },
    { "queue", SCN_WORDS_MAX, do_queue },
    { "leave", SCN_WORDS_MAX, do_leave },
    { "limit", SCN_WORDS_MAX, do_limit },
    { "latch", SCN_WORDS_MAX, do_latch },
    { "answer", SCN_WORDS_MAX, do_answer },
    { "serve", SCN_WORDS_MAX, do_serve },
    { "no-op", 0, do_no_op },
    { "silence", 0, do_silence },
    { "grant", SCN_WORDS_MAX, do_grant },
    { "next", 0, do_next },
    { "ops", 0, do_ops },
    { "run", SCN_WORDS_MAX, do_run },
    { "call", 0, do_call },
    { "has-room", 0, do_has_room },
    { "end-wait", 2, do_end_wait },
    { "close", SCN_WORDS_MAX, do_close },
    { "undelivered", 2, do_undelivered },
    { "grant-state", 2, do_grant_state },
    { "heard", 1, do_heard },
    { "follow", 2, do_follow },
    { "heartbeat", 1, do_heartbeat },
    { "busy", 1, do_busy },
    { "refuse-waits", 2, do_refuse_waits },
    { "unblock", 2, do_unblock },
    { "after", 1, do_after },
    { "stall", 1, do_stall },
    { "configure", SCN_WORDS_MAX, do_configure },
    { "replace", 2, do_replace },
    { "store", 2, do_store },
    { "failover", 1, do_failover },
    { "lossless", 1, do_lossless },
    { "young", 0, do_young },
    { "listening", 0, do_listening },
    { "clock", 1, do_clock },
    { "clock-behind", 1, do_clock_behind },
    { "clock-jump", 0, do_clock_jump },
    { "subscribed", 2, do_subscribed },
    { "message", 3, do_message },
    { "announced", 1, do_announced },
    { "watch", 1, do_watch },
    { "watched", 2, do_watched },
    { "touched", 1, do_touched },
    { "stop", 0, do_stop },
    { "stopped", 0, do_stopped },
    { "stats", 0, do_stats },
    { "survey", 3, do_survey },
    { "waiters", 2, do_waiters },
    { "name", 1, do_name },
    { "names", 0, do_names },
    { "timings", 0, do_timings },
    { "empty", 0, do_empty },
    { "told", 1, do_told },
    { "forget", 1, do_forget },
    { NULL, 0, NULL },
};

const struct scn_stage scn_stage = {
    .begin = begin,
    .end = end,
    .wait = count_round,
    .now = count_rounds,
    .say = say,
    .verbs = VERBS,
};
