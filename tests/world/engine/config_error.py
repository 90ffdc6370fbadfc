"""A setting the engine refuses before it touches a GPU."""


class ConfigError(Exception):
    """`config` is the engine's class that says so."""

    def __init__(self, config: str, text: str) -> None:
        self.config = config
        super().__init__(text)
