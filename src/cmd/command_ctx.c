#include "cmd/command_ctx.h"

#include "cmd/cmd_priv.h"

void ctx_error(struct command_ctx *ctx, const char *word, const char *fmt, ...)
{
    struct buf text = { 0 };
    va_list ap;

    if (ctx->aborts) {
        buf_printf(&text, "Transaction discarded because of: %s%s",
                   strcmp(word, LATCHD_ERR) == 0 ? "" : word,
                   strcmp(word, LATCHD_ERR) == 0 ? "" : " ");
        word = LATCHD_ERR_EXECABORT;
    }
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    resp_error(ctx->out, word, buf_span(&text));
    buf_reset(&text);
    ctx->outcome = outcome_of_error(word);
}

void ctx_null(struct command_ctx *ctx)
{
    resp_null(ctx->out, ctx->proto);
    ctx->outcome = OUTCOME_NULL;
}

void ctx_syntax_error(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "syntax error");
}

void ctx_arity_error(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "wrong number of arguments for '%s' command",
              ctx->command->name);
}

void ctx_subcommand_error(struct command_ctx *ctx)
{
    const char *full = ctx->command->name;
    struct span sub = ctx->argv[1];
    struct buf upper = { 0 };

    buf_add_upper(&upper, full);
    ctx_error(ctx, LATCHD_ERR,
              "unknown subcommand or wrong number of arguments for '%.*s'. Try %.*s "
              "HELP.",
              span_quoted_len(sub), sub.ptr, (int)strcspn(full, "|"), buf_ptr(&upper));
    buf_reset(&upper);
}

bool ctx_arg_is(const struct command_ctx *ctx, size_t at, const char *word)
{
    return at < ctx->argc && span_eq_nocase(ctx->argv[at], span_str(word));
}

bool ctx_arg_int(struct command_ctx *ctx, size_t at, int64_t *ret)
{
    if (!parse_i64(ctx->argv[at], ret)) {
        ctx_error(ctx, LATCHD_ERR, "value is not an integer or out of range");
        return false;
    }
    return true;
}

void ctx_close_after(struct command_ctx *ctx)
{
    if (multi_is_running(ctx->client->multi)) {
        ctx->client->leaving = true;
    } else {
        conn_drain(ctx->conn);
    }
}

static struct call_ref wait_as(struct command_ctx *ctx, enum command_result result)
{
    ctx->result = result;
    ctx->call = ++ctx->cmd->next_call;
    return (struct call_ref){ .conn = ctx->client->id, .call = ctx->call };
}

struct call_ref ctx_wait(struct command_ctx *ctx)
{
    return wait_as(ctx, WAITS);
}

struct call_ref ctx_wait_beside(struct command_ctx *ctx)
{
    return wait_as(ctx, WAITS_BESIDE);
}

bool ctx_gathers(struct command_ctx *ctx)
{
    ctx->result = ctx->may_gather ? GATHERED : ANSWERED;
    return ctx->may_gather;
}

void buf_add_upper(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char ch = (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);

        buf_add(out, &ch, 1);
    }
}

static void write_line(struct buf *out, struct buf *line)
{
    buf_add(line, "", 1);
    resp_simple(out, buf_ptr(line));
    buf_clear(line);
}

void ctx_help(struct command_ctx *ctx)
{
    const char *full = ctx->command->name; /* container|help */
    const struct command *container =
        command_find(span_of(full, (size_t)(strchr(full, '|') - full)));
    struct buf line = { 0 };
    size_t count;
    const struct command *subs = command_subs(container, &count);

    resp_array(ctx->out, 1 + 2 * count);
    buf_add_upper(&line, container->name);
    buf_add_str(&line, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    write_line(ctx->out, &line);
    for (size_t i = 0; i < count; i++) {
        buf_add_upper(&line, command_short_name(&subs[i]));
        buf_add_str(&line, subs[i].usage[0] == '\0' ? "" : " ");
        buf_add_str(&line, subs[i].usage);
        write_line(ctx->out, &line);
        buf_printf(&line, "    %s", subs[i].summary);
        write_line(ctx->out, &line);
    }
    buf_reset(&line);
}

static const char *const ERROR_WORDS[] = {
    [LOCK_ERR] = LATCHD_ERR,
    [LOCK_WRONGTYPE] = LATCHD_ERR_WRONGTYPE,
    [LOCK_NOTHELD] = LATCHD_ERR_NOTHELD,
    [LOCK_DEADLOCK] = LATCHD_ERR_DEADLOCK,
    [LOCK_BACKEND] = LATCHD_ERR_BACKEND,
    [LOCK_LIMIT] = LATCHD_ERR_LIMIT,
    [LOCK_GOAWAY] = LATCHD_ERR_GOAWAY,
    [LOCK_NOPERM] = LATCHD_ERR_NOPERM,
    [LOCK_UNBLOCKED] = LATCHD_ERR_UNBLOCKED,
    [LOCK_NOREPLICAS] = LATCHD_ERR_NOREPLICAS,
    [LOCK_CROSSSLOT] = LATCHD_ERR_CROSSSLOT,
};

const char *lock_error_word(enum lock_error error)
{
    return ERROR_WORDS[error];
}
