"""Tests scripts/tpcc.py, and a run with the trace that it makes. Usage: tpcc_test.py LOCKBENCH"""
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKBENCH = sys.argv.pop()
TRANSACTIONS = 20_000


def tpcc(*arguments):
    """The script's output on stdout."""
    return subprocess.run([ROOT / "scripts/tpcc.py", "--transactions", str(TRANSACTIONS), "--out", "-", *arguments],
                          check=True, capture_output=True, text=True).stdout


class Tpcc(unittest.TestCase):
    def test_transactions_have_the_standards_shares(self):
        kinds = {}
        for line in tpcc("--warehouses", "2").splitlines():
            transaction, _, kind, _, _ = line.split(",")
            kinds[transaction] = int(kind)
        counts = collections.Counter(kinds.values())
        for kind, share in {1: 0.45, 2: 0.43, 3: 0.04, 4: 0.04, 5: 0.04}.items():
            expected = TRANSACTIONS * share
            self.assertAlmostEqual(counts[kind], expected, delta=6 * math.sqrt(expected * (1 - share)), msg=kind)

    def test_one_seed_gives_the_same(self):
        first = tpcc()
        self.assertTrue(first.startswith("1,0,"), first[:80])
        self.assertEqual(tpcc("--seed", "1"), first)
        self.assertNotEqual(tpcc("--seed", "2"), first)

    def test_a_run_takes_the_locks_of_the_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, result = pathlib.Path(folder, "tpcc.csv"), pathlib.Path(folder, "r.json")
            trace.write_text(tpcc("--transactions", "300"))
            subprocess.run([LOCKBENCH, "run", "local-mutex", "--trace", trace, "--warmup", "0s", "--hold", "0s", "--out",
                            result], check=True, capture_output=True)
            self.assertEqual(json.loads(result.read_text())["runs"][0]["sections"], 300)


unittest.main()
