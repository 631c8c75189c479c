/* latchd from hiredis.
 *
 * hiredis HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **given; /* from HOST on */
static const char *name;
static redisContext *latchd;

static redisContext *connection(void)
{
    struct timeval wait = { .tv_sec = 5 };
    redisContext *c = redisConnectWithTimeout(given[0], atoi(given[1]), wait);
    redisReply *reply;

    if (c == NULL || c->err) {
        return c;
    }
    if (strcmp(given[4], "-") == 0) {
        return c;
    }
    if (strcmp(given[3], "-") == 0) {
        reply = redisCommand(c, "AUTH %s", given[4]);
    } else {
        reply = redisCommand(c, "AUTH %s %s", given[3], given[4]);
    }
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply != NULL ? reply->str : c->errstr);
        exit(1);
    }
    freeReplyObject(reply);
    return c;
}

static void fail(const char *what, const redisReply *got)
{
    const char *text = got == NULL ? latchd->errstr : got->str;

    fprintf(stderr, "%s: got type %d, %lld, %s\n", what, got != NULL ? got->type : 0,
            got != NULL ? got->integer : 0, text != NULL ? text : "-");
    exit(1);
}

static redisReply *vask(const char *format, va_list words)
{
    redisReply *reply = redisvCommand(latchd, format, words);

    if (reply == NULL) {
        fail(format, NULL);
    }
    return reply;
}

/* A command that must be answered with a number. */
__attribute__((format(printf, 1, 2))) static long long ask(const char *format, ...)
{
    long long number;
    redisReply *reply;
    va_list words;

    va_start(words, format);
    reply = vask(format, words);
    va_end(words);
    if (reply->type != REDIS_REPLY_INTEGER) {
        fail(format, reply);
    }
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

/* A command that must be answered with that number. */
#define EXPECT(number, ...)                                                            \
    do {                                                                               \
        if (ask(__VA_ARGS__) != (number)) {                                            \
            fprintf(stderr, "line %d: unexpected number\n", __LINE__);                 \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

/* A command that must be answered with null, or with an error that begins so. */
__attribute__((format(printf, 2, 3))) static void refused(const char *error,
                                                          const char *format, ...)
{
    redisReply *reply;
    va_list words;

    va_start(words, format);
    reply = vask(format, words);
    va_end(words);
    if (error == NULL ? reply->type != REDIS_REPLY_NIL
                      : reply->type != REDIS_REPLY_ERROR ||
                            strncmp(reply->str, error, strlen(error)) != 0) {
        fail(format, reply);
    }
    freeReplyObject(reply);
}

static void version(void)
{
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

static void hello(void)
{
    long long token = ask("LOCK %s WAIT 0", name);

    if (token < 1LL << 31) {
        fail("token", NULL);
    }
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, token);
}

static void busy(void)
{
    long long token = ask("LOCK %s", name);

    refused(NULL, "LOCK %s WAIT 0", name);
    refused(NULL, "LOCK %s WAIT 50", name);
    if (ask("RENEW %s TOKEN %lld", name, token) <= 0) {
        fail("RENEW", NULL);
    }
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, token);
    ask("LOCK %s FAIR WAIT 0", name);
    EXPECT(0, "UNLOCK %s", name);
}

static void reenter(void)
{
    long long token = ask("LOCK %s OWNER ann", name);

    EXPECT(token, "LOCK %s OWNER ann", name);
    EXPECT(1, "UNLOCK %s OWNER ann", name);
    EXPECT(0, "UNLOCK %s OWNER ann", name);
}

static void lose(void)
{
    long long token = ask("LOCK %s", name);

    EXPECT(1, "FORCEUNLOCK %s TOKEN %lld", name, token);
    refused("NOTHELD ", "UNLOCK %s TOKEN %lld", name, token);
    refused("NOTHELD ", "RENEW %s TOKEN %lld", name, token);
    refused("ERR unknown option", "LOCK %s SOON", name);
}

static void share(void)
{
    long long one = ask("LOCK %s READ", name);
    long long two = ask("LOCK %s READ", name);

    refused(NULL, "LOCK %s WRITE WAIT 0", name);
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, one);
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, two);
    one = ask("LOCK %s WRITE WAIT 0", name);
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, one);
}

static redisReply *next(redisContext *from, int type)
{
    redisReply *reply = NULL;

    if (redisGetReply(from, (void **)&reply) != REDIS_OK || reply->type != type) {
        fail("reply", reply);
    }
    return reply;
}

static void pipeline(void)
{
    long long tokens[2];
    redisReply *reply;

    redisAppendCommand(latchd, "LOCK %s1 WAIT 0", name);
    redisAppendCommand(latchd, "LOCK %s2 WAIT 0", name);
    redisAppendCommand(latchd, "LOCK %s1 WAIT 0", name);
    for (int i = 0; i < 2; i++) {
        reply = next(latchd, REDIS_REPLY_INTEGER);
        tokens[i] = reply->integer;
        freeReplyObject(reply);
    }
    freeReplyObject(next(latchd, REDIS_REPLY_NIL));
    EXPECT(0, "UNLOCK %s1 TOKEN %lld", name, tokens[0]);
    EXPECT(0, "UNLOCK %s2 TOKEN %lld", name, tokens[1]);
}

static void multi(void)
{
    redisReply *reply;
    long long token;

    freeReplyObject(redisCommand(latchd, "MULTI"));
    freeReplyObject(redisCommand(latchd, "LOCK %s WAIT 0", name));
    freeReplyObject(redisCommand(latchd, "LOCK %s WAIT 0", name));
    reply = redisCommand(latchd, "EXEC");
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_NIL) {
        fail("EXEC", reply);
    }
    token = reply->element[0]->integer;
    freeReplyObject(reply);
    EXPECT(0, "UNLOCK %s TOKEN %lld", name, token);
}

/* The next message on a channel of that kind; its text is `text`. */
static void hear(redisContext *listener, const char *kind, const char *text)
{
    redisReply *reply = next(listener, REDIS_REPLY_ARRAY);
    size_t last = reply->elements - 1;

    if (strncmp(reply->element[last - 1]->str, kind, strlen(kind)) != 0 ||
        strcmp(reply->element[last]->str, text) != 0) {
        fail(kind, reply->element[last]);
    }
    freeReplyObject(reply);
}

static void events(void)
{
    redisContext *listener = connection();
    char text[64];

    redisAppendCommand(listener, "SUBSCRIBE lost:%s", name);
    redisAppendCommand(listener, "PSUBSCRIBE g*:%s", name);
    freeReplyObject(next(listener, REDIS_REPLY_ARRAY));
    freeReplyObject(next(listener, REDIS_REPLY_ARRAY));
    snprintf(text, sizeof text, "joe %lld", ask("LOCK %s OWNER joe", name));
    EXPECT(1, "FORCEUNLOCK %s OWNER joe", name);
    hear(listener, "granted:", text);
    hear(listener, "lost:", text);
    redisFree(listener);
}

/* Asks until there is a number, on a new connection after an error. */
static long long insist(const char *request, int *asked)
{
    redisReply *reply;
    long long number;

    while (true) {
        (*asked)++;
        reply = redisCommand(latchd, request);
        if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
            number = reply->integer;
            freeReplyObject(reply);
            return number;
        }
        if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
            fail(request, reply);
        }
        if (reply == NULL) {
            usleep(50000);
            redisFree(latchd);
            latchd = connection();
        } else {
            freeReplyObject(reply);
        }
    }
}

static void wait_for_it(const char *request, const char *patience)
{
    char lock[256];
    char unlock[256];
    int asked = 0;
    long long token;

    snprintf(lock, sizeof lock, "LOCK %s WAIT %s ID %s", name, patience, request);
    snprintf(unlock, sizeof unlock, "UNLOCK %s ID %s", name, request);
    token = insist(lock, &asked);
    printf("token %lld %d\n", token, asked);
    fflush(stdout);
    printf("left %lld\n", insist(unlock, &asked));
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    { "version", version }, { "hello", hello },       { "busy", busy },
    { "reenter", reenter }, { "lose", lose },         { "share", share },
    { "multi", multi },     { "pipeline", pipeline }, { "events", events },
};

int main(int argc, char **argv)
{
    given = argv + 1;
    if (argc < 9 || (latchd = connection()) == NULL || latchd->err) {
        fprintf(stderr, "no connection\n");
        return 1;
    }
    name = given[6];
    if (strcmp(given[7], "wait") == 0 && argc == 11) {
        wait_for_it(given[8], given[9]);
        redisFree(latchd);
        return 0;
    }
    for (int i = 8; i < argc; i++) {
        for (size_t j = 0; j < sizeof scenarios / sizeof *scenarios; j++) {
            if (strcmp(argv[i], scenarios[j].name) == 0) {
                scenarios[j].run();
                printf("ok %s\n", argv[i]);
            }
        }
    }
    redisFree(latchd);
    return 0;
}
