"""Decisions that outlive the machine: the engine, its log, and what speaks to them."""
