// Sections per second of etcd3's lock: CLIENTS clients, each with its own connection and key, one section
// after the other. Usage: node peer.js ADDRESS CLIENTS SECONDS
const { Etcd3 } = require('etcd3');

const [address, clients, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const warmUp = 500;

async function work(number, from, until) {
  const etcd = new Etcd3({ hosts: `http://${address}` });
  let sections = 0;
  while (Date.now() < until) {
    const lock = etcd.lock(`peer:${number}`).ttl(10);
    await lock.acquire();
    await lock.release();
    if (Date.now() >= from && Date.now() < until) sections += 1;
  }
  etcd.close();
  return sections;
}

async function main() {
  const from = Date.now() + warmUp;
  const until = from + seconds * 1000;
  const all = await Promise.all([...Array(clients).keys()].map((number) => work(number, from, until)));
  console.log((all.reduce((sum, one) => sum + one, 0) / seconds).toFixed(1));
}

main();
