#include "lockscript/script_key.h"

/* Keys that are lost between two commands are tried with so many keys at most. */
enum { LOSS_KEYS_MAX = 2 };

static void choose_found(struct script_analysis *a, struct script_key *key)
{
    key->used = true;
    key->found = (enum script_found)script_choose(
        a, a->has_prefix ? SCRIPT_FOUND_STATES : SCRIPT_FOUND_STATES - 1);
    key->present = key->found != SCRIPT_FREE;
}

/* A key that the script has seen may be gone when it looks again. */
static void choose_loss(struct script_analysis *a, struct script_key *key)
{
    struct script_run *run = a->run;

    if (!key->seen || !key->present || key->after != SCRIPT_UNTOUCHED ||
        run->lost_key >= 0 || run->key_count > LOSS_KEYS_MAX) {
        return;
    }
    if (script_choose(a, 2) == 1) {
        run->lost_key = (int)(key - run->keys);
        key->present = false;
    }
}

struct script_key *script_key_touch(struct script_analysis *a, unsigned line,
                                    const struct lua_value *name)
{
    struct script_key *key;

    if (name->kind != LUA_VALUE_KEY) {
        (void)script_refuse(a, line, "a key is none of KEYS");
        return NULL;
    }
    key = &a->run->keys[name->key - 1];
    if (key->end_unknown && key->end.end != LOCK_END_IN) {
        (void)script_refuse(a, line, "a key is used again after its end was set");
        return NULL;
    }
    if (key->end_unknown) {
        /* Time stands still while a script runs, so the key is there if it got any:
         * a call that gives it none is refused. */
        key->end.command = LOCK_END_BY_SET;
        key->end_unknown = false;
    }
    if (!key->used) {
        choose_found(a, key);
    }
    choose_loss(a, key);
    key->seen = key->present;
    return key;
}

/* Times that may be over already: EXPIRE takes any, PXAT one of the past. */
static bool may_be_over(const struct lock_end_plan *end)
{
    return end->end != LOCK_END_NONE &&
           (end->command == LOCK_END_BY_EXPIRE || end->end == LOCK_END_AT);
}

void script_key_set(struct script_key *key, const struct lock_end_plan *end)
{
    key->after = key->found == SCRIPT_MINE ? SCRIPT_EXTENDED : SCRIPT_SET;
    key->end = *end;
    key->present = true;
    key->end_unknown = may_be_over(end);
}

void script_key_delete(struct script_key *key)
{
    key->after = key->found == SCRIPT_FREE ? SCRIPT_UNTOUCHED : SCRIPT_DELETED;
    key->present = false;
}

void script_key_expire(struct script_key *key, const struct lock_end_plan *end)
{
    if (key->after == SCRIPT_UNTOUCHED) {
        key->after = SCRIPT_EXTENDED;
    }
    key->end = *end;
    key->end_unknown = may_be_over(end);
}

enum lua_ttl_left script_key_left(struct script_analysis *a, struct script_key *key,
                                  enum lock_unit unit)
{
    static const enum lua_ttl_left WITH_END[] = { LUA_TTL_POSITIVE, LUA_TTL_ZERO };

    if (key->left[unit] == LUA_TTL_UNKNOWN) {
        enum lua_ttl_left other =
            key->left[unit == LOCK_UNIT_S ? LOCK_UNIT_MS : LOCK_UNIT_S];

        if (other == LUA_TTL_ENDLESS ||
            (other == LUA_TTL_UNKNOWN && script_choose(a, 2) == 1)) {
            key->left[unit] = LUA_TTL_ENDLESS;
        } else {
            key->left[unit] = WITH_END[script_choose(a, 2)];
        }
    }
    return key->left[unit];
}
