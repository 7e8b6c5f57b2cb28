"""MongoDB: where the binary comes from, how it is set up, and the directory of beacons."""
