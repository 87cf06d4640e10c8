// The page's data: gzip of [length][JSON][buffers]; JSON names its buffers as {at, n, type}.
pb.unpack = async bytes => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = await new Response(stream).arrayBuffer();
  return pb.opened(raw);
};

// A message or file that is not compressed.
pb.opened = raw => {
  const size = new DataView(raw).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(raw, 4, size)));
  const start = 4 + size + ((4 - (size % 4)) % 4);
  const kinds = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
  const open = node => {
    if (Array.isArray(node)) return node.map(open);
    if (node === null || typeof node !== "object") return node;
    if ("at" in node && "n" in node && "type" in node) return new kinds[node.type](raw, start + node.at, node.n);
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, open(value)]));
  };
  return open(head);
};

// A mesh as it is drawn: places were kept as 16-bit steps of its box.
pb.geometry = packed => {
  const positions = new Float32Array(packed.places.length);
  for (let k = 0; k < positions.length; k++) positions[k] = packed.low[k % 3] + packed.step * packed.places[k];
  return { positions, normals: packed.normals, indices: Uint32Array.from(packed.faces), colors: packed.colors };
};

// Round bodies made here: a cylinder and a cone along z from 0 to 1, a ball, a tube along points.
pb.solids = {
  turned(profile, sides = 20) {
    // [[radius, height, normal radius, normal height], ...]
    const positions = [],
      normals = [],
      indices = [];
    profile.forEach(([r, h, nr, nh]) => {
      for (let k = 0; k <= sides; k++) {
        const a = (2 * Math.PI * k) / sides;
        positions.push(r * Math.cos(a), r * Math.sin(a), h);
        normals.push(nr * Math.cos(a), nr * Math.sin(a), nh);
      }
    });
    for (let i = 0; i + 1 < profile.length; i++)
      for (let k = 0; k < sides; k++) {
        const a = i * (sides + 1) + k,
          b = a + sides + 1;
        indices.push(a, a + 1, b + 1, a, b + 1, b);
      }
    return {
      positions: new Float32Array(positions),
      normals: new Float32Array(normals),
      indices: new Uint32Array(indices),
    };
  },
  rod: () =>
    pb.solids.turned([
      [0, 0, 0, -1],
      [1, 0, 0, -1],
      [1, 0, 1, 0],
      [1, 1, 1, 0],
      [1, 1, 0, 1],
      [0, 1, 0, 1],
    ]),
  cone: () =>
    pb.solids.turned([
      [0, 0, 0, -1],
      [1, 0, 0, -1],
      [1, 0, 0.9, 0.4],
      [0, 1, 0.9, 0.4],
    ]),
  ball: () => {
    const steps = 16,
      profile = [];
    for (let k = 0; k <= steps; k++) {
      const a = (Math.PI * k) / steps;
      profile.push([Math.sin(a), -Math.cos(a), Math.sin(a), -Math.cos(a)]);
    }
    return pb.solids.turned(profile, 28);
  },
  tube(points, radius, sides = 6) {
    const m = pb.math,
      positions = [],
      normals = [],
      indices = [];
    let across = null;
    points.forEach((p, i) => {
      const t = m.unit(m.sub(points[Math.min(i + 1, points.length - 1)], points[Math.max(i - 1, 0)]));
      across = across
        ? m.unit(m.sub(across, m.scale(t, m.dot(across, t))))
        : m.unit(m.cross(t, Math.abs(t[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]));
      const other = m.cross(t, across);
      for (let k = 0; k < sides; k++) {
        const a = (2 * Math.PI * k) / sides,
          n = m.add(m.scale(across, Math.cos(a)), m.scale(other, Math.sin(a)));
        positions.push(...m.add(p, m.scale(n, radius)));
        normals.push(...n);
      }
    });
    for (let i = 0; i + 1 < points.length; i++)
      for (let k = 0; k < sides; k++) {
        const a = i * sides + k,
          b = i * sides + ((k + 1) % sides);
        indices.push(a, b, b + sides, a, b + sides, a + sides);
      }
    return {
      positions: new Float32Array(positions),
      normals: new Float32Array(normals),
      indices: new Uint32Array(indices),
    };
  },
};
