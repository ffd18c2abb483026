"""The one door from confidential to noisy: nothing else reads confidential values or draws noise for them."""
