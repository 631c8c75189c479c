/* parser_priv: what parser.c and inline.c share. */
#ifndef LATCHD_RESP_PARSER_PRIV_H
#define LATCHD_RESP_PARSER_PRIV_H

#include "resp/parser.h"

struct resp_parser {
    struct span argv[RESP_ARGS_MAX];
    char error[64];
    char scratch[RESP_INLINE_MAX]; /* arguments of an inline command without quotes */
};

enum resp_status resp_parse_inline(struct resp_parser *p,
                                   const struct resp_limits *limits, struct span data,
                                   uint64_t *hint, size_t *ret_used,
                                   struct resp_request *ret);

enum resp_status resp_broken(struct resp_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The most arguments of a request: the limit, or less if the parser cannot hold as
 * many. */
size_t resp_args_max(const struct resp_limits *limits);

#endif
