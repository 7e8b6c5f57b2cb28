"""./scripts/load compare: both architectures in turn under the same limits, again and again."""
