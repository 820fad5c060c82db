"""Ropewalk: a client for the physics server, its command line and its gallery of scenes.

import ropewalk

with ropewalk.Daemon() as daemon, daemon.connect() as client, client.create_session() as session:
    session.load_scene("scene.json")
    position = session.observe("body/*/position")
    session.advance(steps=1000, observe=position)
    print(position.as_dict())
"""

from ._schema import messages
from .client import Client, Limits, connect
from .connection import Pending
from .daemon import Daemon
from .errors import (
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Faulted,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    RopewalkError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from .observation import Actuation, Entry, Observation
from .scene import SceneBuilder, parse_scene, read_scene, write_scene
from .session import Energy, Fault, SceneIds, Session, SessionInfo
from .stream import Frame, Place, Subscription

__version__ = "0.1.0"
__all__ = [
    "Actuation",
    "AlreadyExists",
    "Cancelled",
    "Client",
    "Daemon",
    "DataLoss",
    "DeadlineExceeded",
    "Energy",
    "Entry",
    "FailedPrecondition",
    "Fault",
    "Faulted",
    "Frame",
    "Internal",
    "InvalidArgument",
    "Limits",
    "NotFound",
    "Observation",
    "OutOfRange",
    "Pending",
    "PermissionDenied",
    "Place",
    "ResourceExhausted",
    "RopewalkError",
    "SceneBuilder",
    "SceneIds",
    "Session",
    "SessionInfo",
    "Subscription",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "connect",
    "messages",
    "parse_scene",
    "read_scene",
    "write_scene",
]
