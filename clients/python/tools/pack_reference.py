"""Packs one scene of the Stable Cosserat Rods reference data into the gallery's npz.

    python pack_reference.py FOLDER OUT.npz

FOLDER has verts.csv (vertex, x, y, z, inverse mass), segs.csv (segment, tail, head, k_s or minus k_s where the segment is
held, rest length, orientation x y z w with the tangent along x), angles.csv (bend, segments, k_b, rest rotation) and
meta.csv. The source is the motion and set-up exported from the implementation of the method's authors (J. Hsu, T. Wang,
K. Wu, C. Yuksel: Stable Cosserat Rods, SIGGRAPH 2025). Numbers are single precision there, so they are here.
"""

import csv
import pathlib
import sys

import numpy as np


def pack(folder: pathlib.Path, out: pathlib.Path) -> None:
    def table(name: str) -> np.ndarray:
        return np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1)

    vertices, segments, bends = table("verts"), table("segs"), table("angles")
    with open(folder / "meta.csv", newline="") as file:
        meta = {row[0]: float(row[1]) for row in list(csv.reader(file))[1:]}
    np.savez_compressed(
        out,
        positions=vertices[:, 1:4].astype(np.float32),
        inverse_masses=vertices[:, 4].astype(np.float32),
        segments=segments[:, 1:3].astype(np.uint16),
        stretch_stiffness=segments[:, 3].astype(np.float32),
        rest_lengths=segments[:, 4].astype(np.float32),
        orientations_xyzw=segments[:, 5:9].astype(np.float32),
        bends=bends[:, 1:3].astype(np.uint16),
        bend_stiffness=bends[:, 3].astype(np.float32),
        rest_rotations_xyzw=bends[:, 4:8].astype(np.float32),
        gravity=np.array([meta[f"gravity_{axis}"] for axis in "xyz"], dtype=np.float32),
        time_step=np.float32(meta["h"]),
        steps_per_frame=np.int32(meta["steps_per_frame"]),
        iterations=np.int32(meta["numItr"]),
        damping=np.float32(meta["damping"]),
        drag=np.float32(meta["drag"]),
    )


if __name__ == "__main__":
    pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
