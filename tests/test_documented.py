"""Documentation that cannot drift: every public name, verb, option, setting, policy and parameter is on its page.

Each check is run once more with the name removed from the page, which it must find.
"""

import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt

import latecomer as lc
from latecomer.cli.main import app
from latecomer.policies import registry
from latecomer.service.http.settings import Settings

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
POLICIES = {name: registry.policy_class(name) for name in registry.POLICIES} | {"recommended": lc.recommended}


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The text under a heading, up to the next of its level."""
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no heading {heading!r}"
    return found[2]


def table(text: str) -> list[list[str]]:
    """The cells of the first table of a text, without its heading."""
    rows = re.search(r"^\|.*\n\|[ |:-]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows[1].splitlines()]


# ---- the dependencies ----


def required_packages() -> list[str]:
    """Every package that pyproject.toml names, but this one."""
    project = tomllib.loads(page("pyproject.toml"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[<>=; ]", requirement)[0] for group in groups for requirement in group}
    return sorted(names - {"latecomer"})


@pytest.mark.parametrize("name", required_packages())
def test_every_dependency_says_what_it_is_for(name: str) -> None:
    cells = [row[0] for row in table(section(page("docs/explanation/design.md"), "Dependencies"))]
    listed = {re.sub(r"[ -]", "", one).lower() for cell in cells for one in cell.split(", ")}
    assert re.sub("-", "", name) in listed, "give it its row in docs/explanation/design.md"


# ---- the reference ----


def public_names() -> list[str]:
    """Every name of `latecomer.__all__`; of a module that has names of its own, those."""
    names = []
    for name in lc.__all__:
        value = getattr(lc, name)
        if isinstance(value, ModuleType) and hasattr(value, "__all__"):
            names += [f"{value.__name__}.{member}" for member in value.__all__]
        else:
            names.append(value.__name__ if isinstance(value, ModuleType) else f"latecomer.{name}")
    return names


def undocumented_names(reference: str) -> set[str]:
    """Return the public names that the reference lacks; a documented module documents all of its names."""
    listed = set(re.findall(r"^\.\. auto\w+:: (\S+)$", reference, re.MULTILINE))
    modules = set(re.findall(r"^\.\. automodule:: (\S+)\n   :members:\n", reference, re.MULTILINE))
    return {name for name in public_names() if name not in listed and name.rpartition(".")[0] not in modules}


def test_every_public_name_is_in_the_reference() -> None:
    assert undocumented_names(page("docs/reference/api.md")) == set()


def test_a_public_name_removed_from_the_reference_is_found() -> None:
    reference = page("docs/reference/api.md")
    for name in public_names():
        named = f"{re.escape(name)}|{re.escape(name.rpartition('.')[0])}"
        cut = re.sub(rf"^\.\. auto\w+:: (?:{named})\n", "", reference, flags=re.MULTILINE)
        assert name in undocumented_names(cut)


# ---- the command line ----

COMMAND: Any = typer.main.get_command(app)
VERBS: dict[str, Any] = COMMAND.commands


def options(command: Any) -> set[str]:
    """Every long option of a verb, its own verbs' included."""
    own = {name for parameter in command.params for name in parameter.opts if name.startswith("--")} - {"--help"}
    return own.union(*map(options, getattr(command, "commands", {}).values()))


def undocumented_options(text: str, verb: str) -> set[str]:
    """Return the options and the inner verbs of a verb that its section of the page lacks."""
    written = section(text, f"latecomer {verb}")
    inner = {name for name in getattr(VERBS[verb], "commands", ()) if f"{verb} {name}" not in written}
    return inner | (options(VERBS[verb]) - set(re.findall(r"`(--[\w-]+)", written)))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_on_the_page_of_the_command_line(verb: str) -> None:
    text = page("docs/reference/command-line.md")
    assert any(re.match(rf"\[`latecomer {verb}[` ]", row[0]) for row in table(text)), "it is not in the first table"
    assert undocumented_options(text, verb) == set()


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_removed_from_the_page_is_found(verb: str) -> None:
    text = page("docs/reference/command-line.md")
    for option in options(VERBS[verb]):
        assert undocumented_options(re.sub(rf"`{option}(?![\w-])", "`", text), verb) == {option}


def test_readme_lists_the_verbs() -> None:
    rows = [row for row in table(section(page("README.md"), "What is in it")) if "`latecomer reproduce`" in row[0]]
    assert set(re.findall(r"`(?:latecomer )?(\w+)`", rows[0][0])) == set(VERBS)


# ---- the settings ----


def undocumented_settings(text: str) -> set[str]:
    """Return the settings without a row; tests/service/http/test_http_settings.py compares their defaults."""
    return set(Settings.__struct_fields__) - {row[0].strip("`") for row in table(section(text, "Settings"))}


def test_every_setting_is_on_the_page_of_the_service() -> None:
    assert undocumented_settings(page("docs/reference/service.md")) == set()


@pytest.mark.parametrize("name", Settings.__struct_fields__)
def test_a_setting_removed_from_the_page_is_found(name: str) -> None:
    text = page("docs/reference/service.md")
    assert undocumented_settings(re.sub(rf"^\| `{name}` \|.*\n", "", text, flags=re.MULTILINE)) == {name}


# ---- the policies ----


def test_readme_begins_with_the_policy_to_take() -> None:
    install, first = (block.strip() for block in page("README.md").split("```")[1:4:2])
    assert install.startswith("sh\npip install .")
    assert first.startswith("python")
    assert "lc.recommended(" in first
    assert "`lc.recommended(" in page("README.md").split("\n\n")[1], "the first paragraph names it"


def undocumented_policies(text: str, heading: str) -> set[str]:
    """Return the policies that the table under a heading lacks."""
    rows = table(section(text, heading))
    return set(POLICIES) - {name for row in rows for name in re.findall(r"`(\w+)", f"{row[0]} {row[1]}")}


@pytest.mark.parametrize("heading", ["Which one do I take?", "What each one does"])
def test_every_policy_is_on_its_page_with_its_use_and_its_algorithm(heading: str) -> None:
    text = page("docs/reference/policies.md")
    assert undocumented_policies(text, heading) == set()
    for name in POLICIES:
        assert undocumented_policies(re.sub(rf"`{name}\b", "`", text), heading) == {name}, "its removal is not found"


def test_the_page_sends_nobody_to_a_policy_that_is_worse_than_random_play() -> None:
    rows = table(section(page("docs/reference/policies.md"), "Which one do I take?"))
    assert rows[0][1] == "`recommended`"
    chance = next(float(row[2]) for row in rows if row[1] == "`Uniform`")
    for _, policy, arena, _ in rows:
        assert ("**worse than random play**" in policy) == (float(arena) > chance), policy


def test_the_figures_of_the_policies_are_those_of_the_arena() -> None:
    labels = {
        "Uniform": "uniform play",
        "OTFLinTS": "OTFLinTS, as stated",
        'OTFLinUCB(width="exact")': "OTFLinUCB, as stated",
        'OTFLinUCB(width="buffered")': "OTFLinUCB, buffered",
        'OTFLinUCB(width="tight")': "OTFLinUCB, tight",
        'OTFLinUCB(width="variance")': "OTFLinUCB, variance",
    }
    arena = re.findall(
        r"^\| ([^|]+?)(?: \(.*\))? \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$", page("docs/explanation/arena.md"), re.M
    )
    figures = {name: [mean, worst] for name, mean, worst in arena}
    for _, policy, *cited in table(section(page("docs/reference/policies.md"), "Which one do I take?")):
        name = re.findall(r"`([^`]+)`", policy)[0]
        assert cited == figures[labels.get(name, name)], f"{name}: docs/explanation/arena.md has other figures"


def documented_parameters(text: str) -> dict[str, set[str]]:
    """Return the policies of each parameter, as the table of parameters has them."""
    documented = {}
    for parameter, of, *_ in table(section(text, "Parameters")):
        named = set(re.findall(r"`(\w+)`", of))
        documented[parameter.strip("`")] = set(POLICIES) - named if of.startswith("all") else named
    return documented


def test_every_parameter_of_every_policy_is_on_its_page() -> None:
    taken: dict[str, set[str]] = {}
    for name, policy in POLICIES.items():
        for parameter in inspect.signature(policy).parameters:
            taken.setdefault(parameter, set()).add(name)
    text = page("docs/reference/policies.md")
    assert documented_parameters(text) == taken
    for parameter in taken:
        cut = re.sub(rf"^\| `{parameter}` \|.*\n", "", text, flags=re.MULTILINE)
        assert set(taken) - set(documented_parameters(cut)) == {parameter}, "its removal is not found"


# ---- the design ----


def test_every_package_is_in_the_table_of_the_design() -> None:
    packages = {row[0].strip("`/") for row in table(section(page("docs/explanation/design.md"), "The layers"))}
    assert packages == {path.parent.name for path in (ROOT / "src/latecomer").glob("*/__init__.py")}


# ---- every page ----


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_formula_is_eaten_by_emphasis(path: Path) -> None:
    """‖a‖_{V} … ‖b‖_{V} is emphasis in Markdown: emphasised text must be words."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "formula", path.read_text(encoding="utf-8"), flags=re.S)  # typeset
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        inside = False
        for child in token.children or ():
            inside = child.type == "em_open" or (inside and child.type != "em_close")
            if inside and child.type == "text":
                assert not set(child.content) & set("{}‖=+^_*ΣαβθλV"), f"put it in backticks: {child.content!r}"


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_lines_wrap(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [line for line in text.splitlines() if len(line) > 132 and not line.startswith("|")] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_line_is_taken_for_a_comment(path: Path) -> None:
    """A line that begins with % is a comment in MyST: its text would not be on the page."""
    text = re.sub(r"^```.*?^```|^\$\$.*?^\$\$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"^\s*%.*", text, re.M) == []
