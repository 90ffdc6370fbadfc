"""The three kinds as the API server sees them."""
