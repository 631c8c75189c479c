<?php
/* agent.php phpredis|predis TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper for PHP.
 *
 * PHP does one thing at a time. So this process takes and keeps the locks that are free; a request that has to wait gets a
 * process of its own, which keeps its lock. Each asks isHeld() about all of its locks, in turns. README.md beside it
 * says how it is told. */
declare(strict_types=1);

require 'Predis/autoload.php';
require dirname(__DIR__, 3) . '/clients/php/src/autoload.php';

use Latchd\Latchd;
use Latchd\LatchdError;
use Latchd\Lock;

const ASKS_EVERY_S = 0.3;
const TURN_US = 20_000;

function say(string|int ...$words): void
{
    fwrite(STDOUT, implode(' ', $words) . "\n");
}

function start(callable $work): int
{
    $pid = pcntl_fork();
    if ($pid === 0) {
        FFI::cdef('int prctl(int, unsigned long);')->prctl(1, SIGKILL); // it ends with its parent
        $work();
        posix_kill(getmypid(), SIGKILL); // no destructors: the parent has the same connection
    }
    return $pid;
}

/** The options of a lock. */
function arguments(array $words): array
{
    $options = [];
    foreach ($words as $word) {
        [$key, $value] = explode('=', $word, 2) + [1 => true];
        if (in_array($key, ['lease', 'grace', 'keep', 'heartbeat', 'at_least'], true)) {
            $value = (int)$value / 1000;
        }
        $options[$key === 'at_least' ? 'atLeast' : $key] = $value;
    }
    return $options + (isset($options['permits']) ? ['of' => 3] : []);
}

final class Agent
{
    /** @var array<string, Lock> */
    private array $locks = [];
    /** @var array<string, float> when it is to be asked about */
    private array $due = [];
    /** @var array<string, bool> it was said to be uncertain */
    private array $doubted = [];
    /** @var array<string, array{int, resource}> processes, and how they are told */
    private array $others = [];
    private $input = STDIN;

    public function __construct(private readonly Latchd $latchd)
    {
    }

    public function run(): never
    {
        stream_set_blocking($this->input, false);
        for ($rest = '';;) {
            [$read, $write, $except] = [[$this->input], null, null];
            if (stream_select($read, $write, $except, 0, TURN_US) > 0) {
                $rest .= $more = (string)fread($this->input, 65536);
                if ($more === '' && feof($this->input)) {
                    exit;
                }
            }
            while (($end = strpos($rest, "\n")) !== false) {
                [$what, $key, $words] = explode(' ', substr($rest, 0, $end), 3) + [2 => null];
                $rest = substr($rest, $end + 1);
                $this->obey($what, $key, $words === null ? [] : explode(' ', $words));
            }
            $this->ask();
        }
    }

    private function obey(string $what, string $key, array $words): void
    {
        try {
            $this->$what($key, ...$words);
        } catch (LatchdError $error) {
            say($key, 'error', $error->kind);
        }
    }

    /** One lock in a turn. */
    private function ask(): void
    {
        $now = microtime(true);
        foreach ($this->due as $key => $at) {
            if ($at > $now) {
                break; // they are in the order of their times
            }
            unset($this->due[$key]);
            $isHeld = $this->locks[$key]->isHeld();
            if ($isHeld) {
                $this->due[$key] = microtime(true) + ASKS_EVERY_S;
            }
            if ($this->locks[$key]->isUncertain() && !($this->doubted[$key] ?? false)) {
                say($key, 'uncertain');
            }
            $this->doubted[$key] = $this->locks[$key]->isUncertain();
            if (!$isHeld) {
                say($key, 'lost');
            }
            return;
        }
    }

    private function lock(string $key, string $names, string $wait, string ...$words): void
    {
        $names = explode(',', $names);
        $options = arguments($words);
        try {
            $isFree = $wait === '0' || isset($options['atLeast']) || !$this->latchd->isLocked($names);
            $lock = $isFree ? $this->latchd->lock($names, 0.0, ...$options) : null;
        } catch (LatchdError $error) {
            if ($wait === '0') {
                throw $error;
            }
            $lock = null;
        }
        if ($lock === null && $wait !== '0' && !isset($options['atLeast'])) {
            $this->inAnother($key, function () use ($key, $names, $wait, $options) {
                $lock = $this->latchd->lock($names, $wait === '-' ? null : (int)$wait / 1000, ...$options);
                $this->keep($key, $lock);
            });
        } else {
            $this->keep($key, $lock);
        }
    }

    private function keep(string $key, ?Lock $lock): void
    {
        if ($lock === null) {
            say($key, 'null');
            return;
        }
        $this->locks[$key] = $lock;
        $this->due[$key] = microtime(true) + ASKS_EVERY_S;
        say($key, 'token', ...array_values($lock->tokens));
    }

    /** In a process that then does as it is told, too. */
    private function inAnother(string $key, callable $work): void
    {
        [$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = start(function () use ($here, $there, $key, $work) {
            fclose($here);
            [$this->locks, $this->due, $this->others, $this->input] = [[], [], [], $there];
            try {
                $work();
            } catch (LatchdError $error) {
                say($key, 'error', $error->kind);
            }
            $this->run();
        });
        fclose($there);
        $this->others[$key] = [$pid, $here];
    }

    private function unlock(string $key): void
    {
        if (isset($this->others[$key])) {
            fwrite($this->others[$key][1], "unlock $key\n");
            return;
        }
        unset($this->due[$key]);
        $this->locks[$key]->release();
        say($key, $this->locks[$key]->isHeld() ? 'held' : 'unlocked');
    }

    private function locked(string $key, string $names): void
    {
        say($key, 'answer', (int)$this->latchd->isLocked(explode(',', $names)));
    }

    private function follow(string $key, string $name): void
    {
        $this->inAnother($key, function () use ($key, $name) {
            foreach ($this->latchd->follow($name) as $leader) {
                say($key, 'leader', $leader['token'], $leader['data'] === '' ? '-' : $leader['data']);
            }
        });
    }

    private function leave(string $key): void
    {
        [$pid] = $this->others[$key];
        posix_kill($pid, SIGKILL);
        pcntl_waitpid($pid, $status);
        say($key, 'gave-up');
    }

    private function latch(string $key, string $what, string $name, string ...$words): void
    {
        $latch = $this->latchd->latch($name);
        if ($what === 'await') {
            $this->inAnother($key, fn () => say($key, 'answer', (int)$latch->wait((int)$words[0] / 1000)));
            return;
        }
        $words = $what === 'set' ? [(int)$words[0], ...array_slice($words, 1)] : $words;
        say($key, 'answer', (int)$latch->$what(...$words));
    }

    /** Processes that were forked with one object. A folder is there while somebody is in. */
    private function crowd(string $key, string $name, string $count, string $turns): void
    {
        $folder = sys_get_temp_dir() . '/latchd-crowd-' . getmypid();
        $pids = [];
        for ($i = 0; $i < (int)$count; $i++) {
            $pids[] = $pid = pcntl_fork();
            if ($pid === 0) {
                $overlaps = 0;
                for ($turn = 0; $turn < (int)$turns; $turn++) {
                    $this->latchd->with($name, function () use ($folder, &$overlaps) {
                        $overlaps += (int)!@mkdir($folder);
                        @rmdir($folder);
                    });
                }
                exit($overlaps);
            }
        }
        $overlaps = 0;
        foreach ($pids as $pid) {
            pcntl_waitpid($pid, $status);
            $overlaps += pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 1000;
        }
        say($key, 'overlaps', $overlaps);
    }
}

[, $library, $timeout, $patience] = $argv;
$log = fn (string $line) => fwrite(STDERR, "$line\n");
(new Agent(new Latchd(array_slice($argv, 4), (float)$timeout, (float)$patience, $library, $log)))->run();
