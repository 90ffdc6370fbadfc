"""The node agent: tells what this node's GPUs offer, and nothing else."""

from shipfitter.agent.command import main

__all__ = ["main"]
