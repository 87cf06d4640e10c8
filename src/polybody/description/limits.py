"""How much of a file is read: the one table of limits that all readers share.

A file comes from anyone, so whatever it holds, reading it takes bounded time and memory: `polybody check` answers for
any file of 10 MB within 5 s and 1 GB. What is larger than the table allows raises an error by name; nothing real comes
near it (the largest robot descriptions known have 1 MB and some hundred joints).

| what | limit |
|---|---|
| bytes of a mechanism file, of a URDF or MJCF file, of an MJCF file's meshes and images together | `YAML_BYTES`, `XML_BYTES`, `ASSET_BYTES` |
| values of a mechanism file, each alias counted with all that it represents; their nesting | `YAML_NODES`, `YAML_DEPTH` |
| elements of an XML file, after MJCF's includes, `replicate` and `attach` are carried out | `XML_ELEMENTS`, `MJCF_ELEMENTS` |
| XML files that one MJCF file may include; its nesting then | `INCLUDED_FILES`, `MJCF_DEPTH` |
| MJCF's sizes (`nuser_…`, `nkey`, …); cells of its height fields and images; numbers of vertices that stand in the file | `MJCF_COUNT`, `MJCF_CELLS`, `MJCF_VERTEX_NUMBERS` |
| seconds of one core and bytes of memory for expanding a xacro file | `XACRO_SECONDS`, `XACRO_MEMORY` |
| bodies, and also joints, frames, loops … of one description | `RECORDS` |
| characters of a number, of a name; the size of a number | `NUMBER_CHARACTERS`, `NAME_CHARACTERS`, `LARGEST_NUMBER` |
| joints that one transmission couples | `TRANSMISSION_JOINTS` |
| characters, nesting, largest power of a relation's expression, and its terms when multiplied out; all expressions of a file together | `EXPRESSION_…`, `EXPRESSIONS_TOGETHER` |
| problems that are listed for one file | `PROBLEMS` |
| triangles of a COLLADA file, each instance of a geometry counted; such instances | `MESH_FACES`, `RECORDS` |
| bytes of a table of times and configurations (.csv) | `TABLE_BYTES` |
| bytes of a run's `run.json`, and of its arrays once unpacked | `RUN_FACTS_BYTES`, `RUN_ARRAY_BYTES` |
"""  # noqa: E501

from __future__ import annotations

MB = 1_000_000

YAML_BYTES = 10 * MB
XML_BYTES = 20 * MB
ASSET_BYTES = 200 * MB

YAML_NODES = 500_000
YAML_DEPTH = 16
XML_ELEMENTS = 400_000
MJCF_ELEMENTS = 15_000
MJCF_DEPTH = 256
MJCF_COUNT = 1000
MJCF_CELLS = 20_000_000
#: numbers of a mesh's vertices that stand in the file itself: MuJoCo's convex hull takes more than their square
MJCF_VERTEX_NUMBERS = 45_000
INCLUDED_FILES = 100
XACRO_SECONDS = 3
XACRO_MEMORY = 1000 * MB

RECORDS = 10_000
TRANSMISSION_JOINTS = 100
MESH_FACES = 5_000_000
#: nodes of a contact's grid of heights: its text has a term for each
GRID_NODES = 1024
LARGEST_NUMBER = 1e30
NUMBER_CHARACTERS = 100
NAME_CHARACTERS = 1000

EXPRESSION_CHARACTERS = 2000
EXPRESSION_DEPTH = 60
EXPRESSION_POWER = 12
EXPRESSION_TERMS = 5000
#: characters of all expressions of one file together, each counted with 50 more
EXPRESSIONS_TOGETHER = 1_000_000

PROBLEMS = 100

TABLE_BYTES = 500 * MB
RUN_FACTS_BYTES = 20 * MB
RUN_ARRAY_BYTES = 4000 * MB
