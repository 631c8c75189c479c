// What tsc accepts of the installed package, and what it refuses. Not run.
import { Latchd, Lock, LockLost } from 'latchd';

const latchd = new Latchd(['redis://localhost:5625'], { timeout: 5000, password: 'x' });
const lock: Lock | null = await latchd.lock(['from', 'to'], { wait: 10, fair: true, other: { later: 'x' } });
// @ts-expect-error: there is no such option
latchd.lock('job', { urgency: 9 });
const token: number | undefined = lock?.tokens.get('from');
const done: string = await latchd.using('job', async (held) => `${held.token} ${held.signal.aborted}`);
const locked: boolean = await latchd.locked(['from', 'to']) || (lock?.held ?? false);
console.log(locked, token, done, new LockLost('x').code);
