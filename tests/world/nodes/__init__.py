"""Emulated nodes: registered with the API server, and running their pods as local processes."""

from world.nodes.api import Api
from world.nodes.emulator import Emulator
from world.nodes.node import NodeSpec
from world.nodes.programs import Image, Program, ProgramMap
from world.nodes.runtime import Timing

__all__ = ["Api", "Emulator", "Image", "NodeSpec", "Program", "ProgramMap", "Timing"]
