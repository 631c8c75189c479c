<?php
// Laravel's Cache::lock, over phpredis.
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';
require __DIR__ . '/host.php';

use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Redis\RedisManager;

class LaravelLocks {
    private RedisStore $store;

    public function __construct($host, $port) {
        $servers = ['default' => ['host' => $host, 'port' => $port, 'database' => 0]];
        $this->store = new RedisStore(new RedisManager(null, 'phpredis', $servers), 'laravel_cache');
    }

    public function acquire($name, $lease, $wait) {
        $lock = $this->store->lock($name, $lease);
        try {
            return ($wait > 0 ? $lock->block($wait) : $lock->get()) ? $lock : null;
        } catch (LockTimeoutException) {
            return null;
        }
    }

    public function release($lock) {
        return $lock->release();
    }
}

serve(fn($host, $port) => new LaravelLocks($host, $port));
