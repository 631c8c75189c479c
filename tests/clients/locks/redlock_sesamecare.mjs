// @sesamecare-oss/redlock, the successor of node-redlock, over ioredis.
import Redis from 'ioredis';
import { Redlock } from '@sesamecare-oss/redlock';
import { serve } from './host.mjs';

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
    extend: (lock, leaseMs) => {
      lock.settings = { retryCount: 0 };
      return lock.extend(leaseMs).catch(orNull);
    },
    release: (lock) => manager.release(lock, { retryCount: 0 }).catch(orNull),
  };
});
