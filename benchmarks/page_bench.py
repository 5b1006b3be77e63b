"""Speed of the live page in a real browser: the first picture, and slider to redrawn panels."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

SLIDERS = ("step_exponent", "ridge", "phi", "psi", "n", "noise_std", "c2", "step_scale")
VIEWS = {"": SLIDERS, "step=size&step_size=20": ("step_size",)}  # and the sliders that are moved
MOVES = 4  # of each slider
STARTS = 3
CROWD, CROWD_MOVES = 10, 10
LANES = ("main", "spectrum")
WARM = 8.0  # seconds until all workers are warm
DRAWN = "html[data-answered] #graph-errors .scatterlayer .trace"
FINISHED = "html[data-fine=yes] #graph-spectrum .scatterlayer .trace"  # in full

# Moves a slider as a hand does, and waits until Plotly has drawn the errors, and all panels: as
# drafts, that is, for what a spectrum with exact weights takes comes when the slider rests.
MOVE = """async ([name, steps]) => {
  const root = document.documentElement;
  const slider = document.getElementById('slide-' + name);
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const started = performance.now();
  const before = root.dataset.answered;
  slider.value = Number(slider.value) + steps * Number(slider.step);
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  const main = () => root.dataset.answered !== before && root.dataset.main !== 'busy';
  const all = () => main() && root.dataset.spectrum !== 'busy';
  const drawn = [main, all].map(() => null);  // when seen in one frame, on the screen in the next
  let seen = [false, false];
  while (drawn.includes(null)) {
    await frame();
    const now = performance.now() - started;
    if (now > 20000) throw new Error('no answer to ' + name);
    seen.forEach((yes, i) => { if (yes && drawn[i] === null) drawn[i] = now; });
    seen = [seen[0] || main(), seen[1] || all()];
  }
  return drawn;
}"""


def start() -> tuple[subprocess.Popen[str], str]:
    """A server of its own process, and its address."""
    command = [sys.executable, "-m", "featurestep", "explore", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    if found is None:
        raise SystemExit("the server did not start")
    return process, found.group()


def first_picture(browser: Any) -> tuple[float, float]:
    """Seconds from the start of the server's process to the first picture and to the last touch."""
    started = time.perf_counter()
    process, url = start()
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    try:
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(DRAWN, state="attached", timeout=60_000)
        first = time.perf_counter() - started
        page.wait_for_selector(FINISHED, state="attached", timeout=60_000)
        return first, time.perf_counter() - started
    finally:
        context.close()
        end(process)


def slider_times(browser: Any) -> list[tuple[str, float, float]]:
    """Each move's slider, and ms to the errors and to all panels."""
    process, url = start()
    found = []
    try:
        for query, sliders in VIEWS.items():
            context = browser.new_context(viewport={"width": 1280, "height": 860})
            page = context.new_page()
            page.goto(f"{url}?{query}")
            page.wait_for_selector(FINISHED, state="attached", timeout=60_000)
            time.sleep(WARM)
            for name, steps in [(name, 1 + step) for step in range(MOVES) for name in sliders]:
                found.append((name, *page.evaluate(MOVE, [name, steps])))
            context.close()
        return found
    finally:
        end(process)


def crowd_times() -> list[tuple[float, float]]:
    """Milliseconds to each lane's answer while ten clients drag sliders at once."""
    process, url = start()
    try:
        ask(url, "main", "", 0, "first")
        time.sleep(WARM)

        def drag(number: int) -> list[tuple[float, float]]:
            times = []
            with ThreadPoolExecutor(len(LANES)) as both:
                for step in range(CROWD_MOVES):
                    query = f"n={1000 + 10 * number}&phi={0.3 + 0.01 * step:.2f}"
                    page = f"client{number}"
                    asked = [both.submit(ask, url, lane, query, step, page) for lane in LANES]
                    errors, spectrum = (each.result() for each in asked)
                    times.append((errors, spectrum))
            return times

        with ThreadPoolExecutor(CROWD) as crew:
            return [each for times in crew.map(drag, range(CROWD)) for each in times]
    finally:
        end(process)


def ask(url: str, lane: str, query: str, number: int, page: str) -> float:
    """Ask what the page asks when a slider moves, and tell how long the answer took, in ms."""
    body = {"lane": lane, "q": query, "seq": number, "how": "draft", "page": page}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}answers", json.dumps(body).encode(), headers)
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()
    return 1e3 * (time.perf_counter() - began)


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(timeout=20)
    if process.stdout is not None:
        process.stdout.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))]


def main() -> None:
    """Print the table."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("page: needs playwright (pip install '.[dev]')")
        return
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("page: needs Debian's chromium (apt-get install chromium)")
        return
    with sync_playwright() as driver:
        flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        pictures = [first_picture(browser) for _ in range(STARTS)]
        moves = slider_times(browser)
        browser.close()
    crowd = crowd_times()
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"live page in Chromium ({os.cpu_count()} cores{load})")
    for times, label, goal in zip(
        zip(*pictures, strict=True),
        ("first picture after start", "all panels in full"),
        ("  (goal 2.5)", ""),
        strict=True,
    ):
        print(
            f"{label}: {min(times):.2f} s best, {statistics.median(times):.2f} s median of "
            f"{STARTS}{goal}"
        )
    print(f"{'slider to redrawn, ms':<34}{'median':>8}{'95 %':>8}{'goal':>12}")
    labels = ("errors, learned function, words", "with spectrum and degrees")
    for which, label in enumerate(labels, start=1):
        times = [move[which] for move in moves]
        middle, late = statistics.median(times), percentile(times, 0.95)
        print(f"{label:<34}{middle:>8.0f}{late:>8.0f}{'150 / 400':>12}")
    for which, lane in enumerate(LANES):
        times = [each[which] for each in crowd]
        middle, late = statistics.median(times), percentile(times, 0.95)
        print(f"{f'ten clients at once, {lane}':<34}{middle:>8.0f}{late:>8.0f}{'–':>12}")
    for name in (each for sliders in VIEWS.values() for each in sliders):
        times = [move[2] for move in moves if move[0] == name]
        print(f"  {name:<32}{statistics.median(times):>8.0f}{max(times):>8.0f}")


if __name__ == "__main__":
    main()
