<?php
/* latchd from Predis.
 *
 * predis.php HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md */
require 'Predis/Autoloader.php';
Predis\Autoloader::register();

[, $host, $port, $protocol, $user, $password, $ca, $name] = $argv;
$scenarios = array_slice($argv, 8);

function connect()
{
    global $host, $port, $user, $password, $ca;
    $parameters = ['host' => $host, 'port' => $port];
    if ($user !== '-') {
        $parameters['username'] = $user;
    }
    if ($password !== '-') {
        $parameters['password'] = $password;
    }
    if ($ca !== '-') {
        $parameters += ['scheme' => 'tls', 'ssl' => ['cafile' => $ca]];
    }
    return new Predis\Client($parameters);
}

$latchd = connect();

function ask(...$words)
{
    global $latchd;
    return $latchd->executeCommand(new Predis\Command\RawCommand($words));
}

function check($good, $got = null)
{
    if (!$good) {
        throw new Exception('unexpected: ' . var_export($got, true));
    }
}

/* The error that this must be answered with. */
function refused($wanted, ...$words)
{
    try {
        check(false, ask(...$words));
    } catch (Predis\Response\ServerException $error) {
        check(strpos($error->getMessage(), $wanted) === 0, $error->getMessage());
    }
}

function version()
{
    print 'version ' . Predis\Client::VERSION . "\n";
}

function hello()
{
    global $latchd, $name;
    check((string) $latchd->ping() === 'PONG');
    $token = ask('LOCK', $name, 'WAIT', 0);
    check(is_int($token) && $token > 2 ** 31, $token);
    check(ask('UNLOCK', $name, 'TOKEN', $token) === 0);
}

function busy()
{
    global $name;
    $token = ask('LOCK', $name);
    check(ask('LOCK', $name, 'WAIT', 0) === null);
    check(ask('LOCK', $name, 'WAIT', 50) === null);
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
    check(ask('LOCK', $name, 'WRITE', 'WAIT', 0) === null);
    check(ask('UNLOCK', $name, 'TOKEN', $one) === 0);
    check(ask('UNLOCK', $name, 'TOKEN', $two) === 0);
    $token = ask('LOCK', $name, 'WRITE', 'WAIT', 0);
    check(ask('UNLOCK', $name, 'TOKEN', $token) === 0);
}

function both($batch)
{
    global $latchd, $name;
    $raw = fn (...$words) => new Predis\Command\RawCommand($words);
    [$one, $two, $none] = $latchd->$batch(function ($batch) use ($raw, $name) {
        foreach (['1', '2', '1'] as $which) {
            $batch->executeCommand($raw('LOCK', $name . $which, 'WAIT', 0));
        }
    });
    check($one > 0 && $two > 0 && $none === null, [$one, $two, $none]);
    $left = $latchd->$batch(function ($batch) use ($raw, $name, $one, $two) {
        $batch->executeCommand($raw('UNLOCK', $name . '1', 'TOKEN', $one));
        $batch->executeCommand($raw('UNLOCK', $name . '2', 'TOKEN', $two));
    });
    check($left === [0, 0], $left);
}

function pipeline()
{
    both('pipeline');
}

function multi()
{
    both('transaction');
}

function events()
{
    global $name;
    $listener = connect()->pubSubLoop();
    $listener->subscribe("lost:$name");
    $listener->psubscribe("g*:$name");
    $wanted = null;
    foreach ($listener as $message) {
        if ($message->kind === 'psubscribe') {
            $token = ask('LOCK', $name, 'OWNER', 'joe');
            check(ask('FORCEUNLOCK', $name, 'OWNER', 'joe') === 1);
        } elseif ($message->kind === 'pmessage') {
            check([$message->channel, $message->payload] === ["granted:$name", "joe $token"],
                  $message);
            $granted = true;
        } elseif ($message->kind === 'message') {
            check([$message->channel, $message->payload] === ["lost:$name", "joe $token"],
                  $message);
            check($granted);
            $listener->stop(true);
        }
    }
}

/* Asks until it is answered, on a new connection after an error. */
function insist(&$asked, ...$words)
{
    global $latchd;
    while (true) {
        $asked++;
        try {
            return ask(...$words);
        } catch (Predis\Connection\ConnectionException $again) {
            usleep(50000);
            $latchd = connect();
        }
    }
}

function wait($request, $patience)
{
    global $name;
    $asked = 0;
    do {
        $token = insist($asked, 'LOCK', $name, 'WAIT', $patience, 'ID', $request);
    } while ($token === null);
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
