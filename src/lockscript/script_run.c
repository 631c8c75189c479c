#include "lockscript/script_run.h"

#include "lockscript/lua_eval.h"
#include "util/alloc.h"

bool script_refuse(struct script_analysis *a, unsigned line, const char *why)
{
    return script_error_set(a->error, line, "%s", why);
}

bool script_refused(const struct script_analysis *a)
{
    return a->error->why[0] != '\0';
}

unsigned script_choose(struct script_analysis *a, unsigned count)
{
    struct script_choice *c = &a->choices[a->choice_at];

    if (a->choice_at == SCRIPT_CHOICES_MAX) {
        (void)script_refuse(a, 0, "the script asks too much");
        return 0;
    }
    if (a->choice_at == a->choice_count) {
        *c = (struct script_choice){ 0, (uint8_t)count };
        a->choice_count++;
    }
    a->choice_at++;
    return c->value;
}

/* Goes to the next list of choices; false: all were tried. */
static bool advance_choices(struct script_analysis *a)
{
    while (a->choice_count > 0) {
        struct script_choice *last = &a->choices[a->choice_count - 1];

        if (++last->value < last->count) {
            return true;
        }
        a->choice_count--;
    }
    return false;
}

/* Whether the same argument is known to be another text. */
static bool is_other_text(const struct script_analysis *a, unsigned condition)
{
    for (unsigned i = 0; i < a->condition_count; i++) {
        if (i != condition && a->run->conditions[i] == 1 &&
            a->conditions[i].arg == a->conditions[condition].arg) {
            return true;
        }
    }
    return false;
}

bool script_condition(struct script_analysis *a, unsigned line, unsigned arg,
                      struct span text)
{
    unsigned i = 0;

    while (i < a->condition_count &&
           (a->conditions[i].arg != arg || !span_eq(a->conditions[i].text, text))) {
        i++;
    }
    if (i == LOCK_CONDITIONS_MAX) {
        return script_refuse(a, line, "too many arguments are compared with a text");
    }
    if (i == a->condition_count) {
        a->conditions[a->condition_count++] = (struct lock_condition){ arg, text };
    }
    if (a->run->conditions[i] < 0) {
        a->run->conditions[i] = (int8_t)(is_other_text(a, i) ? 0 : script_choose(a, 2));
    }
    return a->run->conditions[i] == 1;
}

bool script_use_value(struct script_analysis *a, unsigned line, unsigned arg)
{
    if (a->value_arg != 0 && a->value_arg != arg) {
        return script_error_set(a->error, line,
                                "the key's value is ARGV[%u] here, and ARGV[%u] before",
                                arg, a->value_arg);
    }
    a->value_arg = arg;
    return true;
}

static struct script_run *add_run(struct script_analysis *a, unsigned key_count)
{
    struct script_run *run;

    if (a->run_count == a->run_room) {
        a->run_room = a->run_room == 0 ? 32 : a->run_room * 2;
        a->runs = xrealloc(a->runs, a->run_room * sizeof(*a->runs));
    }
    run = &a->runs[a->run_count++];
    memset(run, 0, sizeof(*run));
    run->key_count = key_count;
    run->lost_key = -1;
    for (unsigned i = 0; i < LOCK_CONDITIONS_MAX; i++) {
        run->conditions[i] = -1;
    }
    return run;
}

bool script_run_all(struct script_analysis *a, unsigned key_count)
{
    a->choice_count = 0;
    do {
        if (a->run_count == SCRIPT_RUNS_MAX) {
            return script_refuse(a, 0, "the script has too many cases");
        }
        a->choice_at = 0;
        a->run = add_run(a, key_count);
        lua_eval(a);
        if (script_refused(a)) {
            return false;
        }
    } while (advance_choices(a));
    return true;
}
