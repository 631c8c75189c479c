// redis-semaphore's Mutex, over ioredis. It renews by itself; that is how it extends. Its key is
// `mutex:` and the name.
import Redis from 'ioredis';
import semaphore from 'redis-semaphore';
import { serve } from './host.mjs';

serve((host, port) => {
  const redis = new Redis(port, host);
  return {
    async acquire(name, leaseMs, waitMs) {
      const mutex = new semaphore.Mutex(redis, name, {
        lockTimeout: leaseMs,
        ...waitMs ? { acquireTimeout: waitMs } : { acquireAttemptsLimit: 1 },
        onLockLost: () => {},
      });
      return await mutex.tryAcquire() ? mutex : null;
    },
    async release(mutex) {
      await mutex.release();
      return true;
    },
  };
});
