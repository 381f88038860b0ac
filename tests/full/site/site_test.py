#!/usr/bin/python3
"""Makes the site with scripts/site.py: each page is in it and found by its search, and it loads nothing from elsewhere."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.folder.name)
        subprocess.run([ROOT / "scripts/site.py", cls.site], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_has_each_page(self):
        missing = [page.name for page in (ROOT / "docs").glob("*.md")
                   if not (self.site / "docs" / f"{page.stem}.html").exists()]
        self.assertEqual(missing, [], "README.md does not lead there")
        self.assertIn("measures distributed locks", (self.site / "index.html").read_text())

    def test_finds_words_in_each_page(self):
        index = json.loads((self.site / "search/search_index.json").read_text())["docs"]
        self.assertTrue(any(entry["location"].startswith("docs/hazards.html") and "SIGSTOP" in entry["text"]
                            for entry in index))
        places = {entry["location"].split("#")[0] for entry in index}
        self.assertLessEqual({f"docs/{page.stem}.html" for page in (ROOT / "docs").glob("*.md")}, places)

    def test_loads_nothing_from_elsewhere(self):
        for page in self.site.rglob("*.html"):
            loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', page.read_text())
            self.assertEqual(loaded, [], page)


if __name__ == "__main__":
    unittest.main()
