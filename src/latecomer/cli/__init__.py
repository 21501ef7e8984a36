"""The command `latecomer`: one file for each verb, and the helpers that verbs share."""
