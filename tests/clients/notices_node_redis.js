// Holds locks with node-redis and says when it is told of them.
//
// notices_node_redis.js PORT push|channel|asked NAME...: prints `ready`, then `told NAME MS`
// with the time of day, until its standard input ends.
const { createClient } = require('redis');

const [port, way, ...names] = process.argv.slice(2);

function tell(name) {
  console.log('told', name, Date.now());
}

async function connect(options) {
  const client = createClient({ socket: { port: Number(port) }, ...options });
  client.on('error', (error) => { console.error(error); process.exit(1); });
  client.on('invalidate', (name) => tell(`${name}`));
  await client.connect();
  return client;
}

async function ask(client) {
  const left = new Set(names);
  while (left.size > 0) {
    for (const name of left) {
      const info = await client.sendCommand(['LOCKINFO', name]).catch((error) => {
        if (!`${error}`.includes('BACKEND')) { // Redis hangs: asked again
          throw error;
        }
      });
      if (info && info.state !== 'held') {
        tell(name);
        left.delete(name);
      }
    }
    await new Promise((ok) => { setTimeout(ok, 5); });
  }
}

async function main() {
  const client = await connect({ RESP: 3, emitInvalidate: way === 'push' });
  for (const name of names) {
    await client.sendCommand(['LOCK', name]);
  }
  if (way === 'channel') {
    const listener = await connect();
    for (const what of ['lost', 'uncertain']) {
      await listener.subscribe(names.map((name) => `${what}:${name}`),
        (message, channel) => tell(channel.slice(what.length + 1)));
    }
  }
  console.log('ready');
  if (way === 'asked') {
    await ask(client);
  }
}

process.stdin.on('end', () => process.exit(0)).resume();
main().catch((error) => { console.error(error); process.exit(1); });
