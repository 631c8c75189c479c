<?php
// What only the helper for PHP has: php_cases.php phpredis|predis PORT. Prints TAP. `php_cases.php LIBRARY PORT HOW NAME`
// is another process, which waits for the lock, says so when it has it, and holds it until its input ends.
declare(strict_types=1);

set_error_handler(fn ($level, $text, $file, $line) => error_reporting() & $level
    ? throw new ErrorException($text, 0, $level, $file, $line) : false, E_ALL & ~E_DEPRECATED);
foreach (['Predis', 'Illuminate/Cache', 'Illuminate/Support', 'Symfony/Component/Lock'] as $library) {
    @include_once "$library/autoload.php";
}
require dirname(__DIR__, 3) . '/clients/php/src/autoload.php';

use Illuminate\Contracts\Cache\LockTimeoutException;
use Latchd\Connection;
use Latchd\Latchd;
use Latchd\LaravelLocks;
use Latchd\LockLost;
use Latchd\LockTimeout;
use Latchd\SymfonyStore;
use Latchd\Unreachable;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;

const SOON_S = 20; // on a busy machine

final class Skip extends Exception
{
}

function same(mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new RuntimeException(var_export($got, true) . ' instead of ' . var_export($wanted, true));
    }
}

function fails(string $class, callable $work): void
{
    try {
        $work();
    } catch (Throwable $error) {
        same(get_class($error), $class);
        return;
    }
    throw new RuntimeException("no $class");
}

function until(callable $condition, string $what): void
{
    for ($end = Latchd::clock() + SOON_S; !$condition(); usleep(10_000)) {
        if (Latchd::clock() > $end) {
            throw new RuntimeException('not within ' . SOON_S . " s: $what");
        }
    }
}

final class Cases
{
    private Latchd $latchd;
    private Latchd $admin; // over a connection of its own

    public function __construct(private string $library, private int $port)
    {
        $this->latchd = new Latchd("redis://127.0.0.1:$port", library: $library);
        $this->admin = new Latchd("redis://127.0.0.1:$port", library: $library);
    }

    private function waiting(string $name, int $count): void
    {
        until(fn () => count($this->admin->ask(['WAITERS', $name])) === $count, "$count wait for $name");
    }

    /** @return array{resource, list<resource>} */
    private function another(string $how, string $name): array
    {
        $process = proc_open([PHP_BINARY, __FILE__, $this->library, "$this->port", $how, $name],
            [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        return [$process, $pipes];
    }

    /** Another process waits until this one gives the lock up, and has it until it is told to end. */
    private function hands_over(string $how, string $name, callable $giveUp): void
    {
        [$process, $pipes] = $this->another($how, $name);
        $this->waiting($name, 1);
        $giveUp();
        same(trim((string)fgets($pipes[1])), 'held');
        same($this->admin->lock($name, 0.0), null);
        fclose($pipes[0]);
        same(proc_close($process), 0);
        same($this->admin->isLocked($name), false);
    }

    public function works_with_a_lock(): void
    {
        same($this->latchd->with('job', fn ($lock) => $lock->token > 0 && $lock->isHeld()), true);
        fails(DomainException::class, fn () => $this->latchd->with('job', fn () => throw new DomainException()));
        fails(LockLost::class, fn () => $this->latchd->with('job', fn () => $this->admin->forceUnlock('job')));
        $lock = $this->latchd->lock('job', 0.0);
        fails(LockTimeout::class, fn () => $this->admin->with('job', fn () => null, 0.1));
        fails(LockTimeout::class, fn () => $this->latchd->with('job', fn () => null, 0.0));
        $this->hands_over('helper', 'job', fn () => $lock->release());
        same($lock->isHeld(), false);
        $lock->release();
    }

    public function notices_a_loss(): void
    {
        $lock = $this->latchd->lock('job', 0.0);
        $lock->assertHeld();
        same($this->admin->forceUnlock('job'), true);
        same($lock->isHeld(), false);
        same($lock->secondsLeft(), 0.0);
        fails(LockLost::class, fn () => $lock->assertHeld());
        fails(LockLost::class, fn () => $lock->extend(5));
        fails(LockLost::class, fn () => $lock->release());
    }

    public function attaches_all_holds_to_a_new_connection(): void
    {
        $locks = [$this->latchd->lock('one', grace: 0), $this->latchd->lock('two'), $this->latchd->lock(['from', 'to'])];
        $leased = $this->latchd->lock('leased', lease: 60);
        $id = $this->latchd->ask(['CLIENT', 'ID']);
        $locks[0]->release();
        same($this->admin->ask(['CLIENT', 'KILL', 'ID', $id]), 1);
        same($locks[1]->isHeld(), true);
        $client = $this->latchd->ask(['CLIENT', 'ID']);
        foreach (['two', 'from', 'to'] as $name) {
            same($this->admin->info($name)['holds'][0]['client'], $client);
        }
        same($this->admin->info('leased')['holds'][0]['renewed'], 'fixed');
        foreach ([$locks[1], $locks[2], $leased] as $lock) {
            $lock->release();
        }
    }

    public function goes_on_in_another_process(): void
    {
        $lock = $this->latchd->lock('job', 0.0);
        same($this->admin->restore('job', str_repeat('x', 32)), null);
        $restored = $this->admin->restore('job', $lock->id);
        same($restored->token, $lock->token);
        $restored->release();
        same($lock->isHeld(), false);
        $lock = $this->latchd->lock('job', 0.0, lease: 60);
        $this->admin->restore('job', $lock->id, 30)->release();
        same($this->admin->isLocked('job'), false);
        foreach ([['data' => 'x'], ['fair' => true], ['read' => true], ['owner' => 'ann'], ['permits' => 1, 'of' => 3]] as
            $i => $options) {
            $lock = $this->latchd->lock("job-$i", 0.0, ...$options);
            $restored = $this->admin->restore("job-$i", $lock->id);
            same([$restored->token, $restored->isHeld(), $lock->isHeld()], [$lock->token, true, true]);
            $restored->release();
            same($lock->isHeld(), false);
        }
    }

    public function waits_for_an_owner_over_one_connection(): void
    {
        $held = $this->admin->lock('job', 0.0);
        $latchd = new Latchd("redis://127.0.0.1:$this->port", 0.5, library: $this->library);
        $lock = $latchd->lock('mine', 0.0, grace: 0);
        same($latchd->lock('job', 11.0, owner: 'ann'), null); // longer than the ask of a wait without an owner
        same($lock->isHeld(), true);
        $held->release();
        $lock->release();
    }

    public function waits_to_the_end(): void
    {
        $held = $this->admin->lock('job', 0.0);
        $latch = $this->latchd->latch('latch');
        $latch->set(1);
        foreach ([fn () => $this->latchd->lock('job', 0.05) !== null, fn () => $latch->wait(0.05)] as $wait) {
            for ($i = 0; $i < 20; $i++) {
                $began = hrtime(true);
                same([$wait(), hrtime(true) - $began >= 50_000_000], [false, true]);
            }
        }
        $latch->delete();
        $held->release();
    }

    public function leaves_no_place_behind(): void
    {
        $held = $this->admin->lock('job', 0.0);
        same($this->latchd->lock('job', 0.0, keep: 30), null);
        $held->release();
        $this->admin->lock('job', 0.0)->release();
    }

    public function survives_the_exception_of_a_signal_handler(): void
    {
        $leader = $this->admin->lock('leader', 0.0, lease: 2, data: 'a');
        pcntl_async_signals(true);
        pcntl_signal(SIGALRM, fn () => throw new DomainException());
        pcntl_alarm(1);
        fails(DomainException::class, function () use ($leader) {
            foreach ($this->latchd->follow('leader') as $seen) {
                $leader === null || same($seen['token'], $leader->token);
                $leader = null;
            }
        });
        pcntl_signal(SIGALRM, SIG_DFL);
        $lock = $this->latchd->lock('job', 0.0);
        same($lock->token, $this->admin->info('job')['holds'][0]['token']);
        $lock->release();
    }

    public function releases_later_what_it_could_not(): void
    {
        $latchd = new Latchd("redis://127.0.0.1:$this->port", 0.5, library: $this->library);
        $lock = $latchd->lock('job', 0.0);
        $addresses = new ReflectionProperty($latchd, 'addresses');
        $id = $latchd->ask(['CLIENT', 'ID']);
        $addresses->setValue($latchd, ['unix:///nowhere']);
        $this->admin->ask(['CLIENT', 'KILL', 'ID', $id]);
        fails(Unreachable::class, fn () => $lock->release());
        same([$lock->isHeld(), $this->admin->isLocked('job')], [false, true]);
        $addresses->setValue($latchd, ["redis://127.0.0.1:$this->port"]);
        $lock->release();
        same($this->admin->isLocked('job'), false);
        $lock->release();
    }

    public function connects_by_ipv6(): void
    {
        $listener = @stream_socket_server('tcp://[::1]:0') ?: throw new Skip('there is no IPv6');
        $pid = pcntl_fork();
        if ($pid === 0) {
            $connection = stream_socket_accept($listener, SOON_S);
            for ($sent = ''; !str_contains($sent, 'PING'); $sent .= fread($connection, 100)) {
            }
            fwrite($connection, "+PONG\r\n");
            fread($connection, 1);
            posix_kill(getmypid(), SIGKILL); // the connections are the parent's
        }
        same(Connection::open('redis://' . stream_socket_get_name($listener, false), 5.0, $this->library, [])
            instanceof Connection, true);
        pcntl_waitpid($pid, $status);
    }

    public function has_no_holds_of_its_parent(): void
    {
        $lock = $this->latchd->lock('job', 0.0);
        $pid = pcntl_fork();
        if ($pid === 0) {
            $isAlone = !$lock->isHeld() && $this->latchd->lock('job', 0.0) === null;
            try {
                $lock->release();
            } catch (LockLost) {
                exit($isAlone ? 7 : 1);
            }
        }
        pcntl_waitpid($pid, $status);
        same(pcntl_wexitstatus($status), 7);
        same($lock->isHeld(), true);
        $lock->release();
    }

    public function serves_laravel(): void
    {
        interface_exists('Illuminate\Contracts\Cache\LockProvider') || throw new Skip('Laravel is not installed');
        $ours = new LaravelLocks($this->latchd);
        $theirs = new LaravelLocks($this->admin);
        foreach ([60, 0] as $seconds) {
            $lock = $ours->lock('laravel', $seconds);
            same($lock->get(), true);
            same($lock->get(), false); // as with Laravel's own: a lock has no count
            same($theirs->lock('laravel', 60)->get(), false);
            same($theirs->lock('laravel', 60, $lock->owner())->get(), false);
            same($theirs->lock('laravel', 60)->release(), false);
            fails(LockTimeoutException::class, fn () => $theirs->lock('laravel')->block(1));
            $this->hands_over('laravel', 'laravel', function () use ($theirs, $lock) {
                same($theirs->restoreLock('laravel', $lock->owner())->release(), true);
            });
            same($theirs->restoreLock('laravel', $lock->owner())->release(), false);
        }
        $lock = $ours->lock('laravel', 60, 'ann');
        same([$lock->get(fn () => 7), $lock->get(), $lock->owner()], [7, true, 'ann']);
        $theirs->lock('laravel')->forceRelease();
        same($lock->release(), false);
        same($theirs->lock('laravel')->block(5, fn () => 8), 8);
    }

    public function serves_symfony(): void
    {
        interface_exists('Symfony\Component\Lock\BlockingStoreInterface')
            || throw new Skip('Symfony Lock is not installed');
        $ours = new LockFactory(new SymfonyStore($this->latchd));
        $theirs = new LockFactory(new SymfonyStore($this->admin));
        foreach ([60.0, null] as $ttl) {
            $key = new Key('symfony');
            $lock = $ours->createLockFromKey($key, $ttl, false);
            same([$lock->acquire(), $lock->acquire(), $lock->isAcquired(), $lock->isExpired()], [true, true, true, false]);
            same($this->admin->info('symfony')['holds'][0]['renewed'], $ttl === null ? 'watchdog' : 'fixed');
            same($theirs->createLock('symfony')->acquire(), false);
            $copy = $theirs->createLockFromKey(unserialize(serialize($key)), $ttl, false);
            same($copy->isAcquired(), true);
            $ttl === null || $copy->refresh(90);
            $this->hands_over('symfony', 'symfony', fn () => $copy->release());
            same($lock->isAcquired(), false);
        }
        $key = new Key('symfony');
        $first = new Latchd("redis://127.0.0.1:$this->port", library: $this->library);
        same((new LockFactory(new SymfonyStore($first)))->createLockFromKey($key, null, false)->acquire(), true);
        $copy = $theirs->createLockFromKey(unserialize(serialize($key)), null, false);
        same($copy->acquire(), true);
        $this->admin->ask(['CLIENT', 'KILL', 'ID', $first->ask(['CLIENT', 'ID'])]);
        same($this->latchd->info('symfony')['holds'][0]['client'], $this->admin->ask(['CLIENT', 'ID']));
        $copy->release();
        $ttl = new Key('symfony');
        fails(LockConflictedException::class, fn () => (new SymfonyStore($this->latchd))->putOffExpiration($ttl, 60));
        same($ttl->getRemainingLifetime() <= 60, true); // counted from before the question
        $lock = $ours->createLock('symfony', 60);
        same($lock->acquire(true), true);
        $this->admin->forceUnlock('symfony');
        same($lock->isAcquired(), false);
        fails(LockConflictedException::class, fn () => $lock->refresh());
        same($lock->acquire(), true);
        $lock->release();
        same($this->admin->isLocked('symfony'), false);
    }
}

function hold(Latchd $latchd, string $how, string $name): void
{
    [$lock, $take] = match ($how) {
        'helper' => [null, fn () => $latchd->lock($name)],
        'laravel' => [$lock = (new LaravelLocks($latchd))->lock($name, 60), fn () => $lock->block(60)],
        'symfony' => [$lock = (new LockFactory(new SymfonyStore($latchd)))->createLock($name, 60),
            fn () => $lock->acquire(true)],
    };
    $taken = $take();
    echo "held\n";
    fgets(STDIN);
    ($lock ?? $taken)->release();
}

[, $library, $port] = $argv;
if (isset($argv[3])) {
    hold(new Latchd("redis://127.0.0.1:$port", library: $library), $argv[3], $argv[4]);
    exit(0);
}
$failed = 0;
$cases = array_filter(get_class_methods('Cases'), fn ($name) => (new ReflectionMethod('Cases', $name))->isPublic()
    && $name !== '__construct');
echo '1..' . count($cases) . "\n";
foreach (array_values($cases) as $i => $name) {
    [$verdict, $more] = ['ok', ''];
    try {
        (new Cases($library, (int)$port))->$name();
    } catch (Skip $why) {
        $more = " # SKIP {$why->getMessage()}";
    } catch (Throwable $error) {
        [$verdict, $failed] = ['not ok', 1];
        $where = array_filter($error->getTrace(), fn ($at) => str_ends_with($at['file'] ?? '', 'php_cases.php'));
        echo '# ' . get_class($error) . ': ' . $error->getMessage() . ' at ' . implode(' ', array_column($where, 'line')) . "\n";
    }
    echo "$verdict " . ($i + 1) . ' - ' . str_replace('_', ' ', $name) . "$more\n";
}
exit($failed);
