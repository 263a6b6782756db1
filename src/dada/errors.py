"""The one exception for a user's mistake: what was given, what was expected, how to mend it."""


class InputError(ValueError):
    """An input cannot be used as given; the message says what to do. The command line prints it as it is."""
