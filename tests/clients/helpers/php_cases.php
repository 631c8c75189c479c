<?php
// What the helper for PHP has to do: php_cases.php phpredis|predis PORT. Prints TAP. Each program has a
// connection of its own; `php_cases.php LIBRARY PORT hold NAME` holds a lock until its input ends.
declare(strict_types=1);

set_error_handler(fn ($level, $text, $file, $line) => error_reporting() & $level
    ? throw new ErrorException($text, 0, $level, $file, $line) : false, E_ALL & ~E_DEPRECATED);
foreach (['Predis', 'Illuminate/Cache', 'Illuminate/Support', 'Symfony/Component/Lock'] as $library) {
    @include_once "$library/autoload.php";
}
require dirname(__DIR__, 3) . '/clients/php/src/Latchd.php';
require dirname(__DIR__, 3) . '/clients/php/src/Lock.php';

use Latchd\Latchd;
use Latchd\LatchdError;
use Latchd\LockLost;
use Latchd\LockTimeout;
use Latchd\Unreachable;

const LEASE_S = 4;
const SOON_S = 20; // on a busy machine

function client(string $library, int $port): Redis|Predis\Client
{
    if ($library === 'predis') {
        return new Predis\Client(['host' => '127.0.0.1', 'port' => $port, 'read_write_timeout' => 10]);
    }
    $redis = new Redis();
    $redis->connect('127.0.0.1', $port);
    return $redis;
}

function same(mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new RuntimeException(var_export($got, true) . ' instead of ' . var_export($wanted, true));
    }
}

function fails(string $class, string $kind, callable $work): void
{
    try {
        $work();
    } catch (LatchdError $error) {
        same([get_class($error), $error->kind], [$class, $kind]);
        return;
    }
    throw new RuntimeException("no $class");
}

function until(callable $condition, string $what): void
{
    for ($end = Latchd::clock() + SOON_S; !$condition(); usleep(10_000)) {
        if (Latchd::clock() > $end) {
            throw new RuntimeException("not within " . SOON_S . " s: $what");
        }
    }
}

/** Another program, which waits for the lock and then holds it. */
final class Other
{
    private $process;
    private array $pipes = [];

    public function __construct(string $library, int $port, string $name, string $how = 'hold')
    {
        $this->process = proc_open([PHP_BINARY, __FILE__, $library, "$port", $how, $name],
            [['pipe', 'r'], ['pipe', 'w'], STDERR], $this->pipes);
    }

    public function heard(): string
    {
        return trim((string)fgets($this->pipes[1]));
    }

    public function end(): int
    {
        fclose($this->pipes[0]);
        return proc_close($this->process);
    }
}

final class Cases
{
    private Latchd $latchd;
    private Latchd $admin; // over a connection of its own

    public function __construct(private string $library, private int $port)
    {
        $this->latchd = new Latchd(client($library, $port));
        $this->admin = new Latchd(client($library, $port));
    }

    private function waiting(string $name, int $count): void
    {
        until(fn () => count($this->admin->ask('WAITERS', $name)) === $count, "$count wait for $name");
    }

    public function takes_turns(): void
    {
        $first = $this->latchd->lock('job', 0);
        same($this->admin->tryLock('job'), null);
        $began = Latchd::clock();
        fails(LockTimeout::class, 'TIMEOUT', fn () => $this->admin->lock('job', 0.3));
        same(Latchd::clock() - $began >= 0.3, true);
        $this->waiting('job', 0);
        $other = new Other($this->library, $this->port, 'job');
        $this->waiting('job', 1);
        $first->release();
        same((int)$other->heard() > $first->token, true);
        same($this->latchd->tryLock('job'), null);
        same($other->end(), 0);
        same($this->latchd->with('job', fn ($lock) => $lock->token > $first->token), true);
        same($this->latchd->holders('job'), []);
    }

    public function waits_for_longer_than_one_call(): void
    {
        $held = $this->latchd->lock('long', 0);
        $other = new Other($this->library, $this->port, 'long');
        $this->waiting('long', 1);
        usleep(3_500_000); // two of its calls
        same(count($this->admin->ask('WAITERS', 'long')), 1);
        $held->release();
        same((int)$other->heard() > $held->token, true);
        $other->end();
    }

    public function takes_the_options_of_lock(): void
    {
        $readers = [$this->latchd->lock('page', 0, ['read' => true]), $this->latchd->lock('page', 0, ['READ' => true])];
        same($this->latchd->tryLock('page', 0, ['write' => true]), null);
        foreach ($readers as $reader) {
            $reader->release();
        }
        $this->latchd->lock('fair', 0, ['fair' => true, 'grace' => 0, 'owner' => 'ann'])->release();
        $permits = $this->latchd->lock('pool', 0, ['permits' => 2, 'of' => 3]);
        same($this->latchd->tryLock('pool', 0, ['permits' => 2]), null);
        $permits->release();
        $leased = $this->latchd->lock('leased', 0, ['lease' => 0.5]);
        until(fn () => $this->latchd->holders('leased') === [], 'its lease is over');
        same($leased->isHeld(), false);
        fails(LockLost::class, 'NOTHELD', fn () => $leased->release());
        $leased = $this->latchd->lock('leased', 0, ['lease' => 60]);
        same($leased->secondsLeft() > 50, true);
        $leased->extend(0.3);
        until(fn () => $this->latchd->holders('leased') === [], 'the shorter lease is over');
    }

    public function tells_a_loss(): void
    {
        $lock = $this->latchd->lock('lost', 0);
        same($lock->isHeld(), true);
        same($this->admin->forceUnlock('lost'), true);
        same($lock->isHeld(), false);
        fails(LockLost::class, 'NOTHELD', fn () => $lock->assertHeld());
        fails(LockLost::class, 'NOTHELD', fn () => $lock->release());
        fails(LockLost::class, 'NOTHELD', fn () => $this->latchd->with('lost', fn () => $this->admin->forceUnlock('lost')));
        same($this->latchd->holders('lost'), []);
        try {
            $this->latchd->with('lost', fn () => throw new DomainException('of the work'));
        } catch (DomainException) {
            same($this->latchd->holders('lost'), []);
        }
    }

    public function comes_back_over_another_connection(): void
    {
        $lock = $this->latchd->lock('back', 0);
        $id = $this->latchd->ask('CLIENT', 'ID');
        same($this->admin->ask('CLIENT', 'KILL', 'ID', $id), 1);
        same($lock->isHeld(), true);
        same($this->latchd->ask('CLIENT', 'ID') === $id, false);
        usleep((int)(1.5 * LEASE_S * 1e6)); // latchd renews it over the new one
        same($this->admin->tryLock('back'), null);
        $lock->release();
    }

    public function another_program_goes_on_by_the_id(): void
    {
        $lock = $this->latchd->lock('handed', 0);
        $other = $this->admin->attach('handed', $lock->id);
        same($other->isHeld(), true);
        same($this->admin->lock('handed', 0, [], $lock->id)->token, $lock->token);
        $other->release();
        same($this->latchd->holders('handed'), []);
    }

    public function has_typed_errors(): void
    {
        fails(LatchdError::class, 'ERR', fn () => $this->latchd->lock('latchd:mine', 0));
        $this->latchd->lock('pool', 0, ['permits' => 1, 'of' => 1])->release();
        fails(LatchdError::class, 'WRONGTYPE', fn () => $this->latchd->lock('pool', 0));
        $closed = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int)substr(strrchr(stream_socket_get_name($closed, false), ':'), 1);
        fclose($closed);
        if ($this->library === 'predis') {
            fails(Unreachable::class, 'UNREACHABLE', fn () => (new Latchd(client('predis', $port), 0.2))->lock('job', 0));
        }
    }

    public function serves_laravel(): void
    {
        if (!interface_exists('Illuminate\Contracts\Cache\LockProvider')) {
            return;
        }
        require_once dirname(__DIR__, 3) . '/clients/php/src/Laravel.php';
        $ours = new \Latchd\Laravel($this->latchd);
        $theirs = new \Latchd\Laravel($this->admin);
        $lock = $ours->lock('laravel', 60);
        same($lock->get(), true);
        same($theirs->lock('laravel', 60)->get(), false);
        try {
            $theirs->lock('laravel')->block(1);
            throw new RuntimeException('it has the lock');
        } catch (Illuminate\Contracts\Cache\LockTimeoutException) {
        }
        $other = new Other($this->library, $this->port, 'laravel', 'laravel');
        $this->waiting('laravel', 1);
        same($theirs->restoreLock('laravel', $lock->owner())->release(), true);
        same($other->heard(), 'blocked');
        same($other->end(), 0);
        same($lock->release(), true); // its release, sent again
        same($lock->get(fn () => 7), 7);
        same($lock->get(), true);
        $theirs->lock('laravel')->forceRelease();
        same($lock->release(), false);
        same($theirs->lock('laravel')->block(5, fn () => 8), 8);
    }

    public function serves_symfony(): void
    {
        if (!interface_exists('Symfony\Component\Lock\BlockingStoreInterface')) {
            return;
        }
        require_once dirname(__DIR__, 3) . '/clients/php/src/Symfony.php';
        $ours = new Symfony\Component\Lock\LockFactory(new \Latchd\Symfony($this->latchd));
        $theirs = new Symfony\Component\Lock\LockFactory(new \Latchd\Symfony($this->admin));
        $key = new Symfony\Component\Lock\Key('symfony');
        $lock = $ours->createLockFromKey($key, 60, false);
        same($lock->acquire(), true);
        same([$lock->isAcquired(), $lock->isExpired()], [true, false]);
        same($theirs->createLock('symfony')->acquire(), false);
        $other = new Other($this->library, $this->port, 'symfony', 'symfony');
        $this->waiting('symfony', 1);
        $copy = $theirs->createLockFromKey(unserialize(serialize($key)), 60, false);
        same($copy->isAcquired(), true);
        $copy->refresh();
        $copy->release();
        same($other->heard(), 'blocked');
        same($other->end(), 0);
        same($lock->isAcquired(), false);
        $lock = $ours->createLock('symfony', 60);
        same($lock->acquire(true), true);
        $this->admin->forceUnlock('symfony');
        same($lock->isAcquired(), false);
        try {
            $lock->refresh();
            throw new RuntimeException('it is refreshed');
        } catch (Symfony\Component\Lock\Exception\LockConflictedException) {
        }
    }
}

function hold(string $library, int $port, string $how, string $name): void
{
    $latchd = new Latchd(client($library, $port));
    if ($how === 'hold') {
        $lock = $latchd->lock($name, 60);
        echo "{$lock->token}\n";
        fgets(STDIN);
        $lock->release();
        return;
    }
    require dirname(__DIR__, 3) . '/clients/php/src/' . ucfirst($how) . '.php';
    $how === 'laravel' ? (new \Latchd\Laravel($latchd))->lock($name, 60)->block(60, fn () => print("blocked\n"))
        : (function () use ($latchd, $name) {
            $lock = (new Symfony\Component\Lock\LockFactory(new \Latchd\Symfony($latchd)))->createLock($name, 60);
            $lock->acquire(true);
            echo "blocked\n";
            $lock->release();
        })();
}

[, $library, $port] = $argv;
if (isset($argv[3])) {
    hold($library, (int)$port, $argv[3], $argv[4]);
    exit(0);
}
$failed = 0;
$cases = array_values(array_filter(get_class_methods('Cases'), fn ($name) => $name !== '__construct' && $name !== 'waiting'));
echo '1..' . count($cases) . "\n";
foreach ($cases as $i => $name) {
    try {
        (new Cases($library, (int)$port))->$name();
        echo 'ok ' . ($i + 1) . " - $name\n";
    } catch (Throwable $error) {
        $failed = 1;
        $where = array_filter($error->getTrace(), fn ($at) => str_ends_with($at['file'] ?? '', 'php_cases.php'));
        echo '# ' . get_class($error) . ': ' . $error->getMessage() . ' at '
            . implode(' ', array_column($where, 'line')) . "\n";
        echo 'not ok ' . ($i + 1) . " - $name\n";
    }
}
exit($failed);
