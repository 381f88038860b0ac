#!/usr/bin/python3
"""What the pages show to other tools: the steps of a CI server run in a shell, and the collector's configuration fits.
Usage: examples_test.py LOCKBENCH [unittest's arguments]"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOCKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
BEFORE = 'strategies = ["redis-set-nx-lua"]\nclients = 2\nduration = "200ms"\nwarmup = "50ms"\n'


def yaml_of(page):
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)]


def steps():
    """The shell steps of the examples for GitHub Actions and GitLab."""
    for job in yaml_of("docs/questions.md"):
        for part in job.get("jobs", job).values():
            yield from part.get("script", [])
            yield from (step["run"] for step in part.get("steps", []) if "run" in step)


class Gate(unittest.TestCase):
    def run_step(self, step, after):
        """The exit code, and the counts of the test suite."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("before", BEFORE), ("after", after)):
                (pathlib.Path(folder) / f"{name}.toml").write_text(text)
            path = f"{LOCKBENCH.parent}:{os.environ['PATH']}"
            ended = subprocess.run(["bash", "-e", "-c", step], cwd=folder, env=dict(os.environ, PATH=path), check=False)
            suite = xml.etree.ElementTree.parse(pathlib.Path(folder) / "gate.xml").find("testsuite")
        return ended.returncode, {name: int(suite.get(name)) for name in ("tests", "failures", "errors")}

    def test_passes_or_fails_with_the_exit_code(self):
        both = list(steps())
        self.assertEqual(len(both), 2)
        self.assertEqual(both[0].split(), both[1].split(), "both are shown with the same gate")
        # A busy machine may leave it undecided (5), or slow one side down.
        code, counts = self.run_step(both[0], BEFORE)
        self.assertIn(code, (0, 5, 99))
        self.assertGreaterEqual(counts["tests"], 2)
        self.assertEqual(code == 0, counts["failures"] + counts["errors"] == 0)
        code, counts = self.run_step(both[1], BEFORE + 'hold = "40ms"\n')
        self.assertIn(code, (5, 99))
        self.assertGreater(counts["failures"] + counts["errors"], 0)


class Collector(unittest.TestCase):
    def setUp(self):
        self.config = yaml.safe_load((ROOT / "exporter/otel-collector.yaml").read_text())

    def test_uses_what_it_defines(self):
        for pipeline in self.config["service"]["pipelines"].values():
            for kind, names in pipeline.items():
                self.assertLessEqual(set(names), set(self.config[kind]))

    def test_scrapes_the_services_as_prometheus_does(self):
        def jobs(scrape_configs):
            return {one["job_name"]: one["static_configs"][0]["targets"] for one in scrape_configs}

        scraped = jobs(self.config["receivers"]["prometheus"]["config"]["scrape_configs"])
        prometheus = yaml.safe_load((ROOT / "dashboards/prometheus/prometheus.yml").read_text())
        self.assertLessEqual(scraped.items(), jobs(prometheus["scrape_configs"]).items())
        for job, targets in scraped.items():
            self.assertIn(f"--metrics-listen {targets[0]}", (ROOT / f"exporter/{job}.service").read_text())

    def test_has_a_configuration_that_prometheus_takes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(self.config["receivers"]["prometheus"]["config"], file)
            file.flush()
            subprocess.run(["promtool", "check", "config", file.name], check=True)


if __name__ == "__main__":
    unittest.main()
