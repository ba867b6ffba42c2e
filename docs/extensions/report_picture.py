"""Draw the picture of a report for the README: ``python -m docs.extensions.report_picture`` (needs Chromium).

It runs ``discreet demo`` on synthetic data, opens the report, and puts its first part next to its effects.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

FIGURE = Path(__file__).parents[1] / "figures" / "report.png"
WIDTH, HEIGHT = 860, 930


def main() -> None:
    """Write the figure."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["discreet", "demo"], cwd=folder, check=True, capture_output=True)
        report = Path(folder) / "build" / "demo" / "model" / "report.html"
        text = report.read_text(encoding="utf-8")
        effects = report.with_name("effects.html")
        head, body = text.split("<main>", 1)
        effects.write_text(head + "<main>" + body[body.index('<h2 id="effects">') :], encoding="utf-8")
        parts = [_screenshot(page, Path(folder) / f"{page.stem}.png") for page in (report, effects)]
    picture = Image.new("RGB", (2 * WIDTH + 20, HEIGHT), "white")
    for place, part in enumerate(parts):
        picture.paste(part.crop((0, 0, WIDTH, HEIGHT)), (place * (WIDTH + 20), 0))
    picture.resize((1200, 1200 * HEIGHT // picture.width)).convert("P", palette=Image.Palette.ADAPTIVE).save(FIGURE)


def _screenshot(page: Path, out: Path) -> Image.Image:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    subprocess.run(["chromium", *flags, f"--screenshot={out}", page.as_uri()], check=True, capture_output=True)
    return Image.open(out).convert("RGB")


if __name__ == "__main__":
    main()
