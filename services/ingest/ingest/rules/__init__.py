"""Pure rules: from untrusted text to typed values, what names a detection, when a level changes."""
