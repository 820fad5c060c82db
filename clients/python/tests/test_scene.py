"""Scenes without a daemon: what files and dictionaries become, the builder, the gallery."""

import json

import numpy as np
import pytest

import ropewalk
from ropewalk import SceneBuilder, gallery, messages, parse_scene
from ropewalk.scene import big_arrays, format_scene, to_message


def test_the_example_of_the_protocol_page_is_read():
    scene = parse_scene(
        """{"name": "arm", "gravity": [0, 0, -9.81], "solver": {"rigid": "DAE", "dae": {"integrator": "RK45"}},
            "bodies": [{"name": "link", "kind": "DYNAMIC", "mass": 1.0, "inertia": [0.1, 0.1, 0.02, 0, 0, 0],
                        "shapes": [{"capsule": {"radius": 0.05, "half_length": 0.45}}], "friction": 0.5}],
            "rods": [{"name": "cable", "straight": {"start": [1, 0, 1], "end": [1, 0, 0]}, "elements": 20, "order": 2,
                      "section": {"radius": 0.005}, "density": 1200, "young_modulus": 5e6}],
            "attachments": [{"name": "grip", "rod": "cable", "s": 0, "kind": "CLAMP", "body": "link"}]}"""
    )
    assert scene.solver.dae.integrator == 3
    assert list(scene.rods[0].section.radius) == [0.005]
    assert scene.attachments[0].WhichOneof("place") == "s"
    assert list(scene.bodies[0].inertia) == [0.1, 0.1, 0.02, 0, 0, 0]


def test_what_is_given_as_default_is_not_absent():
    scene = parse_scene('{"gravity": [0, 0, 0], "time_step": 0.001, "substeps": 1}')
    assert list(scene.gravity) == [0, 0, 0] and scene.HasField("time_step") and scene.HasField("substeps")
    assert not parse_scene("{}").HasField("time_step")


def test_empty_objects_and_nulls():
    scene = parse_scene('{"bodies": [{"name": "a", "shapes": [{"plane": {}}], "position": null}], "solver": {}}')
    assert scene.bodies[0].shapes[0].WhichOneof("geometry") == "plane"
    assert scene.HasField("solver") and len(scene.bodies[0].position) == 0


def test_protobuf_json_names_are_read_too():
    assert parse_scene('{"timeStep": 0.5}').time_step == 0.5


def test_large_arrays_keep_every_bit():
    numbers = np.random.default_rng(1).standard_normal(3000)
    scene = parse_scene(
        json.dumps({"rods": [{"graph": {"positions": numbers.tolist(), "segments": list(range(998))}}]})
    )
    assert np.array_equal(np.array(scene.rods[0].graph.positions), numbers)
    assert np.array_equal(np.array(scene.rods[0].graph.segments), np.arange(998))


def test_a_byte_order_mark_is_skipped():
    assert parse_scene(b'\xef\xbb\xbf{"name": "x"}').name == "x"


def test_files_round_trip(tmp_path):
    for name in gallery.names():
        scene = gallery.scene(name)
        scene.write(tmp_path / "scene.json")
        assert ropewalk.read_scene(tmp_path / "scene.json") == scene.message, name


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(ropewalk.NotFound) as caught:
        ropewalk.read_scene(tmp_path / "none.json")
    assert caught.value.path.endswith("none.json")


@pytest.mark.parametrize(
    "value",
    [{"name": "x"}, SceneBuilder("x"), messages.Scene(name="x")],
    ids=["dict", "builder", "message"],
)
def test_scenes_come_in_many_forms(value, tmp_path):
    assert to_message(value).name == "x"


def test_other_things_are_no_scenes():
    with pytest.raises(TypeError):
        to_message(3)


def test_the_builder_takes_arrays_of_any_shape():
    points = np.arange(12.0).reshape(4, 3)
    scene = SceneBuilder("x", rods="SCR").rod("r", graph={"positions": points, "segments": [[0, 1], [1, 2], [2, 3]]})
    graph = scene.message.rods[0].graph
    assert np.array_equal(np.array(graph.positions), points.ravel())
    assert list(graph.segments) == [0, 1, 1, 2, 2, 3]
    assert scene.message.solver.rods == 1


def test_the_builder_names_its_place_and_stays_as_it_was_after_a_fault():
    scene = SceneBuilder("x").body("a")
    with pytest.raises(ropewalk.InvalidArgument) as caught:
        scene.body("b", mas=1)
    assert caught.value.path == "bodies[1].mas" and "did you mean mass" in caught.value.text
    assert len(scene.message.bodies) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_in_python_must_be_finite_too(bad):
    for value in ([0, bad, 0], np.array([0, bad, 0])):
        with pytest.raises(ropewalk.InvalidArgument) as caught:
            SceneBuilder("x", gravity=value)
        assert caught.value.path == "gravity[1]"


def test_index_arrays_must_be_whole_and_in_range():
    for value, path in (([0, 1.5], "[1]"), ([0, -1], "[1]"), (np.array([2**32]), "[0]"), (["a"], "[0]")):
        with pytest.raises(ropewalk.InvalidArgument) as caught:
            SceneBuilder("x").rod("r", graph={"segments": value})
        assert caught.value.path == f"rods[0].graph.segments{path}"


def test_only_arrays_that_may_be_uploaded_are_found():
    scene = SceneBuilder("x").rod("r", graph={"positions": np.zeros(3000), "segments": np.arange(3000)})
    scene.rod("p", polyline={"positions": np.zeros(3000)}, linear_velocity=np.zeros(3000))
    scene.body("b", shapes=[{"mesh": {"vertices": np.zeros(3000), "triangles": np.zeros(3000, int)}}])
    found = [(owner.DESCRIPTOR.name, field.name, len(array)) for owner, field, array in big_arrays(scene.message, 1024)]
    assert found == [
        ("Mesh", "vertices", 3000),
        ("Mesh", "triangles", 3000),
        ("Graph", "positions", 3000),
        ("Graph", "segments", 3000),
        ("Polyline", "positions", 3000),
    ]


def test_a_formatted_scene_has_an_object_per_line():
    text = format_scene(gallery.scene("spring-pendulum"))
    assert len(text.splitlines()) < 15 and json.loads(text)["bodies"][0]["name"] == "bob"


@pytest.mark.parametrize("name", ["slinky", "tree"])
def test_reference_frames_turn_z_onto_the_segment(name):
    """In our frames d3 (z) is the tangent; in the source it is x."""
    rod = gallery.scene(name).message.rods[0]
    positions = np.array(rod.graph.positions).reshape(-1, 3)
    segments = np.array(rod.graph.segments).reshape(-1, 2)
    w, x, y, z = np.array(rod.graph.segment_rotations).reshape(-1, 4).T
    d3 = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)
    along = positions[segments[:, 1]] - positions[segments[:, 0]]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    assert np.abs(d3 - along).max() < 1e-5
    # At rest as created: q_a* q_b is the rest rotation, up to its sign.
    from ropewalk.gallery.reference import _conjugate, _product

    rotations = np.array(rod.graph.segment_rotations).reshape(-1, 4)
    bends = np.array(rod.graph.bends).reshape(-1, 2)
    rest = np.array(rod.graph.bend_rest_rotations).reshape(-1, 4)
    between = _product(_conjugate(rotations[bends[:, 0]]), rotations[bends[:, 1]])
    assert np.minimum(np.abs(between - rest).max(axis=1), np.abs(between + rest).max(axis=1)).max() < 2e-6


def test_an_unknown_exhibit_is_not_found():
    with pytest.raises(ropewalk.NotFound, match="swing"):
        gallery.scene("spagetti")
