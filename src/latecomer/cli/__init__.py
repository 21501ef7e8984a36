"""The command `latecomer`: one file a verb, and what verbs share."""
