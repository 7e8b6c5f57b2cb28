"""The id of a beacon, its MAC: how people write it, and how it is stored."""

import re

DIGITS = re.compile(r"[0-9A-F]{12}")
# What decoders write for an address that they do not have: it would be one beacon everywhere.
NO_MACS = frozenset({"000000000000", "FFFFFFFFFFFF"})
# What documents say of texts; what stands below decides, and takes a little more.
MAC_TEXT = "([0-9A-Fa-f][:-]?){11}[0-9A-Fa-f]"
BEACON_TEXT = f"(?!(0[:-]?){{12}}$|([Ff][:-]?){{12}}$){MAC_TEXT}"
NOT_A_MAC = "must be a MAC address of 12 hexadecimal digits"


def mac(text: str) -> str | None:
    """Return 12 upper-case hexadecimal digits, None where the text is no MAC."""
    digits = text.replace(":", "").replace("-", "").upper()
    return digits if DIGITS.fullmatch(digits) else None


def fault(digits: str | None) -> str:
    """Return why a MAC is not that of a beacon, "" where it is."""
    if digits is None:
        return NOT_A_MAC
    return f"must be the MAC address of a beacon: {digits} stands for none" * (digits in NO_MACS)
