"""A session: one world in the daemon, and everything that can be done with it."""

from __future__ import annotations

import contextlib
import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import scene as scenes
from ._fill import varint
from ._schema import enum_numbers, messages
from .connection import KIND_REQUEST, Pending
from .errors import RopewalkError
from .observation import Actuation, Observation
from .stream import Subscription

if TYPE_CHECKING:
    from .client import Client

#: A name or an id.
RefLike = Union[str, int]
Vector = Union[Sequence[float], np.ndarray]

_STATE_NAMES = {number: name for name, number in enum_numbers("SessionState.Kind").items()}
_KIND_NUMBERS = enum_numbers("ObjectRef.Kind")

_FIXED64 = struct.Struct("<Q")
_TAG_REQUEST_ID = b"\x08"
_TAG_SESSION = b"\x11"
_TAG_ADVANCE = varint(76 << 3 | 2)


def _ref(object: RefLike) -> dict[str, Any]:
    return {"name": object} if isinstance(object, str) else {"id": object}


def _object_ref(text: str) -> dict[str, Any]:
    kind, _, name = text.partition("/")
    if kind.upper() not in _KIND_NUMBERS or not name:
        raise ValueError(f'"{text}" is not of the form body/NAME or rod/NAME')
    return {"kind": kind.upper(), "name": name}


def numbers(field: Any) -> np.ndarray:
    """A packed field of doubles as an array; small ones by the way that has the smaller start-up cost."""
    count = len(field)
    return np.fromiter(field, np.float64, count) if count < 64 else np.asarray(field)


@dataclasses.dataclass(frozen=True)
class Fault:
    """Where and why a simulation failed; the state kept is that before `step`."""

    step: int
    object: str
    stage: str
    reason: str


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """A session as seen from outside."""

    id: int
    name: str
    state: str  # READY, RUNNING, FAULTED, CLOSED
    step: int
    time: float  # s, simulated
    epoch: int
    clients: int
    controllers: int
    time_step: float  # s
    memory_bytes: int
    fault: Fault | None

    @classmethod
    def of(cls, info: Any) -> SessionInfo:
        """From the message."""
        fault = None
        if info.HasField("fault"):
            fault = Fault(info.fault.step, info.fault.object, info.fault.stage, info.fault.reason)
        return cls(
            info.id, info.name, _STATE_NAMES.get(info.state, str(info.state)), info.step, info.time, info.epoch,
            info.clients, info.controllers, info.time_step, info.memory_bytes, fault,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class SceneIds:
    """Ids of a loaded scene's objects, by name, per kind."""

    bodies: dict[str, int]
    joints: dict[str, int]
    couplings: dict[str, int]
    rods: dict[str, int]
    attachments: dict[str, int]
    forces: dict[str, int]
    inputs: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Energy:
    """Energies in J; momenta in kg m/s and kg m^2/s, about the world's origin."""

    kinetic: float
    gravity: float
    elastic: float
    total: float
    linear_momentum: np.ndarray
    angular_momentum: np.ndarray


class Session:
    """A world in the daemon, made by `Client.create_session`, `Client.attach_session` or `Session.fork`.

    As a context manager it is closed at the end (left, when it was only attached to). `step_now` and `time` are those of
    the last answer. Objects are named, or given by the ids that create_* return.
    """

    def __init__(self, client: Client, info: Any, owned: bool) -> None:
        self.client = client
        self.id: int = info.id
        self.name: str = info.name
        #: As the session was found.
        self.info = SessionInfo.of(info)
        #: Step and simulated time [s] after the last command.
        self.step_now: int = info.step
        self.time: float = info.time
        self._owned = owned
        self._deferred: list[Pending] | None = None
        self._address = _TAG_SESSION + _FIXED64.pack(self.id)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.client.closed:
            with contextlib.suppress(RopewalkError):
                self.close() if self._owned else self.detach()

    def __repr__(self) -> str:
        return f"<Session {self.name} at step {self.step_now}>"

    # --- the ways a command can go ---

    def submit(
        self,
        command: str,
        fields: Mapping[str, Any] | None = None,
        *,
        deadline_s: float | None = None,
        expected_step: int | None = None,
    ) -> Pending:
        """Sends a command, named as in the schema's Request, without waiting; `result()` of what comes back waits.

        deadline_s     the daemon gives up after that time [s], between steps
        expected_step  refused (FailedPrecondition) when the session is at another step: makes a retry safe
        """
        request = self.client.request(command, fields)
        request.session = self.id
        if deadline_s is not None:
            request.deadline_ms = max(1, round(deadline_s * 1000))
        if expected_step is not None:
            request.expected_step = expected_step
        pending = self.client.send(request)
        pending.on_response = self._note
        return pending

    def call(
        self,
        command: str,
        fields: Mapping[str, Any] | None = None,
        *,
        deadline_s: float | None = None,
        expected_step: int | None = None,
    ) -> Any:
        """Sends a command, waits, and returns its Response. Inside `pipelined()` it returns None at once."""
        pending = self.submit(command, fields, deadline_s=deadline_s, expected_step=expected_step)
        if self._deferred is not None:
            self._deferred.append(pending)
            return None
        return pending.result()

    @contextlib.contextmanager
    def pipelined(self) -> Iterator[None]:
        """Commands inside do not wait for their answers; the first failure of them is raised at the end.

        For what only changes the world: set_*, apply_wrench, remove_*, step. Commands with results wait as always.
        """
        if self._deferred is not None:
            yield  # Nested: the outermost collects.
            return
        opened: list[Pending] = []
        self._deferred = opened
        try:
            yield
        finally:
            self._deferred = None
        first: RopewalkError | None = None
        for pending in opened:
            try:
                pending.result()
            except RopewalkError as error:
                first = first or error
        if first is not None:
            raise first

    def _ask(self, command: str, fields: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """A command whose result is wanted, also inside pipelined()."""
        return self.submit(command, fields, **options).result()

    def _note(self, response: Any) -> Any:
        if response.HasField("step"):
            self.step_now = response.step
        if response.HasField("time"):
            self.time = response.time
        return response

    # --- life ---

    def close(self) -> None:
        """Ends the session for everyone."""
        self._ask("close_session")

    def detach(self) -> None:
        """Leaves the session; it lives on for its time to live."""
        self._ask("detach_session")

    def refresh(self) -> SessionInfo:
        """The session as it is now."""
        for info in self.client.sessions(self.name):
            if info.id == self.id:
                self.info, self.step_now, self.time = info, info.step, info.time
        return self.info

    # --- building ---

    def load_scene(self, scene: scenes.SceneLike, *, deadline_s: float | None = None) -> SceneIds:
        """Replaces the world. Takes a dict, the path of a scene file, a SceneBuilder or a Scene message.

        Arrays that do not fit into one message are uploaded first. Raises RopewalkError with the path in the scene, such as
        `rods[3].young_modulus`.
        """
        message = scenes.to_message(scene)
        blobs: list[int] = []
        if message.ByteSize() + 1024 > self.client.limits.max_message:
            message, blobs = self._with_uploads(message)
        request = messages.Request(session=self.id)
        request.load_scene.scene.CopyFrom(message)
        if deadline_s is not None:
            request.deadline_ms = max(1, round(deadline_s * 1000))
        try:
            response = self._note(self.client.send(request).result())
        finally:
            for blob in blobs:
                with contextlib.suppress(RopewalkError):
                    self.client.release_blob(blob)
        result = response.load_scene
        return SceneIds(
            *(
                dict(zip([item.name for item in getattr(message, kind)], getattr(result, kind)))
                for kind in ("bodies", "joints", "couplings", "rods", "attachments", "forces", "inputs")
            )
        )

    def _with_uploads(self, message: Any) -> tuple[Any, list[int]]:
        """A copy of the scene whose big arrays were uploaded."""
        copy = messages.Scene()
        copy.CopyFrom(message)
        found = scenes.big_arrays(copy, 1024)
        if not found:
            return copy, []
        blob = self.client.upload(b"".join(array.tobytes() for _, _, array in found))
        offset = 0
        for owner, field, array in found:
            owner.ClearField(field.name)
            owner.blobs.add(field=field.name, blob=blob, offset=offset, count=array.size)
            offset += array.nbytes
        return copy, [blob]

    def get_scene(self, current_state: bool = False) -> Any:
        """The Scene message: as loaded and edited, or with the present state written into it."""
        return self._ask("get_scene", {"current_state": current_state}).get_scene.scene

    def _create(self, kind: str, fields: Mapping[str, Any]) -> int:
        return int(self._ask(f"create_{kind}", {kind: fields}).create.id)

    def create_body(self, name: str, **fields: Any) -> int:
        """Adds a rigid body and returns its id. Fields are those of the schema's Body."""
        return self._create("body", {"name": name, **fields})

    def create_joint(self, name: str, **fields: Any) -> int:
        """Adds a joint and returns its id."""
        return self._create("joint", {"name": name, **fields})

    def create_coupling(self, name: str, **fields: Any) -> int:
        """Adds a gear between two joint coordinates and returns its id."""
        return self._create("coupling", {"name": name, **fields})

    def create_rod(self, name: str, **fields: Any) -> int:
        """Adds a rod and returns its id."""
        return self._create("rod", {"name": name, **fields})

    def create_attachment(self, name: str, **fields: Any) -> int:
        """Adds an attachment and returns its id."""
        return self._create("attachment", {"name": name, **fields})

    def create_force(self, name: str, **fields: Any) -> int:
        """Adds a lasting force and returns its id."""
        return self._create("force", {"name": name, **fields})

    def create_input(self, name: str, **fields: Any) -> int:
        """Adds an input and returns its id."""
        return self._create("input", {"name": name, **fields})

    def _remove(self, kind: str, object: RefLike, cascade: bool) -> None:
        self.call(f"remove_{kind}", {"object": _ref(object), "cascade": cascade})

    def remove_body(self, body: RefLike, cascade: bool = False) -> None:
        """Removes a body; with `cascade` also what refers to it, else FailedPrecondition names that."""
        self._remove("body", body, cascade)

    def remove_joint(self, joint: RefLike, cascade: bool = False) -> None:
        """Removes a joint."""
        self._remove("joint", joint, cascade)

    def remove_coupling(self, coupling: RefLike, cascade: bool = False) -> None:
        """Removes a coupling."""
        self._remove("coupling", coupling, cascade)

    def remove_rod(self, rod: RefLike, cascade: bool = False) -> None:
        """Removes a rod."""
        self._remove("rod", rod, cascade)

    def remove_attachment(self, attachment: RefLike, cascade: bool = False) -> None:
        """Removes an attachment."""
        self._remove("attachment", attachment, cascade)

    def remove_force(self, force: RefLike, cascade: bool = False) -> None:
        """Removes a force."""
        self._remove("force", force, cascade)

    def remove_input(self, input: RefLike, cascade: bool = False) -> None:
        """Removes an input."""
        self._remove("input", input, cascade)

    # --- setting; None leaves a part as it is ---

    def set_pose(self, body: RefLike, position: Vector | None = None, rotation: Vector | None = None) -> None:
        """Places a body: its frame's origin [m, world] and rotation (w, x, y, z)."""
        self.call("set_pose", {"body": _ref(body), "position": position, "rotation": rotation})

    def set_velocity(self, body: RefLike, linear: Vector | None = None, angular: Vector | None = None) -> None:
        """Sets velocities: linear [m/s, world, of the origin], angular [rad/s, BODY axes]."""
        self.call("set_velocity", {"body": _ref(body), "linear": linear, "angular": angular})

    def set_joint_state(self, joint: RefLike, coordinate: Vector | None = None, rate: Vector | None = None) -> None:
        """Sets a joint's coordinates and rates."""
        self.call("set_joint_state", {"joint": _ref(joint), "coordinate": coordinate, "rate": rate})

    def set_motor(self, joint: RefLike, **fields: Any) -> None:
        """Changes a motor: mode, target, stiffness, damping, max_effort."""
        self.call("set_motor", {"joint": _ref(joint), **fields})

    def set_attachment_target(
        self, attachment: RefLike, position: Vector | None = None, rotation: Vector | None = None
    ) -> None:
        """Moves what an attachment holds its node to, in its body's (the world's) frame."""
        self.call("set_attachment_target", {"attachment": _ref(attachment), "position": position, "rotation": rotation})

    def set_gravity(self, gravity: Vector) -> None:
        """Gravity [m/s^2, world]."""
        self.call("set_gravity", {"gravity": gravity})

    def set_wind(self, wind: Vector) -> None:
        """Air velocity [m/s, world]."""
        self.call("set_wind", {"wind": wind})

    def set_time_step(self, time_step: float | None = None, substeps: int | None = None) -> None:
        """Time step [s] and substeps."""
        self.call("set_time_step", {"time_step": time_step, "substeps": substeps})

    def set_solver(self, **fields: Any) -> None:
        """Solver settings (not the methods): set_solver(scr={"iterations": 20})."""
        self.call("set_solver", {"solver": fields})

    def set_body_properties(self, body: RefLike, **fields: Any) -> None:
        """Mass, inertia, center_of_mass, friction, restitution."""
        self.call("set_body_properties", {"body": _ref(body), **fields})

    def set_joint_properties(self, joint: RefLike, **fields: Any) -> None:
        """Compliance, damping, limits."""
        self.call("set_joint_properties", {"joint": _ref(joint), **fields})

    def set_rod_properties(self, rod: RefLike, **fields: Any) -> None:
        """Material and rest shape: density, young_modulus, rest_curvature, rest_length, damping, ..."""
        self.call("set_rod_properties", {"rod": _ref(rod), **fields})

    def set_force(self, force: RefLike, **fields: Any) -> None:
        """Changes a lasting force; only the fields of its own law count."""
        self.call("set_force", {"force": _ref(force), **fields})

    def apply_wrench(
        self,
        body: RefLike | None = None,
        *,
        rod: RefLike | None = None,
        s: float | None = None,
        node: int | None = None,
        force: Vector | None = None,
        torque: Vector | None = None,
        position: Vector | None = None,
        frame: str = "WORLD",
        steps: int = 1,
    ) -> None:
        """A force [N] and torque [N m] on a body, or on a rod's point, for some steps (0 = until changed)."""
        fields: dict[str, Any] = {
            "force": force,
            "torque": torque,
            "position": position,
            "frame": frame,
            "steps": steps,
        }
        if body is not None:
            fields["body"] = _ref(body)
        if rod is not None:
            fields["rod"] = _ref(rod)
        self.call("apply_wrench", {**fields, "s": s, "node": node})

    # --- time ---

    def step(self, count: int = 1, *, deadline_s: float | None = None, expected_step: int | None = None) -> None:
        """Does so many steps."""
        self.call("step", {"count": count}, deadline_s=deadline_s, expected_step=expected_step)

    def step_until(self, time: float, *, deadline_s: float | None = None, expected_step: int | None = None) -> None:
        """Steps until the simulated time [s], rounded to the nearest step."""
        self.call("step", {"until": time}, deadline_s=deadline_s, expected_step=expected_step)

    def run(self, ratio: float = 1.0, until: float | None = None) -> None:
        """Runs paced by the wall clock (`ratio` simulated seconds per second) until `pause`, or until a simulated time."""
        request = messages.Request(session=self.id)
        request.run.ratio = ratio  # May be infinite, which no scene may.
        if until is not None:
            request.run.until = until
        self._note(self.client.send(request).result())

    def pause(self) -> int:
        """Ends a run; returns the steps it lost to lateness."""
        return int(self._ask("pause").pause.lost_steps)

    # --- reading and the control loop ---

    def observe(self, *signals: str) -> Observation:
        """Prepares reading of signals (names or globs, in row order); holds the present values already."""
        return Observation(self, self._ask("observe", {"signals": list(signals)}).observe)

    def actuate(self, *targets: str) -> Actuation:
        """Prepares writing of inputs ("joint/NAME", "wind", "body/NAME/wrench", ...) for `advance`."""
        return Actuation(self, self._ask("actuate", {"targets": list(targets)}).actuate)

    def advance(
        self,
        *,
        steps: int = 1,
        observe: Observation | None = None,
        inputs: Actuation | np.ndarray | None = None,
        actuate: Actuation | None = None,
        every: int = 0,
    ) -> np.ndarray | None:
        """The control loop's call: sets inputs, steps, reads signals, in one round trip.

        inputs   an Actuation (its row is sent), or an array [width] or [steps x width] for `actuate`
        every    0: a row after the last step; k: a row after every k steps
        Returns the row [width], or rows [n x width] with `every`; None without `observe`. The last row is also in
        `observe.values`.
        """
        return self.submit_advance(steps, observe, inputs, actuate, every)()

    def submit_advance(
        self,
        steps: int = 1,
        observe: Observation | None = None,
        inputs: Actuation | np.ndarray | None = None,
        actuate: Actuation | None = None,
        every: int = 0,
    ) -> Callable[[], np.ndarray | None]:
        """As `advance`, without waiting: calling what comes back waits and gives the rows."""
        connection = self.client.connection
        pending = connection.open_request()
        # Encoded by hand: building a message from Python costs more than the whole round trip should.
        body = b""
        if inputs is not None:
            if isinstance(inputs, Actuation):
                actuate, inputs = inputs, inputs.values
            if actuate is None:
                raise ValueError("inputs given as an array need `actuate`")
            block = np.ascontiguousarray(inputs, dtype="<f8").tobytes()
            body = b"\x08" + varint(actuate.handle) + b"\x12" + varint(len(block)) + block
        if steps != 1:
            body += b"\x18" + varint(steps)
        if observe is not None:
            body += b"\x20" + varint(observe.handle)
        if every:
            body += b"\x28" + varint(every)
        connection.send(
            KIND_REQUEST,
            _TAG_REQUEST_ID + varint(pending.request_id) + self._address + _TAG_ADVANCE + varint(len(body)) + body,
        )

        def finish() -> np.ndarray | None:
            result = self._note(pending.result()).advance
            if observe is None:
                return None
            rows = numbers(result.values)
            if not every:
                observe.values = rows
                return rows
            rows = rows.reshape(-1, observe.width)
            if len(rows):
                observe.values = rows[-1]
            return rows

        return finish

    # --- questions ---

    def query(self, question: str, fields: Mapping[str, Any] | None = None) -> Any:
        """The answer message of a Query, named as in the schema: query("contacts")."""
        return getattr(self._ask("query", {question: fields or {}}).query, question)

    def query_signals(self, *signals: str) -> dict[str, np.ndarray]:
        """Signals by name, once."""
        answer = self.query("signals", {"signals": list(signals)})
        values = np.array(answer.values, dtype=np.float64)
        ends = np.cumsum(np.array(answer.widths, dtype=np.int64))
        return dict(zip(answer.names, np.split(values, ends[:-1])))

    def query_energy(self) -> Energy:
        """Energies and momenta."""
        answer = self.query("energy")
        return Energy(
            answer.kinetic, answer.gravity, answer.elastic, answer.total,
            np.array(answer.linear_momentum), np.array(answer.angular_momentum),
        )  # fmt: skip

    def query_hash(self) -> int:
        """The state's hash, 64 bits."""
        return int(self.query("hash").hash)

    def query_contacts(self, body: RefLike | None = None) -> dict[str, np.ndarray]:
        """Contacts: ids a and b [n], positions, normals, forces [n x 3], depths [n]."""
        answer = self.query("contacts", {"body": _ref(body)} if body is not None else {})
        return {
            "a": np.array(answer.a, dtype=np.uint64),
            "b": np.array(answer.b, dtype=np.uint64),
            "positions": np.array(answer.positions).reshape(-1, 3),
            "normals": np.array(answer.normals).reshape(-1, 3),
            "depths": np.array(answer.depths),
            "forces": np.array(answer.forces).reshape(-1, 3),
        }

    def query_ray_cast(
        self, origins: Vector, directions: Vector, max_distance: float = 0.0, mask: int = 0
    ) -> dict[str, np.ndarray]:
        """Hits of rays [n x 3]: ids [n] (0 = none), distances [n], positions and normals [n x 3]."""
        answer = self.query(
            "ray_cast",
            {"origins": origins, "directions": directions, "max_distance": max_distance, "mask": mask},
        )
        return {
            "ids": np.array(answer.ids, dtype=np.uint64),
            "distances": np.array(answer.distances),
            "positions": np.array(answer.positions).reshape(-1, 3),
            "normals": np.array(answer.normals).reshape(-1, 3),
        }

    def query_closest_points(
        self, a: str, b: str, max_distance: float = 0.0
    ) -> tuple[float, np.ndarray, np.ndarray] | None:
        """Distance and closest points of "body/NAME" or "rod/NAME" and another; None beyond max_distance."""
        answer = self.query("closest_points", {"a": _object_ref(a), "b": _object_ref(b), "max_distance": max_distance})
        if not answer.found:
            return None
        return answer.distance, np.array(answer.position_a), np.array(answer.position_b)

    def query_jacobian(self, body: RefLike, position: Vector | None = None) -> tuple[list[str], np.ndarray]:
        """Joint rates' names and the Jacobian [6 x rates] of a body's point."""
        answer = self.query("jacobian", {"body": _ref(body), "position": position})
        return list(answer.joints), np.array(answer.rows).reshape(6, -1)

    def query_mass_matrix(self) -> tuple[list[str], np.ndarray]:
        """Joint rates' names and the mass matrix [rates x rates]."""
        answer = self.query("mass_matrix")
        count = len(answer.joints)
        return list(answer.joints), np.array(answer.rows).reshape(count, count)

    def query_inverse_dynamics(self, accelerations: Vector) -> np.ndarray:
        """Efforts that give these accelerations."""
        return np.array(self.query("inverse_dynamics", {"accelerations": accelerations}).values)

    def query_forward_dynamics(self, efforts: Vector) -> np.ndarray:
        """Accelerations that these efforts give."""
        return np.array(self.query("forward_dynamics", {"efforts": efforts}).values)

    # --- streams ---

    def subscribe(
        self,
        *objects: str,
        fields: Sequence[str] = ("POSITION", "ROTATION"),
        node_stride: int = 1,
        every_steps: int | None = None,
        every_s: float | None = None,
        quantized: bool = False,
        position_bound: float | None = None,
        rotation_bound: float | None = None,
        byte_budget: int = 0,
        back_pressure: bool = False,
        key_interval: int | None = None,
        queue_limit: int | None = 4096,
    ) -> Subscription:
        """State frames of bodies and rods (globs; none = all), to be iterated over.

        every_steps, every_s  rate; neither: 60 frames per simulated second
        quantized             smaller frames within position_bound [m] and rotation_bound [rad]
        back_pressure         the session waits for this reader rather than dropping frames
        queue_limit           frames kept here for a slow iteration before the oldest are dropped; None = no limit
        """
        fields_of_request: dict[str, Any] = {
            "objects": list(objects),
            "fields": list(fields),
            "node_stride": node_stride,
            "every_steps": every_steps,
            "every_s": every_s,
            "mode": "QUANTIZED" if quantized else "LOSSLESS",
            "position_bound": position_bound,
            "rotation_bound": rotation_bound,
            "byte_budget": byte_budget,
            "back_pressure": back_pressure,
            "key_interval": key_interval,
        }
        return Subscription(self, self._ask("subscribe", fields_of_request).subscribe, queue_limit)

    # --- state ---

    def snapshot(self) -> bytes:
        """The whole state as portable, checksummed bytes."""
        return bytes(self._ask("snapshot").snapshot.data)

    def keep_snapshot(self) -> int:
        """Keeps the state on the daemon and returns its id, for `restore`."""
        return int(self._ask("snapshot", {"keep": True}).snapshot.snapshot)

    def drop_snapshot(self, snapshot: int) -> None:
        """Drops a kept state."""
        self.call("drop_snapshot", {"snapshot": snapshot})

    def restore(self, snapshot: bytes | int) -> None:
        """Puts a state back: bytes of `snapshot`, or the id of a kept one."""
        if isinstance(snapshot, int):
            self.call("restore", {"snapshot": snapshot})
        elif len(snapshot) + 1024 <= self.client.limits.max_message:
            self.call("restore", {"data": snapshot})
        else:
            blob = self.client.upload(snapshot)
            try:
                self._ask("restore", {"blob": blob})
            finally:
                with contextlib.suppress(RopewalkError):
                    self.client.release_blob(blob)

    def fork(
        self, count: int = 1, names: Sequence[str] | None = None, ttl_detached_s: float | None = None
    ) -> list[Session]:
        """New sessions with this one's state; they go on bit for bit as this one would."""
        fields = {"names": names, "count": len(names) if names else count, "ttl_detached_s": ttl_detached_s}
        response = self._ask("fork", fields)
        return [Session(self.client, info, owned=True) for info in response.fork.sessions]

    def stats(self) -> dict[str, float]:
        """The session's counters by name."""
        return {counter.name: counter.value for counter in self._ask("stats").stats.counters}
