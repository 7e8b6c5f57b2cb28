"""The legacy contract: three endpoints that never change."""
