// ioredis-lock, or @microfleet/ioredis-lock with the argument `microfleet`, over ioredis.
import { createRequire } from 'node:module';
import Redis from 'ioredis';
import { serve } from './host.mjs';

const DELAY_MS = 100;
const [how] = process.argv.splice(2, 1);
const client = createRequire(import.meta.url)(
  how === 'microfleet' ? '@microfleet/ioredis-lock' : 'ioredis-lock');

function orNull(error) {
  if (/Lock|lock/.test(error.name)) return null;
  throw error;
}

serve((host, port) => {
  const redis = new Redis(port, host);
  return {
    async acquire(name, leaseMs, waitMs) {
      const lock = client.createLock(redis, {
        timeout: leaseMs, retries: Math.ceil(waitMs / DELAY_MS), delay: DELAY_MS });
      return lock.acquire(name).then(() => lock, orNull);
    },
    extend: async (lock, leaseMs) => lock.extend(leaseMs).then(() => lock, orNull),
    release: async (lock) => lock.release().then(() => true, orNull),
  };
});
