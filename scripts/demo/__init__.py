"""The demo of `./scripts/up --demo`: phones that walk, so that the page has something to show."""
