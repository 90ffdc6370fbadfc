"""The Kubernetes API: the only package that imports `kubernetes`."""
