<?php
// A program that takes locks as it is told (README.md), a line after the other. serve($connect) is
// given an adapter: $connect($host, $port) makes a client of the library, whose functions
// acquire($name, $lease, $wait) (a lock, or null), release($lock) and isHeld($name) it calls, with
// times in seconds. A wait of 0 is one try. Who contends is a process each.

const LEASE_S = 10;
const WAIT_S = 60;

function say(...$words) {
    fwrite(STDOUT, implode(' ', $words) . "\n");
}

// Takes turns until the time is over. Returns hand-overs, overlaps, and the waits.
function contend($client, $me, $name, $end, $hold_us, $pause_us, $guard) {
    $handovers = $overlaps = 0;
    $waits = [];
    while (microtime(true) < $end) {
        $began = microtime(true);
        $lock = $client->acquire($name, LEASE_S, WAIT_S);
        if ($lock === null) {
            throw new RuntimeException('not acquired in ' . WAIT_S . ' s');
        }
        $wait_us = (int)((microtime(true) - $began) * 1e6);
        $in_time = microtime(true) < $end;
        $waits[] = $in_time ? $wait_us : -$wait_us;
        $overlaps += @fopen($guard, 'x') === false;
        $last = @file_get_contents("$guard-last"); // only who holds the lock is here
        $handovers += $in_time && $last !== false && $last !== "$me";
        file_put_contents("$guard-last", "$me");
        if ($in_time) {
            usleep($hold_us);
        }
        $overlaps += !@unlink($guard);
        $client->release($lock);
        usleep(random_int(0, 2 * $pause_us));
    }
    return [$handovers, $overlaps, ...$waits];
}

// In a process of its own: the rest of its line is what contend() returns.
function contend_apart($connect, $me, ...$how) {
    [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    if (pcntl_fork() === 0) {
        try {
            fwrite($theirs, implode(' ', contend($connect(), $me, ...$how)));
        } catch (Throwable $error) {
            fwrite($theirs, 'error ' . $error->getMessage());
        }
        posix_kill(getmypid(), SIGKILL); // nothing of the parent's is closed
    }
    return $ours;
}

function contend_all($connect, $name, $count, $seconds, $hold_us, $pause_us, $guard) {
    $end = microtime(true) + $seconds;
    for ($me = 0; $me < $count; $me++) {
        $apart[] = contend_apart($connect, getmypid() . "-$me", $name, $end, $hold_us, $pause_us, $guard);
    }
    $sums = [0, 0];
    $waits = [];
    foreach ($apart as $stream) {
        $said = stream_get_contents($stream);
        if (!ctype_digit($said[0] ?? '')) {
            throw new RuntimeException("one of them: $said");
        }
        $words = explode(' ', $said);
        $sums = [$sums[0] + $words[0], $sums[1] + $words[1]];
        $waits = [...$waits, ...array_slice($words, 2)];
    }
    return ['contended', ...$sums, ...$waits];
}

function serve($connect) {
    [, $host, $port] = $_SERVER['argv'];
    $make = fn() => $connect($host, (int)$port);
    $client = $make();
    $locks = [];
    while (($line = fgets(STDIN)) !== false) {
        [$what, $key, $name, $lease_ms, $wait_ms] = [...explode(' ', trim($line)), '', '', ''];
        try {
            switch ($what) {
            case 'acquire':
                $locks[$key] = $client->acquire($name, intdiv((int)$lease_ms, 1000), intdiv((int)$wait_ms, 1000));
                say($key, $locks[$key] === null ? 'refused' : 'acquired');
                break;
            case 'release':
                say($key, $client->release($locks[$key]) ? 'released' : 'refused');
                break;
            case 'query':
                say($key, $client->isHeld($name) ? 'held' : 'free');
                break;
            case 'contend':
                say($key, ...contend_all($make, ...array_slice(explode(' ', trim($line)), 2)));
            }
        } catch (Throwable $error) {
            $why = $error->getMessage() . ' ' . $error->getPrevious()?->getMessage();
            say($key, 'error', strtr($why, "\r\n", '  '));
        }
    }
}
