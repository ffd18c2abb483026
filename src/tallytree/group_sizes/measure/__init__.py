"""The one door from confidential group sizes to noisy answers."""
