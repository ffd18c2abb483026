"""Released group sizes: regions and their tables, what is asked of them, and the manifest."""
