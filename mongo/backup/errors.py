"""What ends a backup or a restore."""


class BackupError(Exception):
    """No backup can be made or restored; the text is the one line that the user sees."""
