"""Self-contained HTML pages, and PDF printed by Chromium."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zlib import crc32

from readbench.common.files import write_bytes, write_text
from readbench.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
TIMEOUT_S = 60
"""Longest time to print one page, in seconds."""
STYLE = """
@page { size: A4; margin: 14mm 15mm 16mm; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 54rem; padding: 1.6rem 1.4rem 3rem; color: #1a1e25; background: #fff;
  font: 14px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif; }
h1 { font-size: 1.55rem; line-height: 1.2; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.08rem; margin: 1.7rem 0 .5rem; break-after: avoid; }
p { margin: .4rem 0; max-width: 46rem; }
.soft { color: #566071; }
.lead { font-size: 1.08rem; margin-top: .7rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: 1.1rem 0 .4rem; }
.tile { border: 1px solid #dde1e7; border-radius: 8px; padding: .6rem .8rem; break-inside: avoid; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.25; letter-spacing: -.02em; }
.tile span { color: #566071; font-size: .86rem; line-height: 1.3; display: block; }
figure { margin: .8rem 0; break-inside: avoid; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: #566071; font-size: .86rem; margin-top: .25rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: #566071; border-bottom: 1.5px solid #b9c0ca;
  padding: .25rem .6rem .25rem 0; }
td { border-bottom: 1px solid #e6e9ee; padding: .28rem .6rem .28rem 0; vertical-align: top; overflow-wrap: anywhere; }
tr { break-inside: avoid; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: inline-block; height: .62em; background: #0072b2; border-radius: 2px; vertical-align: baseline; }
.warn { border-left: 3px solid #b3261e; padding: .1rem 0 .1rem .8rem; margin: .4rem 0; }
.note { border-left: 3px solid #b9c0ca; padding: .1rem 0 .1rem .8rem; margin: .4rem 0; }
a { color: #0a5f96; }
footer { margin-top: 2rem; border-top: 1px solid #dde1e7; padding-top: .5rem; color: #566071; font-size: .82rem; }
@media print { body { padding: 0; max-width: none; font-size: 10pt; } h2 { margin-top: 1.2rem; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: .5rem; }
  .tile { padding: .45rem .6rem; } .tile b { font-size: 1.3rem; } }
"""


def make_page(title: str, body: Iterable[str], footer: str = "") -> str:
    """Self-contained page from HTML parts."""
    end = f"<footer>{escape(footer)}</footer>" if footer else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline';"
        ' img-src data:"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + f"\n{end}</body></html>\n"
    )


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """HTML table of plain texts; the columns in `numbers` are right-aligned."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        kinds = [' class="n"' if at in numbers else "" for at in range(len(texts))]
        return "".join(f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, texts, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"


def make_tiles(tiles: Iterable[tuple[str, str]]) -> str:
    """HTML tiles of (value, description)."""
    shown = (f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>' for value, what in tiles)
    return f'<div class="tiles">{"".join(shown)}</div>'


def make_figure(figure: Figure, caption: str) -> str:
    """Figure as inline SVG with a caption."""
    text = io.StringIO()
    import matplotlib as mpl  # noqa: PLC0415 - slow to import

    with mpl.rc_context({"svg.hashsalt": "readbench", "svg.fonttype": "path", "text.parse_math": False}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    # Ids must differ between the figures of a page.
    mark = f"f{crc32(drawn.encode()):08x}"
    drawn = re.sub(r'(id="|href="#|url\(#)', rf"\1{mark}", drawn)
    return (
        f'<figure role="img" aria-label="{escape(caption)}">{drawn}<figcaption>{escape(caption)}</figcaption></figure>'
    )


def write_page(page: str, path: Path) -> None:
    """Write a page as PDF if the path ends with .pdf, else as HTML."""
    if path.suffix.lower() == ".pdf":
        print_pdf(page, path)
        return
    write_text(path, page)


def print_pdf(page: str, path: Path) -> None:
    """Print a page as PDF with Chromium."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UsageError(
            f"PDF needs Chromium, which was not found ({', '.join(BROWSERS)}). Write HTML ({path.stem}.html) and print"
            " it from any browser."
        )
    with TemporaryDirectory() as folder:
        source, printed = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        sandbox = [] if getattr(os, "geteuid", lambda: 1)() else ["--no-sandbox"]
        flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
        command = [browser, *flags, *sandbox, f"--user-data-dir={folder}/profile", "--no-pdf-header-footer"]
        try:
            subprocess.run(  # noqa: S603 - a browser of this machine, and a file of ours
                [*command, f"--print-to-pdf={printed}", source.as_uri()],
                check=True,
                capture_output=True,
                timeout=TIMEOUT_S,
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise UsageError(f"{browser} did not print the page ({error}). Write HTML instead.") from error
        write_bytes(path, printed.read_bytes())
