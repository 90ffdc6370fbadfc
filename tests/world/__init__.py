"""The test world: real programs wherever a process can be one, emulated hardware."""
