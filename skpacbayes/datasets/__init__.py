"""Simulated models of the papers; nothing here downloads."""
