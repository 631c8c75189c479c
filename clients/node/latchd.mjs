// Locks of latchd, over node-redis or ioredis.
//
//     const latchd = new Latchd('redis://localhost:5625');
//     await using lock = await latchd.lock('job', { wait: 10_000 });
//     if (lock) await work(lock.token, lock.signal);
//
// Each wait has a connection of its own; all holds of a Latchd are renewed over one, and one more
// hears at once what latchd learns of those that last. Every request has an ID and is repeated,
// through the next address if need be, until it is answered. How long a hold may be relied on is
// counted from before its last renewal was sent, on a clock that runs during suspend (where the
// system has one).
//
// A hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of
// its lease, or for grace. The garbage collector releases none. No connection and no timer keeps a process alive that has nothing else to do, but those of
// a request that waits for its answer. Times are in milliseconds.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import os from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const LONGEST_ASK = 10_000; // a wait is made of LOCKs that are this long, to notice a dead host
const MOST_IDLE = 8; // connections that are kept for the next waits
const FIRST_PAUSE = 50; // between attempts, growing
const LAST_PAUSE = 1000;
const LEAST_LEASE = 100; // what latchd takes
const HEARD_AFTER = 50; // a shorter hold is not listened for
const HEARTBEAT_PART = 2 / 3; // after which a hold without a renewal is lost
const LONGEST_TIMER = 2 ** 31 - 1;

// Of leases, in steps of 10 ms; waits are measured by performance.now().
const now = process.platform === 'linux'
  ? () => os.uptime() * 1000 // runs during suspend
  : () => performance.now();

/** What latchd answered, or why it did not; `code` says what kind it is. */
export class LatchdError extends Error {
  constructor(message, code = 'ERR', options) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** Somebody else has the lock, and the wait is over. */
export class LockTimeout extends LatchdError {
  constructor(message) { super(message, 'TIMEOUT'); }
}

/** The lock was lost before it was released: somebody else may have had it since. */
export class LockLost extends LatchdError {
  constructor(message) { super(message, 'NOTHELD'); }
}

/** No address of latchd answers. */
export class Unreachable extends LatchdError {
  constructor(message, options) { super(message, 'UNREACHABLE', options); }
}

/** latchd's Redis cannot be reached, or refuses to grant: BACKEND or NOREPLICAS. */
export class Backend extends LatchdError {}

/** Owners would wait for each other. */
export class Deadlock extends LatchdError {}

/** A limit of latchd's configuration is reached. */
export class Limit extends LatchdError {}

/** The user may not do that, or did not log in. */
export class NoPermission extends LatchdError {}

/** The name belongs to other data, or to a lock of the other class. */
export class WrongType extends LatchdError {}

/** There is no such latch: it was never set, or was deleted, evicted or lost. */
export class LatchGone extends LatchdError {
  constructor(message) { super(message, 'GONE'); }
}

class GoAway extends LatchdError {}

const ERRORS = {
  BACKEND: Backend, NOREPLICAS: Backend, DEADLOCK: Deadlock, LIMIT: Limit, NOPERM: NoPermission,
  NOAUTH: NoPermission, WRONGPASS: NoPermission, DENIED: NoPermission, WRONGTYPE: WrongType,
  GOAWAY: GoAway,
};

// What differs between the libraries. A client connects once, and never again by itself.
const LIBRARIES = {
  redis: {
    make: ({ createClient }, { url, ...more }, connectTimeout) => createClient({
      ...more, url, disableOfflineQueue: true,
      socket: { connectTimeout, ...more.socket, reconnectStrategy: false },
    }),
    send: (client, words) => client.sendCommand(words),
    subscribe: (client, channels, hear) => client.subscribe(channels, (text, on) => hear(on, text)),
    unsubscribe: (client, channels) => client.unsubscribe(channels),
    setRef: (client, on) => (on ? client.ref() : client.unref()),
    destroy: (client) => (client.destroy ? client.destroy() : client.disconnect()),
    isReply: ({ ErrorReply }, error) => error instanceof ErrorReply,
  },
  ioredis: {
    make: (Redis, { url, ...more }, connectTimeout) => new Redis(url, {
      connectTimeout, ...more, lazyConnect: true, enableOfflineQueue: false, enableReadyCheck: false,
      maxRetriesPerRequest: null, autoResubscribe: false, retryStrategy: () => null,
    }),
    send: (client, words) => client.call(...words),
    subscribe: (client, channels, hear) => {
      client.removeAllListeners('message').on('message', hear);
      return client.subscribe(...channels);
    },
    unsubscribe: (client, channels) => client.unsubscribe(...channels),
    setRef: (client, on) => client.stream?.[on ? 'ref' : 'unref'](),
    destroy: (client) => client.disconnect(),
    isReply: (_, error) => error.name === 'ReplyError',
  },
};

const LOADED = {}; // promises, by name

/** Where the package is: beside this file, or, if that is linked into a program, beside the program. */
function find(name) {
  for (const place of [import.meta.url, process.argv[1] && resolve(process.argv[1]), resolve('program')]) {
    try {
      if (place) return createRequire(place).resolve(name);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return null;
}

async function load(name) {
  for (const one of name ? [name] : Object.keys(LIBRARIES)) {
    const path = find(one);
    if (path) return { ...LIBRARIES[one], module: (await import(pathToFileURL(path))).default };
  }
  throw new Error(`latchd needs the package ${name ?? 'redis or ioredis'}: npm install ${name ?? 'redis'}`);
}

const sleep = (ms, ref = true) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  if (!ref) timer.unref();
});

/** Of a map, which is a flat list in RESP2. */
function fieldOf(map, key) {
  if (!Array.isArray(map)) return map instanceof Map ? map.get(key) : map[key];
  return map[map.findIndex((word, i) => i % 2 === 0 && String(word) === key) + 1];
}

/** Settles as the promise does, or rejects as soon as the signal is aborted. */
function untilAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** A connection: requests leave at once, and replies come in order. */
class Link {
  broken = null;
  silent = false;
  onBreak = null;
  #library;
  #client;
  #asked = 0;
  #waiting = new Set(); // to reject what a broken connection will not answer

  constructor(library, options, at, timeout) {
    this.at = at;
    this.timeout = timeout;
    this.#library = library;
    this.#client = library.make(library.module, options, timeout);
    this.#client.on('error', (error) => this.#breakBy(error));
    this.#client.on('end', () => this.#breakBy(new Error('the connection was closed')));
  }

  /** Rejects unless the daemon itself answers, and not only its host. */
  async open() {
    const timer = setTimeout(() => this.close('no connection in time'), 2 * this.timeout);
    try {
      await this.#orBroken(this.#client.connect());
    } catch (error) {
      throw this.#toTyped(error);
    } finally {
      clearTimeout(timer);
    }
    await this.ask(['PING'], this.timeout);
  }

  async ask(words, within) {
    if (this.broken) throw this.broken;
    const timer = setTimeout(() => {
      this.silent = true;
      this.close('no answer in time');
    }, Math.min(within, LONGEST_TIMER));
    if (this.#asked++ === 0) this.#library.setRef(this.#client, true);
    try {
      return await this.#orBroken(this.#library.send(this.#client, words.map(String)));
    } catch (error) {
      const typed = this.#toTyped(error);
      if (typed instanceof Unreachable) this.#breakBy(typed);
      throw typed;
    } finally {
      clearTimeout(timer);
      if (--this.#asked === 0 && !this.broken) this.#library.setRef(this.#client, false);
    }
  }

  /** In one go; numbers. Of errors, a loss is thrown rather than others. */
  async askAll(commands, within) {
    const answers = await Promise.allSettled(commands.map((words) => this.ask(words, within)));
    const errors = answers.filter((a) => a.status === 'rejected').map((a) => a.reason);
    if (errors.length > 0) throw errors.find((error) => error instanceof LockLost) ?? errors[0];
    return answers.map((a) => Number(a.value));
  }

  /** From now on nothing else is asked over it. hear(channel, message) */
  async listen(more, less, hear) {
    try {
      if (more.length) await this.#orBroken(this.#library.subscribe(this.#client, more, hear));
      if (less.length) await this.#orBroken(this.#library.unsubscribe(this.#client, less));
    } catch (error) {
      throw this.#toTyped(error);
    }
  }

  #toTyped(error) {
    if (error instanceof LatchdError) return error;
    if (!this.#library.isReply(this.#library.module, error)) {
      return new Unreachable(error.message || error.code || String(error), { cause: error });
    }
    const code = /^[A-Z]+(?= |$)/.exec(error.message)?.[0];
    if (code === 'NOTHELD') return new LockLost(error.message);
    if (/^ERR unknown command/.test(error.message)) {
      return new LatchdError(`this is a Redis, not a latchd: ${error.message}`, 'NOTLATCHD');
    }
    if (/^ERR (gone|no such latch)/.test(error.message)) return new LatchGone(error.message);
    return new (ERRORS[code] ?? LatchdError)(error.message, code ?? 'ERR');
  }

  #orBroken(promise) {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      promise.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  #breakBy(error) {
    if (this.broken) return;
    this.broken = this.#toTyped(error);
    for (const reject of this.#waiting) reject(this.broken);
    try {
      this.#library.destroy(this.#client)?.catch?.(() => {});
    } catch {
      // it was never open, or is closed already
    }
    this.onBreak?.();
  }

  close(why = 'closed') {
    this.#breakBy(new Unreachable(why));
  }
}

/** What latchd says unasked of some names, over a connection of its own. */
class Notices {
  #link;
  #tell;
  #heard = new Set();
  #refused = false;

  /** `of`: the connection whose holds it is about. */
  constructor(of, link, tell) {
    this.of = of;
    this.#link = link;
    this.#tell = tell;
  }

  get broken() { return this.#link.broken; }

  /**
   * These names, and no others. A user who may not listen to one of them hears nothing. An empty message:
   * what is said from now on is heard, and what was said before it was not.
   */
  async follow(names) {
    if (this.#refused) return;
    const wanted = new Set(names.flatMap((name) => [`lost:${name}`, `uncertain:${name}`]));
    const gone = [...this.#heard].filter((channel) => !wanted.has(channel));
    const fresh = [...wanted].filter((channel) => !this.#heard.has(channel));
    this.#heard = wanted;
    try {
      await this.#link.listen(fresh, gone, this.#tell);
      for (const channel of fresh) this.#tell(channel, '');
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      this.#refused = true;
    }
  }

  close() {
    this.#link.onBreak = null;
    this.#link.close();
  }
}

/** One request for one lock, or several, and what it was granted. */
class Hold {
  request = randomUUID();
  state = 'waiting'; // then held, then lost or released
  uncertain = false;
  noticed = false; // latchd said something since the last renewal was sent
  tokens = new Map(); // by name
  until = -Infinity;
  due = -Infinity;
  end = -Infinity;
  since = -Infinity;
  aborter = new AbortController();

  constructor(names, options, kind, lease, heartbeat, onUncertain, log) {
    Object.assign(this, { names, options, kind, lease, heartbeat, onUncertain, log, name: names.join(' and ') });
  }

  /** One for each name. */
  commands(word, ...more) {
    return this.names.map((name) => [word, name, ...this.kind, 'ID', this.request, ...more]);
  }

  /** A hold with a lease is only confirmed, for what is left of it. */
  renewal() {
    this.noticed = false;
    if (this.lease === undefined) return this.commands('RENEW');
    return this.commands('RENEW', 'LEASE', Math.max(LEAST_LEASE, Math.floor(this.end - now())));
  }

  renewed(sent, left) {
    this.until = this.lease === undefined ? sent + left : Math.min(sent + left, this.end);
    if (this.heartbeat && this.lease === undefined) { // over before latchd gives it on
      this.until = Math.min(this.until, sent + this.heartbeat * HEARTBEAT_PART);
    }
    this.due = this.noticed ? -Infinity : sent + (this.until - sent) / 3;
    this.uncertain = false;
  }

  doubt() {
    if (this.state !== 'held' || this.uncertain) return;
    this.uncertain = true;
    if (this.log) queueMicrotask(() => this.log(`${this.name} is uncertain: no renewal is confirmed`));
    if (this.onUncertain) queueMicrotask(() => this.onUncertain());
  }

  lose() {
    if (this.state !== 'held') return; // so it is told once, and never after the release
    this.state = 'lost';
    this.until = -Infinity;
    if (this.log) queueMicrotask(() => this.log(`${this.name} is lost`));
    this.aborter.abort(new LockLost(`${this.name} was lost`));
  }
}

/** A lock that is held; of Latchd.lock(). */
class Lock {
  #hold;
  #latchd;

  constructor(hold, latchd) {
    this.#hold = hold;
    this.#latchd = latchd;
  }

  get name() { return this.#hold.name; }

  get token() { return this.#hold.tokens.get(this.#hold.names[0]); }

  get tokens() { return this.#hold.tokens; }

  get signal() { return this.#hold.aborter.signal; }

  get lost() { return this.#hold.state !== 'released' && this.#hold.until <= now(); }

  get held() { return this.#hold.state === 'held' && !this.lost; }

  get uncertain() { return this.#hold.uncertain && !this.lost; }

  extend(lease) { return this.#latchd._extend(this.#hold, lease); }

  unlock() { return this.#latchd._release(this.#hold); }

  [Symbol.asyncDispose]() { return this.unlock(); }
}

/** Is set to a number, counted down, and opens at 0. */
class Latch {
  #latchd;

  constructor(name, latchd) {
    this.name = name;
    this.#latchd = latchd;
  }

  async set(count, { id = randomUUID() } = {}) {
    return Number(await this.#latchd._query(['LATCH', 'SET', this.name, count, 'ID', id])) === 1;
  }

  async count({ id = randomUUID() } = {}) {
    return Number(await this.#latchd._query(['LATCH', 'COUNT', this.name, 'ID', id]));
  }

  async wait({ timeout, signal } = {}) {
    return Number(await this.#latchd._query(['LATCH', 'AWAIT', this.name], timeout, signal)) === 1;
  }

  async delete() {
    return Number(await this.#latchd._query(['LATCH', 'DELETE', this.name])) === 1;
  }
}

export class Latchd {
  #library;
  #log;
  #addresses;
  #timeout;
  #patience;
  #at = 0;
  #idle = [];
  #shared = null;
  #connecting = null;
  #holds = new Map(); // by request
  #timer = null;
  #wakeAt = Infinity;
  #renewing = false;
  #pause = FIRST_PAUSE;
  #notices = null;
  #hearing = null; // a timer, or true
  #said = new Map(); // what latchd said of a name and a token

  constructor(addresses, { timeout = 5000, patience = 30_000, library, log, ...client } = {}) {
    this.#addresses = [addresses].flat().map((url) => ({ ...client, url: String(url) }));
    if (this.#addresses.length === 0) throw new TypeError("latchd's address is missing");
    if (library !== undefined && !(library in LIBRARIES)) throw new TypeError(`no library: ${library}`);
    this.#library = library;
    this.#log = log;
    this.#timeout = timeout;
    this.#patience = patience;
  }

  /** Resolves to a lock that is held, or to null: somebody else has it after `wait`. */
  async lock(name, options = {}) {
    const { signal, onUncertain, lease, other, ...known } = options;
    const more = { ...known, ...other };
    // A job that has run does not wait for its next time.
    const wait = more.wait ?? (more.atLeast === undefined ? undefined : 0);
    delete more.wait;
    const given = new Map(lease === undefined ? [] : [['LEASE', [Math.ceil(lease)]]]);
    for (const [option, value] of Object.entries(more)) {
      if (value === undefined || value === null || value === false) continue;
      given.set(option.toUpperCase(), value === true ? [] : [value]);
    }
    const kind = ['read', 'write'].filter((k) => more[k]).map((k) => k.toUpperCase());
    const names = [name].flat();
    if (names.length === 0) throw new TypeError('a lock has a name');
    const hold = new Hold(names, given, kind, lease, more.heartbeat, onUncertain, this.#log);
    signal?.throwIfAborted();
    return (await this.#acquire(hold, wait, signal)) ? new Lock(hold, this) : null;
  }

  /** Works under the lock; rejects with LockTimeout if somebody else has it after `wait`. */
  async using(name, ...more) {
    const work = more.pop(); // the options are optional
    const lock = await this.lock(name, ...more);
    if (!lock) throw new LockTimeout(`somebody else has ${name}`);
    let result;
    try {
      result = await work(lock);
    } catch (error) {
      await lock.unlock().catch(() => {}); // what the work itself threw is of more interest
      throw error;
    }
    await lock.unlock();
    return result;
  }

  /** Who holds the name alone, now, and each time that it changes: { token, owner, data }. */
  async *follow(name, { signal } = {}) {
    let last = null;
    let link = null;
    let pause = FIRST_PAUSE;
    try {
      for (;;) {
        signal?.throwIfAborted();
        const after = last ? ['AFTER', last.token, 'WAIT', LONGEST_ASK] : [];
        let leader;
        try {
          const asked = link ?? await this.#untilAbortedLink(signal);
          link = null; // while it waits nobody else may have it
          const answer = asked.ask(['LEADER', name, ...after], this.#timeout + (last ? LONGEST_ASK : 0));
          answer.catch(() => {});
          leader = await untilAborted(answer, signal).catch((error) => {
            if (error instanceof Backend) link = asked;
            else this.#leaveFollowed(asked, error);
            throw error;
          });
          link = asked;
          pause = FIRST_PAUSE;
        } catch (error) {
          if (signal?.aborted) throw signal.reason;
          if (![Unreachable, Backend, GoAway].some((kind) => error instanceof kind)) throw error;
          await untilAborted(sleep(pause), signal);
          pause = Math.min(2 * pause, LAST_PAUSE);
          continue;
        }
        const next = { token: Number(leader[0]), owner: String(leader[1]), data: String(leader[2]) };
        if (last?.token === next.token && last.owner === next.owner) continue;
        last = next;
        yield { ...next };
      }
    } finally {
      if (link) this.#giveBack(link);
    }
  }

  /** Of an address that does not answer the next one is tried. */
  #leaveFollowed(link, error) {
    if (error instanceof Unreachable || error instanceof GoAway) this.#leave(link);
    else link.close();
  }

  /** Whether anybody holds the name now, or one of several. */
  async locked(name) {
    const answers = await Promise.all([name].flat().map((one) => this.#isHeld(one)));
    return answers.includes(true);
  }

  async #isHeld(name) {
    const state = String(fieldOf(await this._query(['LOCKINFO', name], 0), 'state'));
    if (state === 'withheld') {
      throw new Backend(`latchd grants ${name} to nobody for now, and a hold of it may come back`, 'BACKEND');
    }
    if (state === 'lent') { // and only the latchd that has it knows whether somebody holds it
      const [, owner] = await this._query(['LEADER', name], 0);
      return owner.length > 0;
    }
    return state !== 'free';
  }

  /** A latch, which others count down. */
  latch(name) {
    return new Latch(name, this);
  }

  /** Closes the connections that no hold needs. */
  close() {
    for (const link of this.#idle.splice(0)) link.close();
    if (this.#holds.size > 0) return;
    this.#shared?.close();
    this.#notices?.close();
    this.#notices = null;
  }

  // Connections

  /** Through the first address that answers, beginning with the last one that did. */
  async #connect() {
    let trouble;
    for (let i = 0; i < this.#addresses.length; i++) {
      const link = await this.#link(this.#at);
      try {
        await link.open();
        return link;
      } catch (error) {
        trouble = error;
        this.#leave(link);
        if (!(error instanceof Unreachable || error instanceof GoAway)) throw error;
      }
    }
    throw new Unreachable(trouble.message, { cause: trouble });
  }

  async #link(at) {
    const library = await (LOADED[this.#library] ??= load(this.#library));
    return new Link(library, this.#addresses[at], at, this.#timeout);
  }

  /** The next connection begins with another address, if there is one. */
  #leave(link) {
    link.close();
    if (this.#at === link.at) this.#at = (link.at + 1) % this.#addresses.length;
  }

  async #ownLink() {
    while (this.#idle.length > 0) {
      const link = this.#idle.pop();
      if (!link.broken) return link;
    }
    return this.#connect();
  }

  #giveBack(link) {
    if (this.#idle.length < MOST_IDLE && !link.broken) this.#idle.push(link);
    else link.close();
  }

  /** On which no LOCK waits. One attempt serves all that want it. */
  async #sharedLink() {
    if (this.#shared && !this.#shared.broken) return this.#shared;
    this.#connecting ??= this.#connectShared().finally(() => { this.#connecting = null; });
    return this.#connecting;
  }

  async #connectShared() {
    const link = await this.#connect();
    this.#shared = link;
    link.onBreak = () => {
      // Where latchd is only silent, connecting again would succeed: another address comes first.
      if (link.silent) this.#leave(link);
      // The holds were attached to this connection: all are renewed at once.
      for (const hold of this.#holds.values()) hold.due = -Infinity;
      this.#wake(0);
    };
    this.#hearSoon();
    return link;
  }

  // Taking

  async #acquire(hold, wait, signal) {
    const deadline = wait === undefined || wait === null ? Infinity : performance.now() + wait;
    let reached = performance.now();
    let asked = reached;
    let pause = FIRST_PAUSE;
    let link = null;
    try {
      for (;;) {
        let used = link !== null || this.#idle.length > 0;
        let trouble;
        try {
          link ??= await this.#untilAbortedLink(signal);
          asked = performance.now();
          const tokens = await untilAborted(this.#ask(link, hold, deadline), signal);
          if (tokens !== null) {
            await untilAborted(this.#begin(hold, [tokens].flat().map(Number), signal), signal);
            this.#giveBack(link);
            return true;
          }
          reached = performance.now();
          pause = FIRST_PAUSE;
          if (reached < deadline) continue;
          this.#abandon(hold, link);
          return false;
        } catch (error) {
          trouble = error;
        }
        if (signal?.aborted) throw signal.reason;
        if (trouble instanceof LockLost && performance.now() < deadline) {
          if (link && hold.names.length > 1) { // of several the others are there
            link.askAll(hold.commands('UNLOCK'), this.#timeout).catch(() => {});
          }
          hold.request = randomUUID(); // the old one is over: freed by force, or lost on its way
          continue;
        }
        if (![Unreachable, Backend, GoAway].some((kind) => trouble instanceof kind)) throw trouble;
        if (hold.options.has('OWNER') && link?.silent && deadline - asked > LONGEST_ASK) {
          // Its LOCK may take longer than the answer is waited for: a new connection shows whether latchd is there.
          reached = performance.now();
          link = null;
          for (const idle of this.#idle.splice(0)) idle.close();
          continue;
        }
        if (trouble instanceof Backend) {
          used = false;
        } else if (link) {
          this.#leave(link);
          link = null;
        }
        // That a connection broke while it lay idle says nothing yet.
        if (!used && (performance.now() >= deadline || performance.now() - reached > this.#patience)) throw trouble;
        await untilAborted(sleep(Math.max(0, Math.min(pause, deadline - performance.now()))), signal);
        pause = Math.min(2 * pause, LAST_PAUSE);
      }
    } catch (error) {
      this.#abandon(hold, link);
      throw error;
    }
  }

  /** Asks until latchd has answered, or `wait` is over; LATCH AWAIT until the answer is not null. */
  async _query(words, wait, signal) {
    const awaits = words[0] === 'LATCH' && words[1] === 'AWAIT';
    const deadline = wait === undefined || wait === null ? Infinity : performance.now() + wait;
    let reached = performance.now();
    let pause = FIRST_PAUSE;
    let link = null;
    signal?.throwIfAborted();
    try {
      for (;;) {
        let used = link !== null || this.#idle.length > 0;
        let trouble;
        try {
          link ??= await this.#untilAbortedLink(signal);
          const ask = awaits ? Math.min(Math.max(0, deadline - performance.now()), LONGEST_ASK) : 0;
          const more = awaits ? ['WAIT', Math.ceil(ask)] : [];
          const answer = await untilAborted(link.ask([...words, ...more], ask + this.#timeout), signal);
          reached = performance.now();
          pause = FIRST_PAUSE;
          if (awaits && answer === null && reached < deadline) continue;
          this.#giveBack(link);
          return answer;
        } catch (error) {
          trouble = error;
        }
        if (signal?.aborted) throw signal.reason;
        if (![Unreachable, Backend, GoAway].some((kind) => trouble instanceof kind)) throw trouble;
        if (trouble instanceof Backend) {
          used = false;
        } else if (link) {
          this.#leave(link);
          link = null;
        }
        const over = performance.now() >= deadline || performance.now() - reached > this.#patience;
        if (!used && over) throw trouble;
        await untilAborted(sleep(pause), signal);
        pause = Math.min(2 * pause, LAST_PAUSE);
      }
    } catch (error) {
      link?.close(); // which ends an AWAIT
      throw error;
    }
  }

  /** A connection that comes after the wait was given up is kept for the next one. */
  async #untilAbortedLink(signal) {
    const coming = this.#ownLink();
    try {
      return await untilAborted(coming, signal);
    } catch (error) {
      coming.then((link) => this.#giveBack(link), () => {});
      throw error;
    }
  }

  #ask(link, hold, deadline) {
    const left = Math.max(0, deadline - performance.now());
    const ask = Math.min(left, LONGEST_ASK);
    const words = [...hold.options].flat(2);
    // latchd looks for a deadlock where it knows how long an owner would wait in all.
    const wait = hold.options.has('OWNER') ? left : ask;
    if (wait < Infinity) words.push('WAIT', Math.ceil(wait));
    if (wait === 0 && !hold.options.has('KEEP')) words.push('KEEP', 0);
    const what = hold.names.length > 1 ? ['MLOCK', hold.names.length] : ['LOCK'];
    return link.ask([...what, ...hold.names, ...words, 'ID', hold.request], ask + this.#timeout);
  }

  /** Attaches the hold to the connection that renews, and learns how long its lease is. */
  async #begin(hold, tokens, signal) {
    const link = await this.#sharedLink();
    const sent = now();
    if (hold.lease !== undefined) hold.end = sent + hold.lease;
    const left = Math.min(...await link.askAll(hold.renewal(), this.#timeout));
    if (signal?.aborted) return; // who gave up has been told, and the hold is given back
    hold.tokens = new Map(hold.names.map((name, i) => [name, tokens[i]]));
    hold.state = 'held';
    hold.renewed(sent, left);
    hold.since = sent;
    this.#holds.set(hold.request, hold);
    this.#wake(Math.min(hold.due, hold.until) - now());
    this.#hearSoon();
  }

  /** Ends the wait; and the hold, if it was granted in the same moment. */
  async #abandon(hold, link) {
    this.#holds.delete(hold.request);
    hold.state = 'released';
    try {
      if (link && !link.broken) {
        const cancel = link.ask(['CANCEL', hold.names[0], 'ID', hold.request], this.#timeout);
        await Promise.all([cancel, this.#unlock(hold, link)]);
        this.#giveBack(link);
        return;
      }
    } catch {
      link.close();
    }
    await this.#insist(hold);
  }

  // Keeping

  #wake(within) {
    const at = now() + Math.max(0, within);
    if (this.#timer !== null && at >= this.#wakeAt) return;
    clearTimeout(this.#timer);
    this.#wakeAt = at;
    this.#timer = setTimeout(() => this.#keep(), Math.min(Math.max(0, within), LONGEST_TIMER));
    this.#timer.unref();
  }

  /** Renews what is due, and says what is lost. */
  #keep() {
    this.#timer = null;
    this.#takeNotice();
    const at = now();
    const due = [];
    for (const hold of [...this.#holds.values()]) {
      if (hold.until <= at) this.#lose(hold);
      else if (hold.due <= at) due.push(hold);
    }
    if (due.length > 0 && !this.#renewing) this.#renew(due);
    let next = Infinity;
    for (const hold of this.#holds.values()) {
      next = Math.min(next, hold.until, this.#renewing ? Infinity : hold.due);
    }
    if (next < Infinity) this.#wake(next - now());
  }

  #hearSoon(within = HEARD_AFTER) {
    this.#hearing ??= setTimeout(() => { this.#hear(); }, within).unref();
  }

  /** Listens where holds are renewed. What is not heard shows at the next renewal. */
  async #hear() {
    const link = this.#shared;
    const old = now() - HEARD_AFTER;
    const holds = [...this.#holds.values()];
    const lasting = holds.filter((hold) => hold.since <= old);
    const names = lasting.flatMap((hold) => hold.names);
    this.#hearing = true;
    let again = holds.length > lasting.length ? HEARD_AFTER : 0;
    try {
      if (this.#notices && (this.#notices.broken || this.#notices.of !== link)) {
        this.#notices.close();
        this.#notices = null;
      }
      if (link && !link.broken && (names.length > 0 || this.#notices)) {
        this.#notices ??= await this.#openNotices(link);
        await this.#notices.follow(names);
      }
    } catch {
      again = LAST_PAUSE;
    }
    this.#hearing = null;
    if (again > 0 || link !== this.#shared) this.#hearSoon(again);
  }

  async #openNotices(of) {
    const link = await this.#link(of.at);
    await link.open();
    link.onBreak = () => this.#hearSoon(LAST_PAUSE);
    return new Notices(of, link, (channel, message) => {
      const [, what, name] = /^(\w+):(.*)$/s.exec(channel);
      this.#said.set(`${message.slice(message.lastIndexOf(' ') + 1)} ${name}`, what);
      this.#wake(0);
    });
  }

  /** The renewal tells whether it is so: a latchd that the hold has left knows no better. */
  #takeNotice() {
    if (this.#said.size === 0) return;
    for (const hold of this.#holds.values()) {
      const heard = [...hold.tokens].map(([name, token]) => this.#said.get(`${token} ${name}`));
      const unheard = hold.names.some((name) => this.#said.has(` ${name}`));
      if (unheard || heard.some(Boolean)) Object.assign(hold, { noticed: true, due: -Infinity });
      if (heard.includes('uncertain')) hold.doubt();
    }
    this.#said.clear();
  }

  #lose(hold) {
    this.#holds.delete(hold.request);
    hold.lose();
  }

  /** All of these in one go. Those that were released meanwhile are left out of it. */
  async #renew(due) {
    this.#renewing = true;
    try {
      const link = await this.#sharedLink();
      const held = due.filter((hold) => hold.state === 'held');
      const left = Math.min(...held.map((hold) => hold.until)) - now();
      const within = Math.min(this.#timeout, Math.max(1000, left / 3));
      await Promise.all(held.map((hold) => this.#renewOne(link, hold, within)));
    } catch {
      for (const hold of due) hold.doubt();
    }
    // After a failure the next attempt is made soon, and as often as it takes.
    const uncertain = due.some((hold) => hold.uncertain);
    this.#pause = uncertain ? Math.min(2 * this.#pause, LAST_PAUSE) : FIRST_PAUSE;
    if (uncertain) await sleep(this.#pause, false);
    this.#renewing = false;
    this.#wake(0);
  }

  async #renewOne(link, hold, within) {
    const sent = now();
    try {
      const left = Math.min(...await link.askAll(hold.renewal(), within));
      if (hold.state === 'held') hold.renewed(sent, left);
    } catch (error) {
      if (!(error instanceof LockLost)) hold.doubt();
      else if (this.#holds.has(hold.request)) this.#lose(hold);
    }
  }

  async _extend(hold, lease) {
    if (hold.state !== 'held') throw new LockLost(`${hold.name} is not held`);
    const link = await this.#sharedLink();
    const sent = now();
    const commands = hold.commands('RENEW', 'LEASE', Math.ceil(lease));
    const left = Math.min(...await link.askAll(commands, this.#timeout));
    hold.lease = lease;
    hold.end = sent + lease;
    hold.renewed(sent, left);
    this.#wake(0);
  }

  // Giving back

  async _release(hold) {
    if (hold.state === 'released') return; // twice is as good as once
    const lost = hold.state === 'lost' || hold.until <= now();
    if (lost) this.#lose(hold);
    this.#holds.delete(hold.request);
    hold.state = 'released'; // from now on no renewal counts, and no loss is told
    const release = this.#insist(hold);
    // Where latchd is out of reach it goes on in the background: the work is done.
    let timer;
    const late = new Promise((resolve) => { timer = setTimeout(resolve, this.#timeout); });
    const held = await Promise.race([release, late]);
    clearTimeout(timer);
    if (lost || held === false) throw new LockLost(`${hold.name} was lost before it was released`);
  }

  /** Unlocks, through restarts, for as long as the hold can be there. False: it was not. */
  async #insist(hold) {
    const end = now() + Math.max(this.#patience, hold.lease ?? 0);
    for (let pause = FIRST_PAUSE; now() < end; pause = Math.min(2 * pause, LAST_PAUSE)) {
      try {
        return await this.#unlock(hold, await this.#sharedLink());
      } catch (error) {
        if (!(error instanceof Unreachable)) return undefined;
        await sleep(pause, false);
      }
    }
    return undefined;
  }

  async #unlock(hold, link) {
    try {
      await link.askAll(hold.commands('UNLOCK'), this.#timeout);
    } catch (error) {
      if (error instanceof LockLost) return false;
      if (!(error instanceof Backend)) throw error; // BACKEND: latchd has it in hand
    }
    return true;
  }
}
