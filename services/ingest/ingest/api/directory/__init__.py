"""The directory of beacons."""
