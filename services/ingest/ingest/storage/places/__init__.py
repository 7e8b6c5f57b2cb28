"""What the detections tell of a place: when it was visited, and by whom."""
