"""The directory of beacons: the collection, its copy in memory, and corrections of the past."""
