"""LeaderWorkerSet, played: its published definition and a controller that makes its groups."""

from world.groups.controller import GroupController, definition

__all__ = ["GroupController", "definition"]
