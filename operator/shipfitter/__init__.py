"""Shipfitter fits LLM serving onto the GPUs a Kubernetes cluster really has."""
