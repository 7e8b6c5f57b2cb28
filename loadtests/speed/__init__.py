"""Speed through the gateway, side by side: this architecture, the old one, a peer, the database."""
