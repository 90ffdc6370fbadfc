"""The sizing: pure computation, standard library only."""
