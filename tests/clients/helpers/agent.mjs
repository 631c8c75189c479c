// agent.mjs TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper for Node.
// README.md says how it is told.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { Latchd, LatchdError } from 'latchd';

const [timeout, patience, ...urls] = process.argv.slice(2);
const latchd = new Latchd(urls, {
  timeout: timeout * 1000, patience: patience * 1000, library: process.env.LATCHD_LIBRARY,
  log: console.error,
});
const locks = new Map();
const quits = new Map();

function say(...words) {
  process.stdout.write(`${words.join(' ')}\n`);
}

function sayError(key, error) {
  if (error.name === 'AbortError') say(key, 'gave-up');
  else if (error instanceof LatchdError) say(key, 'error', error.code);
  else throw error;
}

const orders = {
  async lock(key, name, wait, ...options) {
    const more = Object.fromEntries(options.map((option) => {
      const [word, value = true] = option.split('=');
      if (word === 'at_least') return ['atLeast', Number(value)];
      return [word, ['lease', 'grace', 'keep', 'heartbeat'].includes(word) ? Number(value) : value];
    }));
    for (const word of ['priority', 'queue']) if (word in more) more[word] = Number(more[word]);
    if (more.permits) Object.assign(more, { permits: Number(more.permits), of: 3 });
    quits.set(key, new AbortController());
    const lock = await latchd.lock(name.split(','), {
      wait: wait === '-' ? undefined : Number(wait), signal: quits.get(key).signal,
      onUncertain: () => say(key, 'uncertain'), ...more,
    });
    if (!lock) return say(key, 'null');
    assert(lock.held);
    locks.set(key, lock);
    lock.signal.addEventListener('abort', () => say(key, 'lost'));
    return say(key, 'token', ...lock.tokens.values());
  },
  async follow(key, name) {
    quits.set(key, new AbortController());
    for await (const leader of latchd.follow(name, { signal: quits.get(key).signal })) {
      say(key, 'leader', leader.token, leader.data || '-');
    }
  },
  async leave(key) {
    quits.get(key).abort();
  },
  async 'give-up'(key) {
    quits.get(key).abort();
  },
  async unlock(key) {
    await locks.get(key)[Symbol.asyncDispose]();
    assert(!locks.get(key).held);
    say(key, 'unlocked');
  },
  async locked(key, names) {
    say(key, 'answer', Number(await latchd.locked(names.split(','))));
  },
  async latch(key, what, name, ...words) {
    const latch = latchd.latch(name);
    const calls = {
      set: () => latch.set(Number(words[0]), { id: words[1] }),
      count: () => latch.count({ id: words[0] }),
      await: () => latch.wait({ timeout: Number(words[0]) }),
      delete: () => latch.delete(),
    };
    say(key, 'answer', Number(await calls[what]()));
  },
  async child(key) {
    say(key, 'pid', spawn('sleep', ['infinity'], { stdio: 'ignore' }).pid);
  },
  async crowd(key, name, count, turns) {
    let inside = 0;
    let overlaps = 0;
    await Promise.all(Array.from({ length: count }, async () => {
      for (let i = 0; i < turns; i++) {
        await latchd.using(name, {}, async () => {
          overlaps += inside++;
          await setImmediate();
          inside--;
        });
      }
    }));
    say(key, 'overlaps', overlaps);
  },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const [what, key, ...words] = line.split(' ');
  orders[what](key, ...words).catch((error) => sayError(key, error));
});
