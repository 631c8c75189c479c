// node-redlock 4, over ioredis.
import Redis from 'ioredis';
import Redlock from 'redlock';
import { serve } from './host.mjs';

const DELAY_MS = 200; // as it has it

function orNull(error) {
  if (error.name === 'LockError') return null;
  throw error;
}

serve((host, ...ports) => {
  const servers = ports.map((port) => new Redis(port, host));
  return {
    acquire: async (name, leaseMs, waitMs) =>
      new Redlock(servers, { retryCount: Math.ceil(waitMs / DELAY_MS) })
        .lock(name, leaseMs).catch(orNull),
    extend: async (lock, leaseMs) => lock.extend(leaseMs).catch(orNull),
    release: async (lock) => lock.unlock().then(() => true).catch(orNull),
  };
});
