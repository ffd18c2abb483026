"""A release as one self-contained HTML file."""
