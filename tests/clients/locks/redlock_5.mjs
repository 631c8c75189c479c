// node-redlock 5, over ioredis.
import Redis from 'ioredis';
import redlock from 'redlock';
import { serve } from './host.mjs';

const Redlock = redlock.default ?? redlock;
const DELAY_MS = 200; // as it has it
const isRefusal = (error) => error.name === 'ExecutionError' || error.name === 'ResourceLockedError';

function orNull(error) {
  if (isRefusal(error)) return null;
  throw error;
}

serve((host, ...ports) => {
  const manager = new Redlock(ports.map((port) => new Redis(port, host)));
  return {
    acquire: (name, leaseMs, waitMs) =>
      manager.acquire([name], leaseMs, { retryCount: Math.ceil(waitMs / DELAY_MS) }).catch(orNull),
    extend: (lock, leaseMs) => manager.extend(lock, leaseMs, { retryCount: 0 }).catch(orNull),
    release: (lock) => manager.release(lock, { retryCount: 0 }).catch(orNull),
  };
});
