"""Every bad scene is refused with its status and path, and leaves the session's world as it was."""

import json

import pytest

import bad_scenes
import ropewalk


@pytest.fixture(scope="module")
def loaded(daemon):
    with daemon.connect() as client, client.create_session() as session:
        session.load_scene(bad_scenes.BASE)
        session.step(3)
        yield session


@pytest.mark.parametrize("what, changes, status, path", bad_scenes.BAD, ids=[entry[0] for entry in bad_scenes.BAD])
def test_a_bad_scene_is_refused(what, changes, status, path, tmp_path, request):
    file = tmp_path / "scene.json"
    file.write_text(changes if isinstance(changes, str) else json.dumps(bad_scenes.spoiled(changes)))
    with pytest.raises(ropewalk.RopewalkError) as caught:
        message = ropewalk.read_scene(file)
        assert not what.startswith("file:"), "reading did not find it"
        session = request.getfixturevalue("loaded")
        before = session.query_hash()
        try:
            session.load_scene(message)
        finally:
            assert session.query_hash() == before, "a refused scene changed the world"
    found = caught.value.path.removeprefix(f"{tmp_path}/")
    assert (caught.value.status, found) == (status, path), caught.value
    assert caught.value.text and "\n" not in caught.value.text


def test_the_table_is_large_and_its_base_is_good(loaded):
    assert len(bad_scenes.BAD) >= 100
    assert len({entry[0] for entry in bad_scenes.BAD}) == len(bad_scenes.BAD)
    assert loaded.step_now == 3
