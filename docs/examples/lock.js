const { createClient } = require('redis');
const { randomUUID } = require('crypto');
const { setTimeout: sleep } = require('timers/promises');

// `work` gets the token, and a signal that is aborted when the lock is lost.
async function withLock(name, work) {
  // A connection for this hold alone: no reply queues behind that of a waiting LOCK.
  const latchd = createClient({ url: 'redis://127.0.0.1:5625', disableOfflineQueue: true });
  const request = randomUUID();
  const lost = new AbortController();
  let ended = false;
  let timer;

  async function renew() {
    const sent = performance.now();
    const left = Number(await latchd.sendCommand(['RENEW', name, 'ID', request]));
    clearTimeout(timer);
    timer = setTimeout(() => lost.abort(), sent + left - performance.now());
    return left / 3;
  }

  async function keep(pause) {
    while (!ended && !lost.signal.aborted) {
      await sleep(pause, null, { ref: false });
      if (ended) return;
      try {
        pause = await renew();
      } catch (err) {
        pause = 100; // latchd may be restarting: the client reconnects by itself
        if (err.message.startsWith('NOTHELD')) lost.abort();
      }
    }
  }

  latchd.on('error', () => {}); // each command reports its own error
  await latchd.connect();
  try {
    let token = null;
    while (token === null) {
      token = await latchd.sendCommand(['LOCK', name, 'WAIT', '4000', 'ID', request]);
    }
    try {
      keep(await renew());
      return await work(token, lost.signal);
    } finally {
      ended = true;
      await latchd.sendCommand(['UNLOCK', name, 'ID', request]);
    }
  } finally {
    clearTimeout(timer);
    latchd.destroy();
  }
}

async function work(token, lost) {
  console.log('working with fencing token', token);
  for (let step = 0; step < 20; step++) {
    if (lost.aborted) return console.log('the lock is lost'); // and UNLOCK throws
    await sleep(100);
  }
}

withLock('job', work).catch((err) => { console.error(err); process.exit(1); });
