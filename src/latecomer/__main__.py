"""`python -m latecomer` is the command `latecomer`."""

from latecomer.cli.main import app

if __name__ == "__main__":
    app(prog_name="latecomer")
