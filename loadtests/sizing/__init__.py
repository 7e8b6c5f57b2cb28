"""What to buy for so many people: from what was measured to machines, disks and money."""
