// latchd from ioredis, which sends everybody's commands over one connection.
//
// ioredis.js HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
'use strict';
const assert = require('assert');
const fs = require('fs');
const Redis = require('ioredis');

const [host, port, protocol, user, password, ca, name, ...scenarios] = process.argv.slice(2);

const options = { host, port: Number(port), enableAutoPipelining: true };
if (protocol !== '-') options.protocol = Number(protocol);
if (user !== '-') options.username = user;
if (password !== '-') options.password = password;
if (ca !== '-') options.tls = { ca: fs.readFileSync(ca) };

const latchd = new Redis(options);
const sleep = (ms) => new Promise((ok) => { setTimeout(ok, ms); });
const ask = (...words) => latchd.call(...words);

const run = {
  async version() {
    console.log('version', require('ioredis/package.json').version);
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
    const lost = { name: 'ReplyError', message: /^NOTHELD / };
    await assert.rejects(ask('UNLOCK', name, 'TOKEN', token), lost);
    await assert.rejects(ask('RENEW', name, 'TOKEN', token), lost);
    await assert.rejects(ask('LOCK', name, 'SOON'), /^ReplyError: ERR unknown option/);
  },

  async share() {
    // In one turn of the event loop: auto-pipelining sends them together.
    const tokens = await Promise.all([ask('LOCK', name, 'READ'), ask('LOCK', name, 'READ')]);
    assert.strictEqual(await ask('LOCK', name, 'WRITE', 'WAIT', 0), null);
    const left = tokens.map((token) => ask('UNLOCK', name, 'TOKEN', token));
    assert.deepStrictEqual(await Promise.all(left), [0, 0]);
    const token = await ask('LOCK', name, 'WRITE', 'WAIT', 0);
    assert.strictEqual(await ask('UNLOCK', name, 'TOKEN', token), 0);
  },

  async pipeline(start = () => latchd.pipeline()) {
    const locks = start();
    for (const which of ['1', '2', '1']) locks.call('LOCK', name + which, 'WAIT', 0);
    const [one, two, none] = (await locks.exec()).map(([error, reply]) => error || reply);
    assert.ok(one > 0 && two > 0 && none === null);
    const unlocks = start();
    unlocks.call('UNLOCK', `${name}1`, 'TOKEN', one);
    unlocks.call('UNLOCK', `${name}2`, 'TOKEN', two);
    assert.deepStrictEqual(await unlocks.exec(), [[null, 0], [null, 0]]);
  },

  async admin() {
    assert.match(await latchd.client('LIST'), /cmd=client\|list/);
    assert.ok(await latchd.config('GET', '*'));
    assert.ok((await latchd.command()).length > 30);
    assert.ok(await ask('LOCKINFO', name));
    const named = new Redis({ ...options, connectionName: 'joe', db: 0 });
    assert.strictEqual(await named.client('GETNAME'), 'joe');
    named.disconnect();
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
  // Auto-pipelining would send nothing while the replies to what it sent are awaited.
  async turns() {
    const connect = () => new Redis({ ...options, enableAutoPipelining: false });
    const shared = connect();
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
    const each = four.map(connect);
    const many = await spent('each', (number, ...words) => each[number].call(...words));
    const one = await spent('one', (number, ...words) => shared.call(...words));
    [shared, ...each].forEach((client) => client.disconnect());
    console.log(`turns of 4 x 50 ms: ${one} ms over one connection, ${many} over four`);
    assert.ok(one <= 2 * many, `${one} ms`);
  },

  async multi() {
    await run.pipeline(() => latchd.multi());
  },

  async events() {
    const listener = new Redis(options);
    const told = {};
    listener.on('message', (channel, text) => { told[channel] = text; });
    listener.on('pmessage', (pattern, channel, text) => { told[channel] = text; });
    const hear = async (channel) => {
      while (!(channel in told)) await sleep(5);
      return told[channel];
    };
    await listener.subscribe(`lost:${name}`);
    await listener.psubscribe(`g*:${name}`);
    const token = await ask('LOCK', name, 'OWNER', 'joe');
    assert.strictEqual(await hear(`granted:${name}`), `joe ${token}`);
    assert.strictEqual(await ask('FORCEUNLOCK', name, 'OWNER', 'joe'), 1);
    assert.strictEqual(await hear(`lost:${name}`), `joe ${token}`);
    listener.disconnect();
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
      if (error.name === 'ReplyError') throw error;
      await sleep(50);
    }
  }
  console.log('token', token, asked);
  console.log('left', await ask('UNLOCK', name, 'ID', request));
}

async function main() {
  latchd.on('error', (error) => { if (scenarios[0] !== 'wait') throw error; });
  if (scenarios[0] === 'wait') {
    await wait(...scenarios.slice(1));
  } else {
    for (const scenario of scenarios) {
      await run[scenario]();
      console.log('ok', scenario);
    }
  }
  latchd.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
