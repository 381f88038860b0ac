"""Tests scripts/condense.py. Usage: condense_test.py LOCKBENCH"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKBENCH = sys.argv.pop()

HISTOGRAM = {"unit": "s", "relative_error": 0.0078125, "buckets": [[0.5, 9], [1.0, 1]], "overflow": 0}
ACQUIRE = {"count": 10, "censored": {"count": 1, "buckets": [[1.0, 1]], "overflow": 0}, "at_least": ["max"],
           "mean": 0.5, "stddev": 0.1, "min": 0.1, "p50": 8.34567e-5, "p90": 0.9, "p95": 0.95, "p99": 0.00142,
           "p999": 1.0, "max": 1.0, "histogram": HISTOGRAM}
SECOND = {"t": 1.0, "warmup": False, "sections": 10, "acquire_p50": 0.5, "acquire_p99": 1.0, "failed": 0, "waiters": 1,
          "holders": 1}


def play(outcome):
    return {"scenario": "late-release", "strategy": "redis-set-nx", "expected": outcome, "observed": outcome,
            "agrees": True, "evidence": {"reason": "why", "belief_gap_seconds": -0.25},
            "timeline": [{"t": 0.001, "who": "holder", "what": "asks for the lock"}]}


def run(**members):
    return {"strategy": "a", "backend": "redis", "repetition": 1, "sections": 1234567, "sections_per_second": 1234567.8,
            "acquire": ACQUIRE, "commands": {"SET": ACQUIRE}, "schedule_lag": ACQUIRE, "series": [SECOND],
            "errors": ["timeout"], **members}


def result(**members):
    """A result as a command saves it."""
    document = {"schema": "lockbench.result/2", "id": "x", "started_at": "2025-01-01T12:00:00Z", "interrupted": False,
                "lockbench": {"version": "0.1.0", "commit": "c", "build_type": "Release"},
                "environment": {"cpu": "c", "cores": 2, "kernel": "k", "memory_bytes": 1, "servers": {}},
                "workload": {"hold": 0.0123456}, "skipped": [], "runs": [run()],
                "compact": True, **members}
    return json.loads(shown(document))


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def of_file(document, *command):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))
        file.flush()
        return output_of(*command, file.name)


def shown(document):
    return of_file(document, LOCKBENCH, "show", "--format", "json")


def condensed(document):
    return of_file(document, ROOT / "scripts/condense.py", LOCKBENCH)


class Condensed(unittest.TestCase):
    def test_leaves_out_histograms_series_and_timelines(self):
        read = json.loads(shown(condensed(result())))
        self.assertEqual(read["runs"][0]["acquire"]["histogram"]["buckets"], [])
        self.assertEqual(read["runs"][0]["acquire"]["censored"]["buckets"], [])
        self.assertEqual(read["runs"][0]["series"], [])
        read = json.loads(shown(condensed(result(hazards=[play("safe")]))))
        self.assertEqual(read["hazards"][0]["timeline"], [])

    def test_keeps_of_repetitions_what_ranks_them(self):
        second = run(repetition=2, overtakings=7,
                     wait={"round_trip_seconds": 0.1, "backoff_seconds": 0.25, "notified_seconds": 0.0})
        read = json.loads(condensed(result(runs=[run(), second])))["runs"]
        self.assertIn("errors", read[0])
        self.assertNotIn("errors", read[1])
        self.assertEqual(read[1]["overtakings"], 7)
        self.assertEqual(read[1]["wait"]["backoff_seconds"], 0.25)

    def test_keeps_figures_to_four_digits(self):
        text = condensed(result())
        read = json.loads(text)["runs"][0]
        self.assertEqual(read["acquire"]["p50"], 8.346e-5)
        self.assertEqual(read["acquire"]["p99"], 0.00142)
        self.assertEqual(read["sections_per_second"], 1235000)
        self.assertEqual(read["sections"], 1234567)
        self.assertIn("8.346e-05", text)

    def test_keeps_the_workload_exactly(self):
        self.assertEqual(json.loads(condensed(result()))["workload"], {"hold": 0.0123456})

    def test_keeps_what_a_play_said(self):
        read = json.loads(condensed(result(hazards=[play("safe"), play("not-applicable")])))
        self.assertEqual([one["evidence"] for one in read["hazards"]], [{"reason": "why"}] * 2)

    def test_stands_on_few_lines_and_is_read_as_it_is(self):
        text = condensed(result())
        self.assertLess(text.count("\n"), 20)
        self.assertEqual(condensed(text), text)
        self.assertEqual(condensed(shown(text)), text)

    def test_leaves_out_of_runs_only_what_an_empty_run_has(self):
        document = result(runs=[{"strategy": "b", "backend": "redis", "leases_lost": 3}], workload={})
        self.assertEqual(json.loads(shown(condensed(document))), document)


if __name__ == "__main__":
    unittest.main()
