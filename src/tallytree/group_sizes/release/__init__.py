"""Released group sizes: regions and their tables, and what is asked of them."""
