"""The mechanisms for group sizes: one object each, and the table of them."""
