"""Who is where: the collection `latest`, the notes that keep it, and who is lost."""
