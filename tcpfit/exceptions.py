"""What tcpfit raises. Each message is one sentence that names the place, the rule and the next step."""


class TcpfitError(Exception):
    """Base of every error that tcpfit raises on purpose."""


class CaptureError(TcpfitError, OSError):
    """A capture cannot be opened or is in no format that tcpfit reads."""


class InvalidParameter(TcpfitError, ValueError):
    """An argument is outside its domain."""


class PluginWarning(UserWarning):
    """A model that another package registered cannot be used; the others can."""
