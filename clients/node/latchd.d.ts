/** What latchd answered, or why it did not; `code` says what kind it is. */
export class LatchdError extends Error {
  code: string;
}
/** Somebody else has the lock, and the wait is over. */
export class LockTimeout extends LatchdError {}
/** The lock was lost before it was released: somebody else may have had it since. */
export class LockLost extends LatchdError {}
/** No address of latchd answers. */
export class Unreachable extends LatchdError {}
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
export class LatchGone extends LatchdError {}

/** Options of LOCK, as latchd-protocol(7) has them, in lower case; times in milliseconds. */
export interface LockOptions {
  /** How long to wait; undefined: without end. */
  wait?: number | null;
  /** Ends the wait when it is aborted; not the hold. */
  signal?: AbortSignal;
  /** Called when latchd, or a renewal that failed, makes the hold uncertain. */
  onUncertain?: () => void;
  fair?: boolean;
  read?: boolean;
  write?: boolean;
  /** So many permits of a semaphore; `of`: the limit with which it is made if there is none. */
  permits?: number;
  of?: number;
  /** 0 to 9: stands before those of less who came lately. */
  priority?: number;
  /** Rejects with LIMIT, instead of waiting, where so many wait already. */
  queue?: number;
  owner?: string;
  /** The hold ends by itself after this time, and is not renewed. */
  lease?: number;
  grace?: number;
  keep?: number;
  /** What `follow` tells others of the holder. */
  data?: string;
  /** The lock is free so soon after this process, or its machine, has vanished; with `grace: 0`. */
  heartbeat?: number;
  /** Nobody else gets the lock for so long, though its holder is done, or gone: it is not waited for. */
  atLeast?: number;
  /** Options that a later latchd has, by their names. */
  other?: Record<string, unknown>;
}

/** A lock that is held. */
export interface Lock extends AsyncDisposable {
  readonly name: string;
  /** The fencing token, of the first of several names. */
  readonly token: number;
  /** Of each name. */
  readonly tokens: ReadonlyMap<string, number>;
  /** Aborted when the hold is lost. */
  readonly signal: AbortSignal;
  /** Whether the hold is lost, by the clock of this moment. */
  readonly lost: boolean;
  /** Whether this hold lasts, by the clock of this moment: it is neither lost nor released. */
  readonly held: boolean;
  /** No renewal was confirmed since it became so, and the lease is not over yet. */
  readonly uncertain: boolean;
  /** From now on the hold lasts for so long, and no longer. */
  extend(lease: number): Promise<void>;
  /** Rejects with LockLost if the lock was lost before. */
  unlock(): Promise<void>;
}

/** Who holds a name alone; nobody: 0 and empty. */
export interface Leader {
  /** The fencing token. */
  readonly token: number;
  /** As latchd names it. */
  readonly owner: string;
  /** The `data` of the lock. */
  readonly data: string;
}

/** Is set to a number, counted down, and opens at 0. */
export interface Latch {
  readonly name: string;
  /** Resolves to false: one is set already. With `id` it can be repeated, and has the same answer. */
  set(count: number, options?: { id?: string }): Promise<boolean>;
  /**
   * Resolves to what is left. An `id`, of 16 to 64 characters, counts once, however often it is repeated;
   * without one, each call counts.
   */
  count(options?: { id?: string }): Promise<number>;
  /**
   * Resolves to true: it is open; to false: `timeout` is over. Rejects with LatchGone if it was deleted
   * or lost.
   */
  wait(options?: { timeout?: number | null; signal?: AbortSignal }): Promise<boolean>;
  /** Resolves to false: there was none. */
  delete(): Promise<boolean>;
}

/** Options of the library's own, such as password, are passed to its connections. */
export interface LatchdOptions {
  /** Over which library; undefined: over redis if it is installed. */
  library?: 'redis' | 'ioredis';
  /** Is given a line when a hold becomes uncertain or is lost; console.warn will do. */
  log?: (line: string) => void;
  /** Milliseconds without an answer after which a connection is given up. */
  timeout?: number;
  /** Milliseconds after which a wait fails with Unreachable or Backend. */
  patience?: number;
  [option: string]: unknown;
}

/** latchd; one object serves a whole process. */
export class Latchd {
  /** addresses: of latchds that share a Redis; the first that answers is used. */
  constructor(addresses: string | string[], options?: LatchdOptions);
  /**
   * Resolves to a lock that is held, or to null: somebody else has it after `wait`. Several names are
   * taken all or none; a loss of one is a loss of the lock.
   */
  lock(name: string | string[], options?: LockOptions): Promise<Lock | null>;
  /** Works under the lock; rejects with LockTimeout if somebody else has it after `wait`. */
  using<T>(name: string | string[], work: (lock: Lock) => Promise<T> | T): Promise<T>;
  using<T>(name: string | string[], options: LockOptions, work: (lock: Lock) => Promise<T> | T): Promise<T>;
  /**
   * Who leads, now, and each time that it changes, until it is left or the signal is aborted. A leader
   * who is followed by another one at once may be skipped.
   */
  follow(name: string, options?: { signal?: AbortSignal }): AsyncGenerator<Leader, void, undefined>;
  /**
   * Resolves to whether anybody holds the name now, or one of several. Rejects with Backend if that cannot be
   * known.
   */
  locked(name: string | string[]): Promise<boolean>;
  /** A latch, which others count down. */
  latch(name: string): Latch;
  /** Closes the connections that no hold needs. */
  close(): void;
}
