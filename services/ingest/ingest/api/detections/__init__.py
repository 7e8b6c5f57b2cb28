"""Taking detections in."""
