"""The release of a stream: its tables, its manifest, and loading it again."""
