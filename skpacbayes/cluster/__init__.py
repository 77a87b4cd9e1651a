"""Clusterers that find the number of clusters."""
