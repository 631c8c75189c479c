// ioredis: connects with each of its options, and runs the lock commands.
const assert = require('assert');
const Redis = require('ioredis');

const path = process.env.LATCHD_SOCKET;
const password = process.env.LATCHD_PASSWORD;

async function events(r, options) {
  const listener = new Redis({ path, ...options });
  const heard = new Promise((ok) => listener.on('pmessage', (...args) => ok(args)));
  await listener.psubscribe('granted:*');
  const token = await r.call('LOCK', 'told', 'OWNER', 'joe');
  assert.deepStrictEqual(await heard, ['granted:*', 'granted:told', `joe ${token}`]);
  await listener.punsubscribe();
  await listener.quit();
  assert.strictEqual(await r.call('UNLOCK', 'told', 'OWNER', 'joe'), 0);
}

async function check(options) {
  const r = new Redis({ path, ...options });
  const token = await r.call('LOCK', 'job', 'WAIT', '0');
  assert.strictEqual(typeof token, 'number');
  assert.strictEqual(await r.call('LOCK', 'job', 'WAIT', '0'), null);
  assert.ok(await r.call('LOCKINFO', 'job'));
  assert.strictEqual(await r.call('UNLOCK', 'job', 'TOKEN', token), 0);
  await assert.rejects(r.call('UNLOCK', 'nobodys', 'TOKEN', token), /NOTHELD/);
  assert.strictEqual(await r.ping(), 'PONG');
  assert.match(await r.client('LIST'), /cmd=client\|list/);
  assert.ok(await r.config('GET', '*'));
  assert.ok((await r.command()).length > 30);
  await events(r, options);
  await r.quit();
}

async function main() {
  const auth = password ? { password } : {};
  await check(auth);
  await check({ ...auth, connectionName: 'joe', db: 0 });
  await check({ ...auth, protocol: 2 });
  if (password) {
    await check({ ...auth, username: 'default' });
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
