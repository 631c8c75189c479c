// Takes a lock with the installed package: take.mjs URL NAME. Prints the token; gives it back at the end of its input.
import { Latchd } from 'latchd';

const [url, name] = process.argv.slice(2);
await new Latchd(url).using(name, { wait: 10_000 }, async (lock) => {
  console.log(lock.token);
  for await (const _ of process.stdin);
});
process.exit();
