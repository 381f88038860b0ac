"""Opens a report in a headless Chromium and prints facts about the page as one line of JSON.

Usage: browse.py PAGE SCHEME WIDTH [SCREENSHOT]
SCHEME is light or dark, WIDTH in pixels. Needs Debian's chromium, chromium-driver, python3-selenium.
"""
import json
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 120  # seconds; machines are busy

# Counts coloured pixels: axes and their texts have none, lines, bars and dots have many.
CANVASES = """
return [...document.querySelectorAll('canvas')].map((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let colored = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    const r = pixels[i], g = pixels[i + 1], b = pixels[i + 2];
    if (pixels[i + 3] > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
  }
  return {label: canvas.getAttribute('aria-label'), role: canvas.getAttribute('role'),
          colored, width: canvas.getBoundingClientRect().width};
});
"""

FACTS = """
const style = getComputedStyle(document.body);
return {
  title: document.title, text: document.body.innerText, background: style.backgroundColor, ink: style.color,
  width: document.documentElement.scrollWidth, inner: innerWidth,
  scripts: [...document.scripts].length, hacked: window.hacked ?? null,
  images: document.images.length, frames: document.querySelectorAll('iframe,object,embed,link').length,
  tables: document.querySelectorAll('table').length,
  unnamed: [...document.querySelectorAll('button,summary,a')].filter((one) => !one.textContent.trim()).length,
};
"""


def start(width, scheme):
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    return driver


def requests_of(driver):
    """Every requested address, answered or not."""
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            parameters = message["params"]
            asked.append(parameters.get("url") or parameters["request"]["url"])
    return asked


def unfold(driver):
    """Opens a scenario's plays, and the first of them, by keyboard only."""
    plays = driver.find_elements(By.CSS_SELECTOR, "details details")
    if not plays:
        return None
    told = plays[0].find_element(By.TAG_NAME, "pre")
    before = told.is_displayed()
    for summary in (plays[0].find_element(By.XPATH, "../summary"), plays[0].find_element(By.TAG_NAME, "summary")):
        summary.send_keys(Keys.ENTER)
    WebDriverWait(driver, PATIENCE).until(lambda _: told.is_displayed())
    return {"before": before, "told": told.text}


def click_name(driver):
    """Whether a click on a line's name hides the line, and another one shows it again."""
    place = driver.execute_script("""
        const canvas = document.querySelector('canvas');
        if (!canvas) return null;
        canvas.scrollIntoView({block: 'center'});
        const box = Chart.getChart(canvas).legend.legendHitBoxes[0], at = canvas.getBoundingClientRect();
        return {x: at.left + box.left + box.width / 2, y: at.top + box.top + box.height / 2};""")
    if not place:
        return None

    def picture():
        return driver.execute_script("return document.querySelector('canvas').toDataURL()")

    def click():
        for kind in ("mousePressed", "mouseReleased"):
            driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "button": "left", "clickCount": 1, **place})

    def hidden():
        return driver.execute_script("return !Chart.getChart(document.querySelector('canvas')).isDatasetVisible(0)")

    before = picture()
    click()
    WebDriverWait(driver, PATIENCE).until(lambda _: hidden())
    changed = picture() != before
    click()
    WebDriverWait(driver, PATIENCE).until(lambda _: not hidden())
    return {"changed": changed}


def without_scripts(driver, page):
    """The page in a browser without scripts."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.get(page)
    return driver.find_element(By.TAG_NAME, "body").text


def main(page, scheme, width, screenshot=None):
    driver = start(int(width), scheme)
    try:
        driver.set_page_load_timeout(PATIENCE)
        page = pathlib.Path(page).resolve().as_uri()
        driver.get(page)
        WebDriverWait(driver, PATIENCE).until(
            lambda _: driver.execute_script("return document.documentElement.dataset.ready"))
        if screenshot:
            driver.save_screenshot(screenshot)
        seen = driver.execute_script(FACTS)
        seen["canvases"] = driver.execute_script(CANVASES)
        seen["unfolded"] = unfold(driver)
        seen["clicked"] = click_name(driver)
        seen["requests"] = requests_of(driver)
        seen["console"] = [entry["message"] for entry in driver.get_log("browser")]
        seen["without_scripts"] = without_scripts(driver, page)
        print(json.dumps(seen))
    finally:
        driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
