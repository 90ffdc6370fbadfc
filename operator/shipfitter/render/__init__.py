"""A plan as manifests: plain dicts, nothing read and nothing applied."""
