#!/usr/bin/env python3
"""
Pictures of the page for the documents: the demonstration's conversation in chromium, light and dark.

    scripts/screenshots.py               writes docs/images/*.png; chromium comes from scripts/clients
    scripts/screenshots.py --all FOLDER  six pages, in both colour schemes, at two widths, whole
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from palimpsest.commands.demo import DemoRun, running_demo
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH, HEIGHT = 1180, 1240  # pixels: at the width of a README, letters are still read
SCHEMES, WIDTHS = ("light", "dark"), (1280, 390)  # pixels: a window, and a phone
COLOURS = 128  # of a picture: flat surfaces and edges of letters need no more
MOST_BYTES = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="take pictures of six pages, to be looked at")
    folder = parser.parse_args().all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(take(folder))


async def take(folder: Path) -> int:
    """Take them all; the exit status is 1 where there is no browser."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.stderr.write("chromium was not found: ./scripts/clients installs it\n")
        return 1
    async with running_demo() as (url, _, run), async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        if folder != IMAGES:
            await every_page(chromium, url, run, folder)
        for scheme in SCHEMES if folder == IMAGES else ():
            context = await chromium.new_context(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})  # type: ignore[arg-type]
            page = await context.new_page()
            await page.goto(f"{url}/memory/conversations/{run.conversation}")
            await picture(page, f"conversation-{scheme}")
            await page.locator(".compaction .step a").click()
            await picture(page, f"request-{scheme}")
            await page.goto(f"{url}/memory/")
            await picture(page, f"live-{scheme}")
        await chromium.close()
    return 0


async def every_page(chromium: Browser, url: str, run: DemoRun, folder: Path) -> None:
    """Six pages as a whole."""
    conversation = f"/memory/conversations/{run.conversation}"
    for scheme in SCHEMES:
        for width in WIDTHS:
            context = await chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": HEIGHT})  # type: ignore[arg-type]
            page = await context.new_page()
            await page.goto(url + conversation)
            request = await page.locator(".compaction .step a").get_attribute("href")
            paths = {
                "live": "/memory/",
                "conversation": conversation,
                "request": request,
                "work": f"{conversation}/work",
                "search": f"/memory/search?q={quote(run.talk['question'])}",
                "forget": f"/memory/forget?conversation={run.conversation}",
            }
            for name, path in paths.items():
                await page.goto(f"{url}{path}")
                await page.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)
            await context.close()


async def picture(page: Page, name: str) -> None:
    """What a reader sees first of a page, in few colours."""
    stop = await page.evaluate("Math.ceil(document.querySelector('main > :last-child').getBoundingClientRect().bottom)")
    taken = await page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": min(stop + 24, HEIGHT)})
    file = IMAGES / f"{name}.png"
    Image.open(BytesIO(taken)).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(file, optimize=True)
    size = file.stat().st_size
    assert size < MOST_BYTES, f"{file}: {size} bytes"
    sys.stdout.write(f"{file.relative_to(Path.cwd())}: {size:,} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
