// Reads what lockbench writes with HdrHistogram's own library for JavaScript, and says where they do not
// agree. Arguments: a directory of --hdr, and the result file of the same run.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const hdr = createRequire(path.join(process.cwd(), 'x.js'))('hdr-histogram-js');
const [directory, resultFile] = process.argv.slice(2);
const result = JSON.parse(fs.readFileSync(resultFile, 'utf8'));
let failures = 0, checked = 0;

function check(holds, what) {
  checked++;
  if (holds) return;
  failures++;
  console.error(`MISMATCH: ${what}`);
}
const near = (a, b, share) => Math.abs(a - b) <= share * Math.max(Math.abs(a), Math.abs(b)) + 2;

// Line by line; the last digit of a tie may be rounded either way.
function sameNumbers(a, b) {
  const numbers = (text) => text.split('\n').map((line) => line.match(/[0-9.]+/g) ?? []);
  const [ours, theirs] = [numbers(a), numbers(b)];
  return ours.length === theirs.length && ours.every((line, i) => line.length === theirs[i].length &&
    line.every((number, k) => Math.abs(number - theirs[i][k]) <= (number.includes(".") && number < 1 ? 1.5e-12 : 0.0105)));
}

for (const strategy of new Set(result.runs.map((run) => run.strategy))) {
  const reader = new hdr.HistogramLogReader(fs.readFileSync(path.join(directory, `${strategy}.hlog`), 'utf8'));
  for (const run of result.runs.filter((one) => one.strategy === strategy)) {
    for (const tag of ['acquire', 'hold', 'release', 'handoff']) {
      const ours = run[tag];
      const samples = ours.count + ours.censored.count;
      if (samples === 0) continue;
      const name = `${strategy} ${run.repetition} ${tag}`;
      const theirs = reader.nextIntervalHistogram();
      if (theirs === null) {
        check(false, `${name}: no interval`);
        continue;
      }
      check(theirs.tag === tag, `${name}: tag ${theirs.tag}`);
      check(theirs.totalCount === samples, `${name}: ${theirs.totalCount} samples, not ${samples}`);
      check(near(theirs.maxValue, ours.max * 1e9, 0.001), `${name}: max ${theirs.maxValue}, not ${ours.max}`);
      check(near(theirs.mean, ours.mean * 1e9, 0.01), `${name}: mean ${theirs.mean}, not ${ours.mean}`);
      for (const [field, percentile] of [['p50', 50], ['p90', 90], ['p99', 99], ['p999', 99.9]]) {
        const value = theirs.getValueAtPercentile(percentile);
        check(near(value, ours[field] * 1e9, 0.009), `${name}: ${field} ${value}, not ${ours[field]}`);
      }
      const hgrm = fs.readFileSync(path.join(directory, `${strategy}.${run.repetition}.${tag}.hgrm`), 'utf8');
      check(sameNumbers(hgrm, theirs.outputPercentileDistribution(5, 1000)), `${name}: percentile output`);
    }
  }
  check(reader.nextIntervalHistogram() === null, `${strategy}: an interval too many`);
}
console.log(`${checked} checks, ${failures} failed`);
process.exit(failures === 0 && checked > 0 ? 0 : 1);
