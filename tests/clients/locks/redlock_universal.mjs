// redlock-universal, over ioredis.
import Redis from 'ioredis';
import { IoredisAdapter, LockAcquisitionError, createLock } from 'redlock-universal';
import { serve } from './host.mjs';

const DELAY_MS = 100;

serve((host, port) => {
  const adapter = new IoredisAdapter(new Redis(port, host));
  return {
    async acquire(name, leaseMs, waitMs) {
      const lock = createLock({ adapter, key: name, ttl: leaseMs, retryDelay: DELAY_MS,
        retryAttempts: Math.ceil(waitMs / DELAY_MS) });
      return lock.acquire().then((handle) => ({ lock, handle }), (error) => {
        if (error instanceof LockAcquisitionError) return null;
        throw error;
      });
    },
    extend: async (held, leaseMs) => (await held.lock.extend(held.handle, leaseMs)) ? held : null,
    release: async (held) => held.lock.release(held.handle),
  };
});
