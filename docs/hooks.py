"""What `make docs` adds to the pages: the front page, the changes, the reference of the API and of the commands.

The pages are written for the repository, where their links work as they are. `mkdocs.yml` names this file as its hook:

* `index.md` is README.md, `changelog.md` is CHANGELOG.md; other files that pages lead to come along;
* `api.md` gets the docstrings of every public name, `cli.md` every command with its arguments and options, `methods.md`
  every method and part with its parameters, `datasets.md` what the code says of each source, `connect.md` the
  addresses of live sources;
* comments that tell the tests how to run a block are left out;
* a page that the navigation does not name stands under "How-to".
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GENERATED = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site that are files of the repository's root."""
LINK = re.compile(r"(?P<before>\]\(|(?:src|href|srcset)=\")(?P<target>[^)#\s\"]+)")
"""A link or picture of a page, up to its anchor."""
UNPLACED = "How-to"
"""The section of pages that the navigation does not name."""
API = {
    "Tasks and runs": ("load_task", "evaluate", "run", "read_run", "Task", "Evaluation", "RunResults"),
    "Windows and methods": ("Window", "WindowSet", "Method", "Knowledge"),
    "The case library": (
        *("Library", "cases.Answer", "cases.Hit", "cases.Fault", "cases.Case", "cases.CaseDetails"),
        *(
            "cases.Evidence",
            "cases.windows_from",
            "cases.read_recording",
            "cases.export_library",
            "cases.import_library",
        ),
    ),
    "Your own parts": (
        *("engine.registry.Registry.register", "ParameterRange", "protocols", "abilities"),
        *("Source", "SourceInfo", "Recording", "Channel", "Protocol", "benchmark.metrics.Judgement"),
        *("studies.Study", "studies.Grid", "studies.Measured", "testing"),
    ),
    "Language models": ("engine.llm._settings.Profile",),
    "Errors": ("errors",),
}
"""The public names by subject, as they are imported from `readbench`."""


def on_config(config: Any) -> Any:  # noqa: ANN401 - mkdocs is optional, its classes have no types here
    """Place the pages that the navigation does not name."""
    named = set(re.findall(r"[\w-]+\.md", str(config.nav)))
    unplaced = sorted(page.name for page in Path(config.docs_dir).glob("*.md") if page.name not in named)
    section = next(part for part in config.nav if UNPLACED in part)
    section[UNPLACED] += unplaced
    return config


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401
    """Add the files of the repository that pages lead to; those of its root that are Markdown become pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only the build has it

    wanted = {origin: page for page, origin in GENERATED.items()}
    for page in [*Path(config.docs_dir).glob("*.md"), *(ROOT / origin for origin in GENERATED.values())]:
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            origin = _repository_file(page.parent, match["target"])
            if origin:
                wanted.setdefault(origin, _place_of(origin))
    for origin, place in wanted.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Lead links to their targets here, leave out what is meant for the tests, bring the generated references."""
    name = page.file.src_uri
    folder = _folder_of(name)
    markdown = LINK.sub(lambda match: _link_here(match, folder), markdown)
    markdown = re.sub(r"<!--.*?-->\n?", "", markdown, flags=re.DOTALL)
    if name == "changelog.md":  # it tells of pages as they were; their headings may be gone
        markdown = re.sub(r"(\]\([\w-]+\.md)#[\w-]+", r"\1", markdown)
    if name == "api.md":
        markdown += "\n" + "\n".join(describe_api())
    if name == "cli.md":
        markdown += "\n" + "\n".join(describe_commands())
    if name == "methods.md":
        markdown += "\n" + "\n".join(describe_methods())
    if name == "datasets.md":
        markdown += "\n" + "\n".join(describe_sources())
    if name == "connect.md":
        markdown += "\n" + "\n".join(describe_live_sources())
    return markdown


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401
    r"""A heading of a table that is empty is none; `a\|b` in a cell is code `a|b`, as on the repository page."""
    html = re.sub(r"<td.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.DOTALL)
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def _folder_of(page: str) -> Path:
    """The folder of the repository that holds the file of a page, from which its links lead."""
    if (ROOT / "docs" / page).exists():
        return ROOT / "docs"
    return (ROOT / page).parent if (ROOT / page).parent.is_dir() else ROOT


def _link_here(match: re.Match[str], folder: Path) -> str:
    """A link of a page that stands in a folder of the repository, as it is on the site; to a folder, its text alone."""
    target = match["target"]
    origin = _repository_file(folder, target)
    up = "" if folder in (ROOT, ROOT / "docs") else "../" * len(folder.relative_to(ROOT).parts)
    if origin:
        return f"{match['before']}{up}{_place_of(origin)}"
    if (folder / target).is_dir():
        return f"{match['before']}{up}architecture.md"
    path = (folder / target).resolve()
    if "://" in target or ROOT / "docs" not in path.parents:
        return match[0]
    return match["before"] + up + path.relative_to(ROOT / "docs").as_posix()


def _repository_file(folder: Path, target: str) -> str:
    """The path of a link's target from the root, where that is a file outside docs/; else nothing."""
    path = (folder / target).resolve()
    inside = "://" not in target and path.is_file() and ROOT in path.parents and ROOT / "docs" not in path.parents
    return path.relative_to(ROOT).as_posix() if inside else ""


def _place_of(origin: str) -> str:
    """Where the site has a file of the repository: Markdown as a page, the rest as text that a browser shows."""
    pages = {origin: page for page, origin in GENERATED.items()}
    if origin.endswith(".md"):
        return pages.get(origin, origin.lower())
    return f"repository/{origin}" + ("" if origin.endswith((".ipynb", ".png", ".svg", ".txt")) else ".txt")


def describe_api() -> Iterator[str]:
    """One heading a subject, and under it the places that mkdocstrings fills from docstrings."""
    from readbench.common.rooms import read_places  # noqa: PLC0415 - the pages are read without it

    places = read_places("readbench")
    for subject, names in API.items():
        yield f"\n## {subject}\n"
        for name in names:
            yield f"\n::: {'.'.join(places.get(name, ('readbench', name)))}\n"


def describe_methods() -> Iterator[str]:
    """Whole methods and what they stand for; then every part: its kind, parameters and docstring."""
    from readbench.cli.catalogue import COMPOSED_SUMMARIES, components  # noqa: PLC0415
    from readbench.engine.spec import COMPOSED  # noqa: PLC0415

    yield "\n## Whole methods\n\n| name | stands for | what it is |\n|---|---|---|"
    for name, summary in COMPOSED_SUMMARIES.items():
        yield f"| `{name}` | `{COMPOSED[name].replace('|', chr(92) + '|')}` | {summary} |"
    kinds: dict[str, list[Any]] = {}
    for kind, entry in components():
        kinds.setdefault(kind, []).append(entry)
    for kind, entries in kinds.items():
        yield f"\n## {kind[0].upper()}{kind[1:]}s\n"
        for entry in entries:
            yield f"\n### {entry.name}\n"
            yield _docstring(inspect.getdoc(entry.factory) or entry.summary) + "\n"
            shown = ", ".join(f"`{own}={parameter.default}`" for own, parameter in entry.parameters.items())
            needs = f"Needs `pip install 'readbench[{entry.extra}]'`." if entry.extra else ""
            yield " ".join(part for part in (f"Parameters: {shown}." if shown else "", needs) if part) + "\n"


def _docstring(text: str) -> str:
    """A docstring as Markdown: what it says of each argument becomes a list."""
    before, _, arguments = text.partition("\nArgs:\n")
    listed = re.sub(r"\n {5,}", " ", arguments)
    return before + "\n\n" + re.sub(r"^ *(\w+): ", r"* `\1`: ", listed, flags=re.MULTILINE)


def describe_sources() -> Iterator[str]:
    """Every source: facts, how its files are got, what its module says, its parameters."""
    from readbench.benchmark.exchange import OFFICIAL  # noqa: PLC0415
    from readbench.engine.registry import SOURCES  # noqa: PLC0415
    from readbench.engine.spec import build_source  # noqa: PLC0415

    for name in SOURCES.names():
        source = build_source(name)
        info = source.info
        yield f"\n### {name}\n"
        yield f"*{info.title}; {info.domain}.* {info.description}\n"
        sizes = [f"{len(info.channels) or 'varying'} channels", f"windows of {info.protocol.length or 'varying'} steps"]
        faults = f"{len(info.faults)} fault types" if info.faults else "fault types by file"
        yield f"{', '.join(sizes)}, {faults}; split by {info.split_unit}, asset: {info.asset_unit or 'none'}.\n"
        yield f"Licence: {info.licence}. Source: {info.citation}. {f'<{info.url}>' if info.url else ''}\n"
        official = OFFICIAL.get(name)
        if official and official.files:
            yield f"Get it: `readbench data fetch {name} --accept-licence`.\n"
        elif official and official.steps:
            yield f"Get it by hand:\n\n```text\n{official.steps.format(folder=f'READBENCH_DATA/{name}').strip()}\n```\n"
        module = inspect.getmodule(type(source))
        yield inspect.cleandoc((module.__doc__ or "") if module else "") + "\n"
        parameters = list(inspect.signature(type(source)).parameters.values())
        if parameters:
            yield "Parameters: " + ", ".join(f"`{own.name}={own.default}`" for own in parameters) + ".\n"


def describe_live_sources() -> Iterator[str]:
    """What the modules of `readbench cases connect` say of their addresses and options; read, not imported."""
    for path in sorted((ROOT / "src" / "readbench" / "cases" / "connect").glob("_[a-z]*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if "://" in said:
            title, _, rest = said.partition("\n")
            yield f"\n### {title.rstrip('.')}\n\n{rest}\n"


def describe_commands() -> Iterator[str]:
    """Every command of the command line: what it does, how it is called, its arguments and options."""
    import typer  # noqa: PLC0415

    from readbench.cli import app  # noqa: PLC0415

    yield from _describe_command(typer.main.get_command(app), "readbench", depth=2)


def _describe_command(command: Any, path: str, depth: int) -> Iterator[str]:  # noqa: ANN401
    context = command.context_class(command, info_name=path)
    below = getattr(command, "commands", {})
    yield f"\n{'#' * depth} {path}\n"
    yield _plain(command.help or "")
    yield f"\n```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    if shown and path != "readbench":
        yield "| argument or option | meaning |\n|---|---|"
        yield from (_describe_parameter(parameter, context) for parameter in shown)
    for name, each in below.items():
        if not each.hidden:
            yield from _describe_command(each, f"{path} {name}", min(depth + 1, 4))


def _describe_parameter(parameter: Any, context: Any) -> str:  # noqa: ANN401
    if parameter.param_type_name == "argument":
        told = (" ".join(parameter.get_usage_pieces(context)), getattr(parameter, "help", "") or "")
    else:
        told = parameter.get_help_record(context) or (", ".join(parameter.opts), "")
    name, meaning = (re.sub(r"\s+", " ", part).strip() for part in told)
    return f"| `{name.replace('|', chr(92) + '|')}` | {_plain(meaning).replace('|', chr(92) + '|')} |"


def _plain(text: str) -> str:
    """A help text as Markdown: options and names in brackets stay what they are."""
    text = re.sub(r"[ \t]+", " ", text.replace("\b", "").replace("\f", "")).strip()
    return text.replace("<", "&lt;").replace("[", "\\[") if "`" not in text else text


os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
