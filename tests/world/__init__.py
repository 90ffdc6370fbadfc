"""The test world: real programs where processes can be real, emulated hardware where there is none."""
