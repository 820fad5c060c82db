"""The gallery's motions are those of mechanics, and of the authors of Stable Cosserat Rods.

data/*_motion.npz: positions after 1 and 10 frames of 1/30 s and energies of frames 0 to 10, single precision, exported
from the implementation of the method's authors (J. Hsu, T. Wang, K. Wu, C. Yuksel: Stable Cosserat Rods, SIGGRAPH 2025).
"""

import pathlib

import numpy as np
import pytest

from ropewalk import gallery

DATA = pathlib.Path(__file__).parent / "data"


@pytest.mark.parametrize(
    "name, steps_per_frame, error_1, error_10, energy",
    [
        # The largest error [m] after 1 and 10 frames; the motion is 5 mm and 0.5 m (slinky), 6 mm and 0.8 m (tree) then.
        # The tree's bends are 1e4 times stiffer than what single precision resolves of its positions.
        ("slinky", 112, 3e-6, 6e-5, 5e-4),
        ("tree", 34, 4e-5, 2e-3, 5e-3),
    ],
)
def test_slinky_and_tree_follow_the_authors_motion(session, name, steps_per_frame, error_1, error_10, energy):
    with np.load(DATA / f"{name}_motion.npz") as data:
        reference = dict(data)
    session.load_scene(gallery.scene(name))
    observation = session.observe("world/energy/kinetic", "world/energy/elastic")
    with session.subscribe(
        every_steps=steps_per_frame, fields=["POSITION"], queue_limit=None, back_pressure=True
    ) as frames:
        rows = session.advance(steps=10 * steps_per_frame, every=steps_per_frame, observe=observation)
        positions = {frame.step // steps_per_frame: frame.position for frame in frames.available()}
    assert np.abs(positions[1] - reference["positions_1"]).max() < error_1
    assert np.abs(positions[10] - reference["positions_10"]).max() < error_10
    for frame in (1, 3, 10):
        assert rows[frame - 1] == pytest.approx([reference["kinetic"][frame], reference["elastic"][frame]], rel=energy)


def test_the_free_top_precesses_at_its_closed_form_rate(session):
    """In the body its transverse spin turns at (I1 - I3) / I1 w3, about the axis (Euler)."""
    session.load_scene(gallery.scene("free-top"))
    observation = session.observe("body/top/angular_velocity", "world/momentum/angular", "world/energy/total")
    rows = session.advance(steps=3000, every=1, observe=observation)
    start = observation.session.get_scene().bodies[0]
    i1, i3 = start.inertia[0], start.inertia[2]
    phase = np.unwrap(np.arctan2(rows[:, 1], rows[:, 0]))
    rate = np.polyfit(1e-3 * np.arange(1, 3001), phase, 1)[0]
    assert abs(rate) == pytest.approx(abs((i1 - i3) / i1 * 3.0), rel=1e-5)
    assert np.ptp(rows[:, 2]) < 1e-12 and np.ptp(rows[:, 6]) < 1e-12
    assert np.abs(np.ptp(rows[:, 3:6], axis=0)).max() < 1e-12


def test_the_spring_pendulum_keeps_its_energy(session):
    session.load_scene(gallery.scene("spring-pendulum"))
    observation = session.observe("world/energy/total")
    rows = session.advance(steps=8000, every=10, observe=observation)
    assert np.ptp(rows) < 1e-4 * 7.2441


def test_the_net_is_lifted_by_the_gust_and_hangs_again(session):
    session.load_scene(gallery.scene("rod-net"))
    middle = session.observe("rod/net/node/237/position")  # In the lowest row.
    at_rest = middle.values.copy()
    heights = [session.advance(steps=500, observe=middle)[2] for _ in range(4)]
    assert max(heights) > at_rest[2] + 0.8 and middle.values[2] < at_rest[2] + 0.4


def test_the_triple_pendulum_stays_together_and_gains_nothing(session):
    session.load_scene(gallery.scene("triple-pendulum"))
    observation = session.observe(*(f"joint/pin{k}/violation" for k in range(3)), "world/energy/total")
    rows = session.advance(steps=20000, every=100, observe=observation)
    assert rows[:, :6].max() < 1e-6
    assert rows[:, 6].max() < rows[0, 6] + 1e-3 * abs(rows[0, 6])


def test_the_robot_obeys_the_identities_of_its_mechanism_and_carries_its_weight(session):
    """p_y = -r u_y, p_x = r/2 (u_x - v_y), u_y = v_x (Lee and Shah 1988); the feet carry weight and what accelerates."""
    session.load_scene(gallery.scene("robot-3rps"))
    feet = [f"joint/foot{k}/reaction_force" for k in range(3)]
    observation = session.observe("body/platform/position", "body/platform/rotation", "world/momentum/linear", *feet)
    rows = session.advance(steps=2000, every=1, observe=observation)
    x, y, z, w, a, b, c = rows[:, :7].T
    u_x, u_y = 1 - 2 * (b * b + c * c), 2 * (a * b + w * c)
    v_x, v_y = 2 * (a * b - w * c), 1 - 2 * (a * a + c * c)
    assert np.abs(u_y - v_x).max() < 1e-6
    assert np.abs(y + 0.2 * u_y).max() < 1e-6 and np.abs(x - 0.1 * (u_x - v_y)).max() < 1e-6
    assert np.ptp(z) > 0.02 or np.abs(2 * (w * a)).max() > 0.1  # it does move
    push = rows[1:, 10:].reshape(-1, 3, 3).sum(axis=1)
    gain = np.diff(rows[:, 7:10], axis=0) / 1e-3 + [0, 0, 9.81 * 7.5]
    assert np.abs(push - gain).max() < 1e-3 * 9.81 * 7.5


def test_cantilevers_of_all_discretisations_swing_together(session):
    session.load_scene(gallery.scene("cantilevers"))
    names = ("chain", "linear", "quadratic", "cubic")
    rows = session.advance(
        steps=500, every=10, observe=session.observe(*(f"rod/{name}/at/1/position" for name in names))
    )
    heights = rows[:, 2::3]
    assert heights.min() < -0.6
    apart = np.abs(heights - heights[:, 3:]).max(axis=0)
    assert 1e-2 > apart[0] > apart[1] > apart[2]


def test_the_spring_pushes_with_its_stiffness_and_buckles(session):
    """239.3 N/m (Wahl, open coils, ends held); sideways beyond 0.38 m (Haringx)."""
    session.load_scene(gallery.scene("helical-spring"))
    observation = session.observe("attachment/head/force", "rod/spring/at/0.5/position")
    rows = session.advance(steps=2250, every=25, observe=observation)
    pressed = 0.1 * np.arange(0.05, 4.51, 0.05).clip(max=4)
    middle = np.abs(pressed - 0.2).argmin()
    assert -rows[middle, 2] == pytest.approx(239.3 * pressed[middle], rel=0.03)  # it still rings
    aside = np.linalg.norm(rows[:, 3:5] - rows[0, 3:5], axis=1)
    assert aside[pressed < 0.3].max() < 0.005 and aside[-1] > 0.03


def test_the_plectoneme_coils_up(session):
    session.load_scene(gallery.scene("plectoneme"))
    places = session.observe(*(f"rod/rod/at/{s:.2f}/position" for s in np.linspace(0, 1, 41)))
    rows = session.advance(steps=4250, every=250, observe=places).reshape(-1, 41, 3)

    def nearest(points):
        between = np.linalg.norm(points[:, None] - points[None], axis=2)
        return between[np.triu_indices(41, 8)].min()

    assert nearest(rows[7]) > 1.5  # an arch
    assert nearest(rows[-1]) < 1.2 and nearest(rows[-1]) > 0.1  # a loop that closes, thickness not yet reached


def test_the_cable_follows_the_arm(session):
    session.load_scene(gallery.scene("arm"))
    observation = session.observe("rod/cable/at/1/position", "body/link2/position", "body/link2/rotation")
    rows = session.advance(steps=1000, every=10, observe=observation)
    # The cable's end keeps its place in the hand.
    w, v = rows[:, 6], rows[:, 7:10]
    arm = rows[:, :3] - rows[:, 3:6]
    turned = arm - 2 * w[:, None] * np.cross(v, arm) + 2 * np.cross(v, np.cross(v, arm))
    assert np.abs(turned - turned[0]).max() < 1e-9
    assert np.ptp(rows[:, 0]) > 0.9
