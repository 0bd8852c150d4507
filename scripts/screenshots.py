#!/usr/bin/env python3
"""
Pictures of the page for the documents: the demonstration's conversation in chromium, light and dark.

    scripts/screenshots.py     writes docs/images/*.png; chromium comes from scripts/clients
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from io import BytesIO
from pathlib import Path

from palimpsest.commands.demo import running_demo
from PIL import Image
from playwright.async_api import Page, async_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH, HEIGHT = 1180, 1100  # pixels: at the width of a README, letters are still read
COLOURS = 128  # of a picture: flat surfaces and edges of letters need no more
MOST_BYTES = 100_000


async def main() -> int:
    """Take them all; the exit status is 1 where there is no browser."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.stderr.write("chromium was not found: ./scripts/clients installs it\n")
        return 1
    IMAGES.mkdir(exist_ok=True)
    async with running_demo() as (url, _, run), async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
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
    sys.exit(asyncio.run(main()))
