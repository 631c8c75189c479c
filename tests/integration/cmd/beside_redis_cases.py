"""What beside_redis.py says, and what may differ.

A scenario is a list of requests to one connection: words in a string, or as Words, or
bytes as they are. Alone they must get the very same reply; otherwise (request, mode), see
differ(), or (request, mode, how many replies). CLOSED: both have closed the connection.
"""
from beside_redis_connection import (
    ARITY, CLIENT, CLOSED, CONNECTION, HELLO, NO_PASSWORD, REPLY_OFF, UNKNOWN, Words)

CONFIG = [
    ("CONFIG GET port", "keys"),
    "CONFIG GET nosuch-setting",
    ("CONFIG GET port nosuch maxclients", "type"),
    "CONFIG SET nosuch-setting 1",
    "CONFIG SET port",
    "CONFIG SET port 1 maxclients",
    "CONFIG SET maxclients 10000 maxclients 10000",
    "CONFIG RESETSTAT",
    ("CONFIG HELP", "type"),
]

COMMAND = [
    ("COMMAND COUNT", "type"),
    ("COMMAND", "each"),
    ("COMMAND INFO", "each"),
    ("COMMAND INFO get", "each"),
    "COMMAND INFO nosuch",
    ("COMMAND INFO nosuch ping", "items"),
    ("COMMAND INFO client|id", "each"),
    "COMMAND INFO client|nosuch",
    ("COMMAND DOCS", "type"),
    ("COMMAND DOCS ping", "type"),
    "COMMAND DOCS nosuch",
    ("COMMAND LIST", "type"),
    "COMMAND LIST FILTERBY",
    "COMMAND LIST FILTERBY PATTERN",
    "COMMAND LIST FILTERBY PATTERN nosuch*",
    "COMMAND LIST FILTERBY PATTERN mult?",
    "COMMAND LIST FILTERBY MODULE nosuch",
    "COMMAND LIST FILTERBY ACLCAT nosuch",
    "COMMAND LIST FILTERBY NOSUCH x",
    "COMMAND LIST NOSUCH",
    "COMMAND LIST NOSUCH a b",
    "COMMAND GETKEYS get a",
    "COMMAND GETKEYS exists a b",
    "COMMAND GETKEYS get",
    "COMMAND GETKEYS ping",
    "COMMAND GETKEYS nosuch a",
    "COMMAND GETKEYS watch a b",
    "COMMAND GETKEYSANDFLAGS exists a b",
    "COMMAND GETKEYSANDFLAGS ping",
    "COMMAND GETKEYSANDFLAGS nosuch a",
    ("COMMAND HELP", "type"),
]

MULTI = [
    "EXEC",
    "DISCARD",
    "UNWATCH",
    "MULTI",
    "EXEC",
    "MULTI",
    "MULTI",
    "PING",
    "GET a",
    "UNWATCH",
    "WATCH a",
    "WATCH b c",
    "EXEC",
    "MULTI",
    "PING",
    "WATCH",
    "EXEC",
    "MULTI",
    "PING",
    "DISCARD",
    "EXEC",
    "MULTI",
    "PING",
    "NOSUCH",
    "EXEC",
    "EXEC",
    "MULTI",
    "GET",
    "PING",
    "EXEC",
    "MULTI",
    "EXEC a",
    "DISCARD",
    "MULTI",
    "DISCARD a",
    "DISCARD",
    "MULTI",
    "CLIENT NOSUCH",
    "EXEC",
    "MULTI",
    "SELECT x",
    "SELECT 0",
    "CLIENT SETNAME me",
    "CLIENT GETNAME",
    "AUTH default x",
    ("EXEC", "="),
    "MULTI",
    "SHUTDOWN",
    "EXEC",
    "MULTI",
    "MONITOR",
    "DISCARD",
    "MULTI",
    "SUBSCRIBE a",
    "DISCARD",
    "MULTI",
    "PING",
    "RESET",
    "EXEC",
    "MULTI",
    "PING",
    "CLIENT PAUSE 5 WRITE",
    "EXEC",
    "CLIENT UNPAUSE",
    "WATCH a",
    "MULTI",
    "PING",
    "QUIT",
    CLOSED,
]

PUBSUB = [
    "PUBSUB CHANNELS",
    "PUBSUB NUMSUB",
    "PUBSUB NUMSUB lost:a lost:b",
    "PUBSUB NUMPAT",
    ("PUBSUB HELP", "type"),
    ("SUBSCRIBE a b", "=", 2),
    "SUBSCRIBE a",
    "PSUBSCRIBE c*",
    "PING",
    "PING x",
    "GET a",
    "UNSUBSCRIBE a",
    "UNSUBSCRIBE nosuch",
    "PUNSUBSCRIBE",
    "UNSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "PING",
    "SUBSCRIBE a",
    "RESET",
    "PING",
    "SUBSCRIBE a",
    "QUIT",
    CLOSED,
]

MEMORY = [
    "MEMORY USAGE nothing",
    "MEMORY USAGE nothing SAMPLES 5",
    "MEMORY USAGE nothing SAMPLES x",
    "MEMORY USAGE nothing SAMPLES -1",
    "MEMORY USAGE nothing SAMPLES",
    "MEMORY USAGE nothing NOSUCH 5",
    ("MEMORY HELP", "type"),
]

INFO = [
    ("INFO", "type"),
    ("INFO server", "type"),
    ("INFO all", "type"),
    ("INFO everything", "type"),
    ("INFO default clients", "type"),
    ("INFO nosuch", "="),
]

SLOWLOG = [
    "SLOWLOG",
    ("SLOWLOG GET", "type"),
    "SLOWLOG GET x",
    "SLOWLOG GET -5",
    "SLOWLOG GET 1 2",
    "SLOWLOG LEN a",
    ("SLOWLOG LEN", "type"),
    "SLOWLOG RESET",
    "SLOWLOG NOSUCH",
    ("SLOWLOG HELP", "type"),
]

TRACKING = [
    "CLIENT TRACKING",
    "CLIENT TRACKING x",
    "CLIENT TRACKING OFF",
    "CLIENT TRACKING ON NOSUCH",
    "CLIENT TRACKING ON PREFIX",
    "CLIENT TRACKING ON PREFIX a",
    "CLIENT TRACKING ON OPTIN OPTOUT",
    "CLIENT TRACKING ON REDIRECT",
    "CLIENT TRACKING ON REDIRECT x",
    "CLIENT TRACKINGINFO a",
    ("CLIENT TRACKINGINFO", "keys"),
    "CLIENT GETREDIR",
    "CLIENT CACHING",
]

INLINE = [
    b"PING\r\n",
    b"ping\n",
    b"PING \"a b\"\r\n",
    b"ECHO 'it\\'s'\r\n",
    b"ECHO \"\\n\\r\\t\\b\\a\\x00\\xzz\\\\ \\\"\"\r\n",
    b"NOSUCH \"x\\x41\" 'y'\r\n",
    b"\r\nPING\r\n",
    b"  ECHO   a  \r\n",
    b"ECHO \"a\r\n",
    CLOSED,
]

INLINE_GLUED = [b"ECHO 'it''s'\r\n", CLOSED]
INLINE_LONG = [b"x" * 70000, CLOSED]

BROKEN_BULK = [b"*1\r\n$x\r\n", CLOSED]
BROKEN_COUNT = [b"*x\r\n", CLOSED]
BROKEN_HUGE = [b"*99999999999\r\n", CLOSED]
BROKEN_TYPE = [b"*1\r\n:1\r\n", CLOSED]
BROKEN_LONG = [b"*1\r\n$999999999999\r\n", CLOSED]
EMPTY = [b"*0\r\nPING\r\n", b"*-1\r\nPING\r\n", b"*1\r\n$0\r\n\r\n", b"PING\r\n"]

SCENARIOS = {name: (password, scenario) for name, password, scenario in (
    ("unknown_commands", False, UNKNOWN),
    ("wrong_arity", False, ARITY),
    ("connection", False, CONNECTION),
    ("hello", False, HELLO),
    ("without_password", True, NO_PASSWORD),
    ("client", False, CLIENT),
    ("client_reply", False, REPLY_OFF),
    ("config", False, CONFIG),
    ("command", False, COMMAND),
    ("multi", False, MULTI),
    ("pubsub", False, PUBSUB),
    ("memory", False, MEMORY),
    ("info", False, INFO),
    ("slowlog", False, SLOWLOG),
    ("tracking", False, TRACKING),
    ("inline", False, INLINE),
    ("inline_glued_quotes", False, INLINE_GLUED),
    ("inline_too_long", False, INLINE_LONG),
    ("broken_bulk", False, BROKEN_BULK),
    ("broken_count", False, BROKEN_COUNT),
    ("broken_huge", False, BROKEN_HUGE),
    ("broken_type", False, BROKEN_TYPE),
    ("broken_long", False, BROKEN_LONG),
    ("empty", False, EMPTY),
)}

OK = ("+", b"OK")
NO_CLUSTER = ("-", b"ERR This instance has cluster support disabled")
NOT_IN_MULTI = ("-", b"ERR Command not allowed inside a transaction")
FIRST_AUTH = ("-", b"NOAUTH HELLO must be called with the client already authenticated, otherwise "
              b"the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client "
              b"and select the RESP protocol version at the same time")
NO_KEYS = ("-", b"ERR The command has no key arguments")
TOO_FEW = ("-", b"ERR Invalid number of arguments specified for command")

# request: (why, what latchd answers instead). What is not needed is an error.
ALLOWED = {
    "READONLY": ("a client that may read from replicas works here as well", OK),
    "READWRITE": ("the same", OK),
    "CLUSTER NOSUCH": ("all of CLUSTER is refused in one way", NO_CLUSTER),
    "HELLO": ("the words of Redis 7.2", FIRST_AUTH),
    "HELLO 3": ("the same", FIRST_AUTH),
    "HELLO 3 SETNAME me": ("the same", FIRST_AUTH),
    "COMMAND GETKEYS get": ("Redis 7.2 has this arity", TOO_FEW),
    "COMMAND GETKEYS ping": ("the same", NO_KEYS),
    "COMMAND GETKEYSANDFLAGS ping": ("the same", NO_KEYS),
    "MONITOR": ("refused at once, not only by EXEC", NOT_IN_MULTI),
    "SUBSCRIBE a": ("several replies do not fit into the array of EXEC", NOT_IN_MULTI),
}
