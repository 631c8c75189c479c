// A program that takes locks as it is told (README.md). serve(connect) is given an adapter:
// connect(host, ...ports) makes a client of the library, whose functions acquire(name, leaseMs, waitMs)
// (a lock, or null), extend(lock, leaseMs) (the lock, or null), release(lock) and isHeld(name) it
// calls. A wait of 0 is one try.
import { closeSync, openSync, unlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

const LEASE_MS = 10_000;
const WAIT_MS = 60_000;

function say(...words) {
  process.stdout.write(`${words.join(' ')}\n`);
}

class Contention {
  constructor(seconds, holdUs, pauseUs, guard) {
    this.end = performance.now() + seconds * 1000;
    this.holdMs = holdUs / 1000;
    this.pauseMs = pauseUs / 1000;
    this.guard = guard;
    this.waits = [];
    this.handovers = 0;
    this.overlaps = 0;
  }

  isOver() {
    return performance.now() >= this.end;
  }

  enter(me, began) {
    const waitUs = Math.round((performance.now() - began) * 1000);
    const inTime = !this.isOver();
    this.waits.push(inTime ? waitUs : -waitUs);
    try {
      closeSync(openSync(this.guard, 'wx'));
    } catch {
      this.overlaps += 1;
    }
    if (inTime && this.last !== undefined && this.last !== me) this.handovers += 1;
    this.last = me;
    return inTime;
  }

  leave() {
    try {
      unlinkSync(this.guard);
    } catch {
      this.overlaps += 1;
    }
  }

  async takeTurns(client, me, name) {
    while (!this.isOver()) {
      const began = performance.now();
      const lock = await client.acquire(name, LEASE_MS, WAIT_MS);
      if (!lock) throw new Error(`not acquired in ${WAIT_MS} ms`);
      if (this.enter(me, began)) await setTimeout(this.holdMs);
      this.leave();
      await client.release(lock);
      await setTimeout(Math.random() * 2 * this.pauseMs);
    }
  }
}

export function serve(connect) {
  const [host, places] = process.argv.slice(2);
  const ports = places.split(',').map(Number);
  const client = connect(host, ...ports);
  const locks = new Map();
  const orders = {
    async acquire(key, name, leaseMs, waitMs) {
      locks.set(key, await client.acquire(name, Number(leaseMs), Number(waitMs)));
      return locks.get(key) ? 'acquired' : 'refused';
    },
    async extend(key, leaseMs) {
      const lock = await client.extend(locks.get(key), Number(leaseMs));
      if (lock) locks.set(key, lock);
      return lock ? 'extended' : 'refused';
    },
    async release(key) {
      return await client.release(locks.get(key)) ? 'released' : 'refused';
    },
    async contend(key, name, count, ...how) {
      const contention = new Contention(...how);
      await Promise.all(Array.from({ length: Number(count) }, (_, me) =>
        contention.takeTurns(connect(host, ...ports), me, name)));
      return ['contended', contention.handovers, contention.overlaps, ...contention.waits].join(' ');
    },
  };
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const [what, key, ...words] = line.split(' ');
    try {
      say(key, await orders[what](key, ...words));
    } catch (error) {
      say(key, 'error', error.message);
    }
  }).on('close', () => process.exit());
}
