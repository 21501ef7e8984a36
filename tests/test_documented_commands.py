"""Commands in the documentation: each verb, sub-command and option that a page shows is one that there is."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from latecomer.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND: Any = typer.main.get_command(app)


def commands(text: str) -> list[list[str]]:
    """Return the words of every command line of `latecomer` in the shell snippets of a page."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.match(r"[A-Z_]+=", words[0]):
                words = words[1:]  # settings in the environment
            if words[:1] == ["latecomer"]:
                found.append(words[1:])
    return found


def unknown_words(words: list[str]) -> list[str]:
    """Return the verb or the options of a command line that the program does not have."""
    command, place = COMMAND, 0
    while hasattr(command, "commands"):
        if place == len(words) or words[place] not in command.commands:
            return words[place : place + 1] or ["no verb"]
        command, place = command.commands[words[place]], place + 1
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words[place:] if word.startswith("--") and word.partition("=")[0] not in options]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_commands_that_there_are(path: Path) -> None:
    found = {" ".join(words): unknown_words(words) for words in commands(path.read_text(encoding="utf-8"))}
    assert {line: words for line, words in found.items() if words} == {}


def test_an_unknown_verb_or_option_is_found() -> None:
    text = (
        "```sh\nlatecomer fly\nlatecomer log verify shop.db --deep\nA=1 latecomer serve \\\n  --port 0  # --none\n```\n"
    )
    assert [unknown_words(words) for words in commands(text)] == [["fly"], ["--deep"], []]
