<?php
/* latchd from phpredis.
 *
 * phpredis.php HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md */

[, $host, $port, $protocol, $user, $password, $ca, $name] = $argv;
$scenarios = array_slice($argv, 8);

function connect()
{
    global $host, $port, $user, $password, $ca;
    $latchd = new Redis();
    if ($ca === '-') {
        $latchd->connect($host, (int) $port);
    } else {
        $latchd->connect("tls://$host", (int) $port, 0, null, 0, 0,
                         ['stream' => ['cafile' => $ca]]);
    }
    if ($password !== '-') {
        $latchd->auth($user === '-' ? $password : [$user, $password]);
    }
    return $latchd;
}

$latchd = connect();

function check($good, $got = null)
{
    if (!$good) {
        throw new Exception('unexpected: ' . var_export($got, true));
    }
}

class Refused extends Exception
{
}

/* The answer; null is false. phpredis throws errors that do not begin with ERR, and
 * returns false for those that do. */
function ask(...$words)
{
    global $latchd;
    $latchd->clearLastError();
    try {
        $answer = $latchd->rawCommand(...$words);
        $error = $latchd->getLastError();
    } catch (RedisException $thrown) {
        if (!preg_match('/^[A-Z]+ /', $thrown->getMessage())) {
            throw $thrown; /* the connection */
        }
        $error = $thrown->getMessage();
    }
    if ($error !== null) {
        throw new Refused($error);
    }
    return $answer;
}

/* The error that this must be answered with. */
function refused($wanted, ...$words)
{
    try {
        check(false, ask(...$words));
    } catch (Refused $error) {
        check(strpos($error->getMessage(), $wanted) === 0, $error->getMessage());
    }
}

function version()
{
    print 'version ' . phpversion('redis') . "\n";
}

function hello()
{
    global $latchd, $name;
    check($latchd->ping());
    $token = ask('LOCK', $name, 'WAIT', 0);
    check(is_int($token) && $token > 2 ** 31, $token);
    check(ask('UNLOCK', $name, 'TOKEN', $token) === 0);
}

function busy()
{
    global $name;
    $token = ask('LOCK', $name);
    check(ask('LOCK', $name, 'WAIT', 0) === false);
    check(ask('LOCK', $name, 'WAIT', 50) === false);
    check(ask('RENEW', $name, 'TOKEN', $token) > 0);
    check(ask('UNLOCK', $name, 'TOKEN', $token) === 0);
    check(ask('LOCK', $name, 'FAIR', 'WAIT', 0) > $token);
    check(ask('UNLOCK', $name) === 0);
}

function reenter()
{
    global $name;
    $token = ask('LOCK', $name, 'OWNER', 'ann');
    check(ask('LOCK', $name, 'OWNER', 'ann') === $token);
    check(ask('UNLOCK', $name, 'OWNER', 'ann') === 1);
    check(ask('UNLOCK', $name, 'OWNER', 'ann') === 0);
}

function lose()
{
    global $name;
    $token = ask('LOCK', $name);
    check(ask('FORCEUNLOCK', $name, 'TOKEN', $token) === 1);
    refused('NOTHELD ', 'UNLOCK', $name, 'TOKEN', $token);
    refused('NOTHELD ', 'RENEW', $name, 'TOKEN', $token);
    refused('ERR unknown option', 'LOCK', $name, 'SOON');
}

function share()
{
    global $name;
    $one = ask('LOCK', $name, 'READ');
    $two = ask('LOCK', $name, 'READ');
    check(ask('LOCK', $name, 'WRITE', 'WAIT', 0) === false);
    check(ask('UNLOCK', $name, 'TOKEN', $one) === 0);
    check(ask('UNLOCK', $name, 'TOKEN', $two) === 0);
    $token = ask('LOCK', $name, 'WRITE', 'WAIT', 0);
    check(ask('UNLOCK', $name, 'TOKEN', $token) === 0);
}

function both($mode)
{
    global $latchd, $name;
    $batch = $latchd->multi($mode);
    foreach (['1', '2', '1'] as $which) {
        $batch->rawCommand('LOCK', $name . $which, 'WAIT', 0);
    }
    [$one, $two, $none] = $batch->exec();
    check($one > 0 && $two > 0 && $none === false, [$one, $two, $none]);
    $batch = $latchd->multi($mode);
    $batch->rawCommand('UNLOCK', $name . '1', 'TOKEN', $one);
    $batch->rawCommand('UNLOCK', $name . '2', 'TOKEN', $two);
    check($batch->exec() === [0, 0]);
}

function pipeline()
{
    both(Redis::PIPELINE);
}

function multi()
{
    both(Redis::MULTI);
}

/* In a process of its own, as who listens does nothing else: takes the lock and has it
 * taken away, again and again. */
function lose_loudly()
{
    global $latchd, $name;
    $child = pcntl_fork();
    if ($child === 0) {
        $latchd = connect();
        while (true) {
            ask('LOCK', $name, 'OWNER', 'joe');
            check(ask('FORCEUNLOCK', $name, 'OWNER', 'joe') === 1);
            usleep(20000);
        }
    }
    return $child;
}

/* Listens until it hears that; listening ends with its connection. */
function hear($how, $where, $wanted)
{
    $heard = null;
    $listen = function ($listener, ...$told) use (&$heard) {
        [$channel, $text] = array_slice($told, -2);
        $heard = "$channel $text";
        $listener->close();
    };
    try {
        connect()->$how([$where], $listen);
    } catch (RedisException $closed) {
    }
    check(preg_match("/^$wanted joe [0-9]+$/", $heard ?? ''), $heard);
}

function events()
{
    global $name;
    $child = lose_loudly();
    hear('subscribe', "lost:$name", "lost:$name");
    hear('psubscribe', "g*:$name", "granted:$name");
    posix_kill($child, SIGKILL);
    pcntl_waitpid($child, $status);
}

/* Asks until it is answered, on a new connection after an error. */
function insist(&$asked, ...$words)
{
    global $latchd;
    while (true) {
        $asked++;
        try {
            return ask(...$words);
        } catch (RedisException $again) {
            usleep(50000);
            try {
                $latchd = connect();
            } catch (RedisException $later) {
            }
        }
    }
}

function wait($request, $patience)
{
    global $name;
    $asked = 0;
    do {
        $token = insist($asked, 'LOCK', $name, 'WAIT', $patience, 'ID', $request);
    } while ($token === false);
    print "token $token $asked\n";
    print 'left ' . insist($asked, 'UNLOCK', $name, 'ID', $request) . "\n";
}

if ($scenarios[0] === 'wait') {
    wait($scenarios[1], $scenarios[2]);
} else {
    foreach ($scenarios as $scenario) {
        $scenario();
        print "ok $scenario\n";
    }
}
