/* command_ctx: what all handlers share: errors, arguments, HELP, waiting. */
#include "cmd/handlers.h"

#include "cmd/observe/refusals.h"
#include "cmd/pipeline.h"
#include "util/parse.h"

void ctx_error(struct command_ctx *ctx, const char *word, const char *fmt, ...)
{
    bool aborts =
        !ctx->admitted && ctx->command != NULL && ctx->command->run == cmd_exec;
    struct buf text = { 0 };
    va_list ap;

    if (aborts) {
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

void ctx_only_redis(struct command_ctx *ctx, const char *advice)
{
    struct span name = ctx->argv[0];

    ctx_refuse(ctx, LATCHD_ERR,
               "latchd keeps locks, not data: '%.*s' is not served; %s",
               span_quoted_len(name), name.ptr, advice);
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

struct call_ref ctx_wait(struct command_ctx *ctx)
{
    struct client *client = ctx->client;
    uint64_t number = ++ctx->cmd->next_call;

    ctx->waits = true;
    if (pipeline_waits_last(ctx, number)) {
        return (struct call_ref){ .conn = client->id, .call = number };
    }
    client->call = number;
    client->call_us = ctx->started_us;
    client->call_muted = ctx->muted;
    client_set_library(client, ctx->library);
    if (ctx->library == NULL) {
        client->call_subject = ctx->subject;
    }
    if ((command_may_wait(ctx->command) && !multi_is_open(client->multi)) ||
        library_is_parked(ctx->library)) {
        conn_await(ctx->conn); /* later commands may pass it, or end its wait */
    } else {
        conn_suspend(ctx->conn);
    }
    return (struct call_ref){ .conn = client->id, .call = number };
}

struct call_ref ctx_wait_pipelined(struct command_ctx *ctx)
{
    uint64_t number = ctx->cmd->next_call + 1;

    if (!pipeline_waits(ctx, number)) {
        return ctx_wait(ctx);
    }
    ctx->waits = true;
    ctx->cmd->next_call = number;
    return (struct call_ref){ .conn = ctx->client->id, .call = number };
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
