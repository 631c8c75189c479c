// latchd from node-redis 4 and later, which sends everybody's commands over one connection.
//
// node_redis.js HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
'use strict';
const assert = require('assert');
const fs = require('fs');
const { createClient, ErrorReply } = require('redis');

const [host, port, protocol, user, password, ca, name, ...scenarios] = process.argv.slice(2);

const options = { socket: { host, port: Number(port) } };
if (protocol !== '-') options.RESP = Number(protocol);
if (user !== '-') options.username = user;
if (password !== '-') options.password = password;
if (ca !== '-') Object.assign(options.socket, { tls: true, ca: fs.readFileSync(ca) });

async function connect(more) {
  const client = createClient({ ...options, ...more });
  client.on('error', (error) => { if (scenarios[0] !== 'wait') throw error; });
  return client.connect();
}

let latchd;
const sleep = (ms) => new Promise((ok) => { setTimeout(ok, ms); });
const ask = (...words) => latchd.sendCommand(words.map(String));
const close = (client) => (client.destroy ? client.destroy() : client.disconnect());

const run = {
  async version() {
    console.log('version', require('redis/package.json').version);
  },

  async hello() {
    assert.strictEqual(await latchd.ping(), 'PONG');
    const token = await ask('LOCK', name, 'WAIT', 0);
    assert.ok(token > 2 ** 31);
    assert.strictEqual(await ask('UNLOCK', name, 'TOKEN', token), 0);
  },

  async busy() {
    const token = await ask('LOCK', name);
    assert.strictEqual(await ask('LOCK', name, 'WAIT', 0), null);
    assert.strictEqual(await ask('LOCK', name, 'WAIT', 50), null);
    assert.ok(await ask('RENEW', name, 'TOKEN', token) > 0);
    assert.strictEqual(await ask('UNLOCK', name, 'TOKEN', token), 0);
    assert.ok(await ask('LOCK', name, 'FAIR', 'WAIT', 0) > token);
    assert.strictEqual(await ask('UNLOCK', name), 0);
  },

  async reenter() {
    const token = await ask('LOCK', name, 'OWNER', 'ann');
    assert.strictEqual(await ask('LOCK', name, 'OWNER', 'ann'), token);
    assert.strictEqual(await ask('UNLOCK', name, 'OWNER', 'ann'), 1);
    assert.strictEqual(await ask('UNLOCK', name, 'OWNER', 'ann'), 0);
  },

  async lose() {
    const token = await ask('LOCK', name);
    assert.strictEqual(await ask('FORCEUNLOCK', name, 'TOKEN', token), 1);
    const lost = (error) => error instanceof ErrorReply && /^NOTHELD /.test(error.message);
    await assert.rejects(ask('UNLOCK', name, 'TOKEN', token), lost);
    await assert.rejects(ask('RENEW', name, 'TOKEN', token), lost);
    await assert.rejects(ask('LOCK', name, 'SOON'), /ERR unknown option/);
  },

  async share() {
    const tokens = await Promise.all([ask('LOCK', name, 'READ'), ask('LOCK', name, 'READ')]);
    assert.strictEqual(await ask('LOCK', name, 'WRITE', 'WAIT', 0), null);
    const left = tokens.map((token) => ask('UNLOCK', name, 'TOKEN', token));
    assert.deepStrictEqual(await Promise.all(left), [0, 0]);
    const token = await ask('LOCK', name, 'WRITE', 'WAIT', 0);
    assert.strictEqual(await ask('UNLOCK', name, 'TOKEN', token), 0);
  },

  async pipeline(send = (batch) => batch.execAsPipeline()) {
    const locks = latchd.multi();
    for (const which of ['1', '2', '1']) locks.addCommand(['LOCK', name + which, 'WAIT', '0']);
    const [one, two, none] = await send(locks);
    assert.ok(one > 0 && two > 0 && none === null);
    const unlocks = latchd.multi();
    unlocks.addCommand(['UNLOCK', `${name}1`, 'TOKEN', `${one}`]);
    unlocks.addCommand(['UNLOCK', `${name}2`, 'TOKEN', `${two}`]);
    assert.deepStrictEqual(await send(unlocks), [0, 0]);
  },

  async admin() {
    assert.ok(await latchd.clientId() > 0);
    assert.ok((await latchd.clientList()).length > 0);
    assert.ok(await latchd.configGet('*'));
    assert.ok((await latchd.command()).length > 30);
    assert.deepStrictEqual(await latchd.commandGetKeys(['LOCK', 'a']), ['a']);
    assert.ok(await ask('LOCKINFO', name));
    const named = await connect({ name: 'joe' });
    assert.strictEqual(await named.clientGetName(), 'joe');
    close(named);
  },

  // Many of one program, over its one connection: each asks now and then, nobody waits for
  // a reply that has to wait, and all get their turn in the order in which they came.
  async crowd() {
    const turns = [];
    const work = async (number) => {
      const request = `${name}-${number}-of-a-crowd`;
      while (await ask('LOCK', name, 'WAIT', 0, 'ID', request, 'KEEP', 3000) === null) {
        await sleep(20);
      }
      turns.push(number);
      await sleep(5);
      assert.strictEqual(turns[turns.length - 1], number);
      assert.strictEqual(await ask('UNLOCK', name, 'ID', request), 0);
    };
    const all = [...Array(20).keys()];
    await Promise.all(all.map(work));
    assert.deepStrictEqual(turns, all);
  },

  // Four of one program take turns by long polls over its one connection: that takes them
  // not twice as long as with a connection each.
  async turns() {
    const four = [0, 1, 2, 3];
    const spent = async (kind, send) => {
      const began = Date.now();
      await Promise.all(four.map(async (number) => {
        const request = `${name}-${kind}-${number}-in-turn`;
        let token = null;
        while (token === null) {
          token = await send(number, 'LOCK', name, 'WAIT', 4000, 'ID', request);
        }
        await sleep(50);
        assert.strictEqual(await send(number, 'UNLOCK', name, 'ID', request), 0);
      }));
      return Date.now() - began;
    };
    const each = await Promise.all(four.map(() => connect()));
    const many = await spent('each', (number, ...words) => each[number].sendCommand(words.map(String)));
    const one = await spent('one', (number, ...words) => ask(...words));
    each.forEach(close);
    console.log(`turns of 4 x 50 ms: ${one} ms over one connection, ${many} over four`);
    assert.ok(one <= 2 * many, `${one} ms`);
  },

  async multi() {
    await run.pipeline((batch) => batch.exec());
  },

  async events() {
    const listener = await connect();
    const told = {};
    const note = (text, channel) => { told[channel] = text; };
    const hear = async (channel) => {
      while (!(channel in told)) await sleep(5);
      return told[channel];
    };
    await listener.subscribe(`lost:${name}`, note);
    await listener.pSubscribe(`g*:${name}`, note);
    const token = await ask('LOCK', name, 'OWNER', 'joe');
    assert.strictEqual(await hear(`granted:${name}`), `joe ${token}`);
    assert.strictEqual(await ask('FORCEUNLOCK', name, 'OWNER', 'joe'), 1);
    assert.strictEqual(await hear(`lost:${name}`), `joe ${token}`);
    close(listener);
  },
};

// Asks until there is a token. patience 0: the connection is shared, so it asks now and
// then, and stops nobody; KEEP keeps the place in between.
async function wait(request, patience) {
  let token = null;
  let asked = 0;
  while (token === null) {
    try {
      asked += 1;
      token = await ask('LOCK', name, 'WAIT', patience, 'ID', request, 'KEEP', 3000);
      if (token === null && patience === '0') await sleep(200);
    } catch (error) {
      if (error instanceof ErrorReply) throw error;
      await sleep(50);
    }
  }
  console.log('token', token, asked);
  console.log('left', await ask('UNLOCK', name, 'ID', request));
}

async function main() {
  latchd = await connect();
  if (scenarios[0] === 'wait') {
    await wait(...scenarios.slice(1));
  } else {
    for (const scenario of scenarios) {
      await run[scenario]();
      console.log('ok', scenario);
    }
  }
  close(latchd);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
