"""x."""


def certify(*a):
    """X."""
