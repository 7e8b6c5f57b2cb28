"""What changed in the detections since a reader last looked."""
