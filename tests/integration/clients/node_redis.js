// node-redis: connects with each of its options, and runs the lock commands.
const assert = require('assert');
const { createClient } = require('redis');

const path = process.env.LATCHD_SOCKET;
const password = process.env.LATCHD_PASSWORD;

async function connect(options) {
  const r = createClient({ socket: { path, reconnectStrategy: false }, ...options });
  r.on('error', (error) => console.error(error.message));
  await r.connect();
  return r;
}

async function events(r, options) {
  const listener = await connect(options);
  let heard;
  const message = new Promise((ok) => { heard = ok; });
  await listener.pSubscribe('granted:*', (text, channel) => heard([channel, text]));
  const token = await r.sendCommand(['LOCK', 'told', 'OWNER', 'joe']);
  assert.deepStrictEqual(await message, ['granted:told', `joe ${token}`]);
  await listener.pUnsubscribe();
  await (listener.close ? listener.close() : listener.quit());
  assert.strictEqual(await r.sendCommand(['UNLOCK', 'told', 'OWNER', 'joe']), 0);
}

async function check(options) {
  const r = await connect(options);
  const token = await r.sendCommand(['LOCK', 'job', 'WAIT', '0']);
  assert.strictEqual(typeof token, 'number');
  assert.strictEqual(await r.sendCommand(['LOCK', 'job', 'WAIT', '0']), null);
  assert.ok(await r.sendCommand(['LOCKINFO', 'job']));
  assert.strictEqual(await r.sendCommand(['UNLOCK', 'job', 'TOKEN', `${token}`]), 0);
  await assert.rejects(r.sendCommand(['UNLOCK', 'nobodys', 'TOKEN', '1']), /NOTHELD/);
  assert.strictEqual(await r.ping(), 'PONG');
  assert.ok(await r.clientId() > 0);
  assert.ok((await r.clientList()).length > 0);
  assert.ok(await r.configGet('*'));
  assert.ok((await r.command()).length > 30);
  assert.deepStrictEqual(await r.commandGetKeys(['LOCK', 'a']), ['a']);
  await events(r, options);
  await (r.close ? r.close() : r.quit());
}

async function main() {
  const auth = password ? { password } : {};
  await check(auth);
  await check({ ...auth, name: 'joe' });
  await check({ ...auth, RESP: 2 });
  await check({ ...auth, RESP: 3 });
  if (password) {
    await check({ ...auth, username: 'default' });
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
