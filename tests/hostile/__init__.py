"""What an attacker sends: every case is data, a request and the only answers that it may get."""
