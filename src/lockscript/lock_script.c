#include "lockscript/lock_script.h"

#include "lockscript/lock_classify.h"
#include "lockscript/lua_parser.h"
#include "util/alloc.h"

#include <stdlib.h>

const char *lock_call_kind_name(enum lock_call_kind kind)
{
    static const char *const NAMES[LOCK_CALL_KINDS] = {
        [LOCK_CALL_ACQUIRE] = "acquire",
        [LOCK_CALL_ACQUIRE_OR_EXTEND] = "acquire or extend",
        [LOCK_CALL_EXTEND] = "extend",
        [LOCK_CALL_OVERWRITE] = "overwrite",
        [LOCK_CALL_RELEASE] = "release",
        [LOCK_CALL_FORCE_RELEASE] = "force release",
        [LOCK_CALL_GET_VALUE] = "get value",
        [LOCK_CALL_GET_TTL] = "get ttl",
        [LOCK_CALL_EXISTS] = "exists",
    };

    return kind < LOCK_CALL_KINDS ? NAMES[kind] : "nothing";
}

static bool uses_prefix(const struct lua_ast *ast)
{
    for (unsigned i = 0; i < ast->node_count; i++) {
        if (ast->nodes[i].kind == LUA_STRING_SUB) {
            return true;
        }
    }
    return false;
}

/* Runs the script with each number of keys that makes a difference. */
static bool run_with_keys(struct script_analysis *a)
{
    unsigned base = lock_base_keys(a->ast);
    unsigned most = a->ast->loops_over_keys ? SCRIPT_KEYS_MAX : base;

    if (base == 0) {
        return script_refuse(a, 0, "the script looks at no key");
    }
    if (base > SCRIPT_KEYS_MAX || (a->ast->loops_over_keys && a->ast->keys_index > 1)) {
        return script_refuse(a, 0, "the script names too many of KEYS");
    }
    for (unsigned count = base; count <= most; count++) {
        if (!script_run_all(a, count)) {
            return false;
        }
    }
    return true;
}

static bool analyse_text(char *text, size_t len, struct lua_ast *ast,
                         struct lock_script *script, struct lock_script_error *error)
{
    struct script_analysis a = { .ast = ast, .error = error };
    bool ok;

    if (!lua_parse(text, len, ast, error)) {
        return false;
    }
    a.has_prefix = uses_prefix(ast);
    ok = run_with_keys(&a) && lock_classify(&a, script);
    free(a.runs);
    return ok;
}

struct lock_script *lock_script_parse(struct span text,
                                      struct lock_script_error *ret_error)
{
    struct lock_script *script;
    struct lua_ast *ast;
    bool ok;

    *ret_error = (struct lock_script_error){ .line = 0 };
    if (text.len > LOCK_SCRIPT_TEXT_MAX) {
        (void)script_error_set(ret_error, 0, "the script has more than %d bytes",
                               LOCK_SCRIPT_TEXT_MAX);
        return NULL;
    }
    script = xcalloc(1, sizeof(*script));
    script->text = xmemdup0(text.ptr, text.len);
    ast = xmalloc(sizeof(*ast));
    ok = analyse_text(script->text, text.len, ast, script, ret_error);
    free(ast);
    if (!ok) {
        lock_script_free(script);
        return NULL;
    }
    return script;
}

void lock_script_free(struct lock_script *script)
{
    if (script != NULL) {
        free(script->text);
        free(script);
    }
}
