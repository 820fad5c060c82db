"""Ropewalk: a client for the physics server, its command line and its gallery of scenes.

    import ropewalk
    with ropewalk.Daemon() as daemon, daemon.connect() as client, client.create_session() as session:
        session.load_scene("scene.json")
        session.step(1000)
"""

from ._schema import messages
from .errors import RopewalkError
from .scene import SceneBuilder, parse_scene, read_scene, write_scene

__version__ = "0.1.0"
__all__ = ["RopewalkError", "SceneBuilder", "messages", "parse_scene", "read_scene", "write_scene"]
