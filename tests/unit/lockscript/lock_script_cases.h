/* lock_script_cases: scripts of all forms that lock libraries have, in words of our
 * own. */
#ifndef LATCHD_TESTS_LOCK_SCRIPT_CASES_H
#define LATCHD_TESTS_LOCK_SCRIPT_CASES_H

enum { ARGS_MAX = 4 };

#define RELEASE_REPLIES "free 0, mine 1, endless 1, others 0, not-a-string !type"
#define ACQUIRE_REPLIES "free +OK, mine nil, endless nil, others nil, not-a-string nil"

struct script_case {
    const char *text;
    const char *keys[ARGS_MAX];
    const char *argv[ARGS_MAX];
    const char *is; /* see lock_call_text.h */
};

/* A script that looks again after EXPIRE. */
#define STILL_LOCKED(time)                                                             \
    "if redis.call('GET', KEYS[1]) == ARGV[1]\nthen\n"                                 \
    "  redis.call('EXPIRE', KEYS[1], " time ")\n"                                      \
    "  if redis.call('GET', KEYS[1]) == ARGV[1]\n  then\n    return 1\n  end\n"        \
    "end\nreturn 0\n"

static const struct script_case CASES[] = {
    { STILL_LOCKED("60"), { "k" }, { "v" }, "extend =v in 60000 | " RELEASE_REPLIES },
    { STILL_LOCKED("ARGV[2]"),
      { "k" },
      { "v", "7" },
      "extend =v in 7000 | " RELEASE_REPLIES },
    /* Release. */
    { "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('del', KEYS[1])\n"
      "end\n"
      "return 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "local who = redis.call('GET', KEYS[1]); if who ~= ARGV[1] then return 0; end;"
      "redis.call('unlink', KEYS[1]); return 1;",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "return (ARGV[1] == redis.call('get', KEYS[1])) and redis.call('del', KEYS[1]) "
      "or 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "local function_like = 1 --[[ a name ]] if redis.call(\"get\",KEYS[1])==ARGV[1]"
      " then redis.call('del',KEYS[1]) return true else return false end",
      { "k" },
      { "v" },
      "release =v | free nil, mine 1, endless 1, others nil, not-a-string !type" },
    { "local who = redis.call('get', KEYS[1])\n"
      "if who == false then return redis.status_reply('GONE')\n"
      "elseif who == ARGV[2] then return redis.call('del', KEYS[1])\n"
      "else return redis.error_reply('HELD by another') end",
      { "k" },
      { "x", "v" },
      "release =v | free +GONE, mine 1, endless 1, others -HELD by another, "
      "not-a-string !type" },
    { "if redis.pcall('get', KEYS[1]) == ARGV[1] then return redis.call('del', "
      "KEYS[1]) end"
      " return 0",
      { "k" },
      { "v" },
      "release =v | free 0, mine 1, endless 1, others 0, not-a-string 0" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) == 1 "
      "then\n"
      "redis.call('publish', KEYS[2], ARGV[2]) return 1 end return 0",
      { "k", "news" },
      { "v", "free" },
      "release =v | " RELEASE_REPLIES " | publish news free" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]);"
      "redis.call('publish', 'ch', 0) return 1 end return 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES " | publish ch 0" },
    { "local n = 0\nfor _, k in ipairs(KEYS) do\n"
      "  if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) "
      "end\nend\n"
      "return n",
      { "a", "b" },
      { "v" },
      "release each =v | free done, mine done, endless done, others done, "
      "not-a-string !type" },
    { "for i, k in ipairs(KEYS) do if redis.call('get', KEYS[i]) ~= ARGV[1] then "
      "return 0 end"
      " end for i, k in ipairs(KEYS) do redis.call('del', k) end return #KEYS",
      { "a", "b" },
      { "v" },
      "release =v | free 0, mine keys, endless keys, others 0, not-a-string !type" },
    { "if redis.call('getrange', KEYS[1], 0, 2) == string.sub(ARGV[1], 1, 3) then"
      " return redis.call('del', KEYS[1]) end return 0",
      { "k" },
      { "abcd" },
      "release ~3 abcd | free 0, mine 1, endless 1, others 0, not-a-string !type" },
    /* Force release. */
    { "return redis.call('del', KEYS[1])",
      { "k" },
      { NULL },
      "force release | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    /* Extend. */
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
      { "k" },
      { "v", "0" },
      "extend =v in 0 | " RELEASE_REPLIES },
    { "local key, me, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])\n"
      "if redis.call('get', key) == me then redis.call('expire', key, ttl) return 1 "
      "end\n"
      "return 0",
      { "k" },
      { "v", "2000" },
      "extend =v in 2000000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      " if redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) then return 1 end end "
      "return 0",
      { "k" },
      { "v", "500000" },
      "extend =v in 500000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('expireat', KEYS[1], ARGV[2]) else return 0 end",
      { "k" },
      { "v", "1700000000" },
      "extend =v at 1700000000000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('pexpire', KEYS[1], 30000) else return 0 end",
      { "k" },
      { "v" },
      "extend =v in 30000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end\n"
      "local left = redis.call('pttl', KEYS[1])\nif left < 0 then return 0 end\n"
      "return redis.call('pexpire', KEYS[1], left + ARGV[2])",
      { "k" },
      { "v", "-5" },
      "extend =v added -5 refuses-endless | free 0, mine 1, endless 0, others 0, "
      "not-a-string !type" },
    { "for _, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return -1 "
      "end end "
      "for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end return #KEYS",
      { "a", "b", "c" },
      { "v", "70000" },
      "extend =v in 70000 | free -1, mine keys, endless keys, others -1, not-a-string "
      "!type" },
    { "return redis.call('pexpire', KEYS[1], ARGV[1])",
      { "k" },
      { "90000" },
      "extend in 90000 | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    /* Acquire. */
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
      { "k" },
      { "v", "9000000" },
      "acquire v in 9000000 | " ACQUIRE_REPLIES },
    { "return redis.call('SET', KEYS[1], ARGV[1], 'nx', 'pxat', ARGV[2])",
      { "k" },
      { "v", "1700000000000" },
      "acquire v at 1700000000000 | " ACQUIRE_REPLIES },
    { "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then\n"
      "  redis.call('expire', KEYS[1], ARGV[2]) return 1\nelse return 0 end",
      { "k" },
      { "v", "300" },
      "acquire v in 300000 | free 1, mine 0, endless 0, others 0, not-a-string 0" },
    { "return redis.call('setnx', KEYS[1], ARGV[1])",
      { "k" },
      { "v" },
      "acquire v endless | free 1, mine 0, endless 0, others 0, not-a-string 0" },
    { "if redis.call('exists', KEYS[1]) == 0 then redis.call('psetex', KEYS[1], "
      "ARGV[2],"
      " ARGV[1]) return 'taken' end return nil",
      { "k" },
      { "v", "80000" },
      "acquire v in 80000 | free 'taken', mine nil, endless nil, others nil, "
      "not-a-string "
      "nil" },
    { "for _, k in ipairs(KEYS) do if redis.call('exists', k) ~= 0 then return 0 end "
      "end "
      "for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'EX', ARGV[2]) end "
      "return #KEYS",
      { "a", "b" },
      { "v", "200" },
      "acquire v in 200000 | free keys, mine 0, endless 0, others 0, not-a-string 0" },
    { "if redis.call('exists', KEYS[1]) == 0 and redis.call('exists', KEYS[2]) == 0 "
      "then "
      "redis.call('set', KEYS[1], ARGV[1]) redis.call('set', KEYS[2], ARGV[1]) return "
      "2 end "
      "return 0",
      { "a", "b", "c" },
      { "v" },
      "acquire v endless | free 2, mine 0, endless 0, others 0, not-a-string 0" },
    { "redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n"
      "return redis.pcall('get', KEYS[1])",
      { "k" },
      { "v", "40000" },
      "acquire v in 40000 | free value, mine value, endless value, others value, "
      "not-a-string !type" },
    /* Acquire, or extend what is mine. */
    { "local now = redis.call('get', KEYS[1])\n"
      "if now and now ~= ARGV[1] then return false end\n"
      "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])",
      { "k" },
      { "v", "60000" },
      "acquire or extend =v in 60000 | free +OK, mine +OK, endless +OK, others nil, "
      "not-a-string !type" },
    { "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end\n"
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  redis.call('pexpire', KEYS[1], ARGV[2]) return 2 end return 0",
      { "k" },
      { "v", "60000" },
      "acquire or extend =v in 60000 | free 1, mine 2, endless 2, others 0, "
      "not-a-string !type" },
    { "local n = tonumber(ARGV[3])\nlocal now = redis.call('getrange', KEYS[1], 0, n - "
      "1)\n"
      "if redis.call('exists', KEYS[1]) == 0 or now == string.sub(ARGV[1], 1, n) then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "vwxyz", "60000", "4" },
      "acquire or extend ~4 vwxyz in 60000 | free +OK, mine +OK, endless +OK, others "
      "nil, "
      "not-a-string !type" },
    /* An argument chooses. */
    { "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'new')\n"
      "   or redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "v", "60000", "new" },
      "acquire or extend =v in 60000 | free +OK, mine +OK, endless +OK, others nil, "
      "not-a-string !type" },
    { "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'new')\n"
      "   or redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "v", "60000" },
      "extend =v in 60000 | free nil, mine +OK, endless +OK, others nil, not-a-string "
      "!type" },
    { "local t = redis.call('pttl', KEYS[1])\nlocal to = ARGV[2]\n"
      "if redis.call('get', KEYS[1]) ~= ARGV[1] or t < 0 then return 0 end\n"
      "if '+' == ARGV[3] then to = t + to end\nredis.call('pexpire', KEYS[1], "
      "to)\nreturn 1",
      { "k" },
      { "v", "60000", "+" },
      "extend =v added 60000 refuses-endless | free 0, mine 1, endless 0, others 0, "
      "not-a-string !type" },
    /* Queries. */
    { "return redis.call('get', KEYS[1])",
      { "k" },
      { NULL },
      "get value | free nil, mine value, endless value, others value, "
      "not-a-string !type" },
    { "return redis.call('exists', KEYS[1])",
      { "k" },
      { NULL },
      "exists | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    { "return redis.call('get', KEYS[1]) == ARGV[1]",
      { "k" },
      { "v" },
      "exists =v | free nil, mine 1, endless 1, others nil, not-a-string !type" },
    { "return redis.call('pttl', KEYS[1])",
      { "k" },
      { NULL },
      "get ttl | free -2, mine ttl-ms, endless -1, others ttl-ms, "
      "not-a-string ttl-ms" },
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return nil end\n"
      "local left = redis.call('ttl', KEYS[1]) if left > 0 then return left end return "
      "0",
      { "k" },
      { "v" },
      "get ttl =v | free nil, mine ttl-s, endless 0, others nil, not-a-string !type" },
    { "local a = redis.call('exists', KEYS[1]) redis.call('exists', KEYS[2]) return a",
      { "a", "b" },
      { NULL },
      "exists | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    /* Acquires that tell who has it, or for how long. */
    { "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end "
      "return redis.call('pttl', KEYS[1])",
      { "k" },
      { "v", "5000" },
      "acquire v in 5000 | free 0, mine ttl-ms, endless -1, others ttl-ms, "
      "not-a-string ttl-ms" },
    { "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
      "redis.call('expire', KEYS[1], ARGV[2]) return 0 end return redis.call('ttl', "
      "KEYS[1])",
      { "k" },
      { "v", "5" },
      "acquire v in 5000 | free 0, mine ttl-s, endless -1, others ttl-s, "
      "not-a-string ttl-s" },
    { "if redis.call('exists', KEYS[1]) == 1 then return redis.call('get', KEYS[1]) "
      "end "
      "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return ARGV[1]",
      { "k" },
      { "v", "5000" },
      "acquire v in 5000 | free value, mine value, endless value, others value, "
      "not-a-string !type" },
    { "local who = redis.call('get', KEYS[1]) if who then return "
      "{who, redis.call('pttl', KEYS[1])} end "
      "return {redis.call('setnx', KEYS[1], ARGV[1])}",
      { "k" },
      { "v" },
      "acquire v endless | free [1], mine [value ttl-ms], endless [value -1], "
      "others [value ttl-ms], not-a-string !type" },
    { "for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then return 7 "
      "end "
      "if redis.call('exists', k) == 1 then return 0 end end "
      "for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end "
      "return 1",
      { "a", "b" },
      { "v", "5000" },
      "acquire =v in 5000 | free 1, mine 7, endless 7, others 0, not-a-string !type" },
    /* Of a database of a number that the caller has. */
    { "redis.pcall('SELECT', tonumber(ARGV[1])) if redis.call('exists', KEYS[1]) == 1 "
      "then "
      "return 0 end redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1",
      { "k" },
      { "0", "v", "5000" },
      "acquire v in 5000 | free 1, mine 0, endless 0, others 0, not-a-string 0" },
    /* An endless lock is another case. */
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
      "local left = redis.call('ttl', KEYS[1]) redis.call('del', KEYS[1]) "
      "if left == -1 then return 2 end return 1",
      { "k" },
      { "v" },
      "release =v | free 0, mine 1, endless 2, others 0, not-a-string !type" },
    { "for _, k in ipairs(KEYS) do if redis.call('exists', k) == 0 then return 0 end "
      "end "
      "for _, k in ipairs(KEYS) do redis.call('del', k) end return #KEYS",
      { "a", "b" },
      { NULL },
      "force release | free 0, mine keys, endless keys, others keys, not-a-string "
      "keys" },
    /* Lists. */
    { "return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]); }",
      { "k" },
      { NULL },
      "get value | free [nil -2], mine [value ttl-ms], endless [value -1], "
      "others [value ttl-ms], not-a-string !type" },
    { "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then\n"
      "return {1, ARGV[1]} end return {0, 'held', false}",
      { "k" },
      { "v", "5000" },
      "acquire v in 5000 | free [1 value], mine [0 'held' nil], endless [0 'held' "
      "nil], others [0 'held' nil], not-a-string [0 'held' nil]" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) "
      "return {} end return {0}",
      { "k" },
      { "v" },
      "release =v | free [0], mine [], endless [], others [0], not-a-string !type" },
};

#endif
