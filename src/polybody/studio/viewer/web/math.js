// Vectors as arrays of three, quaternions (x, y, z, w), matrices of 16 numbers by columns, as WebGL takes them.
const pb = {};
pb.math = (() => {
  const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const norm = a => Math.hypot(a[0], a[1], a[2]);
  const unit = a => {
    const n = norm(a);
    return n > 0 ? scale(a, 1 / n) : [0, 0, 1];
  };
  const identity = () => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

  function multiply(a, b) {
    const c = new Array(16);
    for (let i = 0; i < 4; i++)
      for (let j = 0; j < 4; j++) {
        c[4 * j + i] = a[i] * b[4 * j] + a[4 + i] * b[4 * j + 1] + a[8 + i] * b[4 * j + 2] + a[12 + i] * b[4 * j + 3];
      }
    return c;
  }

  // The matrix of a place and a quaternion, from seven numbers at an offset.
  function fromPose(p, at = 0) {
    const x = p[at + 3],
      y = p[at + 4],
      z = p[at + 5],
      w = p[at + 6];
    return [
      1 - 2 * (y * y + z * z),
      2 * (x * y + w * z),
      2 * (x * z - w * y),
      0,
      2 * (x * y - w * z),
      1 - 2 * (x * x + z * z),
      2 * (y * z + w * x),
      0,
      2 * (x * z + w * y),
      2 * (y * z - w * x),
      1 - 2 * (x * x + y * y),
      0,
      p[at],
      p[at + 1],
      p[at + 2],
      1,
    ];
  }
  const point = (m, p) => [
    m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12],
    m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13],
    m[2] * p[0] + m[6] * p[1] + m[10] * p[2] + m[14],
  ];
  const direction = (m, p) => [
    m[0] * p[0] + m[4] * p[1] + m[8] * p[2],
    m[1] * p[0] + m[5] * p[1] + m[9] * p[2],
    m[2] * p[0] + m[6] * p[1] + m[10] * p[2],
  ];
  const scaled = (m, s) => [
    m[0] * s[0],
    m[1] * s[0],
    m[2] * s[0],
    0,
    m[4] * s[1],
    m[5] * s[1],
    m[6] * s[1],
    0,
    m[8] * s[2],
    m[9] * s[2],
    m[10] * s[2],
    0,
    m[12],
    m[13],
    m[14],
    1,
  ];
  const translation = p => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, p[0], p[1], p[2], 1];

  // A matrix whose z axis is a direction.
  function along(place, dir) {
    const z = unit(dir),
      x = unit(cross(Math.abs(z[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0], z)),
      y = cross(z, x);
    return [...x, 0, ...y, 0, ...z, 0, ...place, 1];
  }

  function lookAt(eye, target, up) {
    const z = unit(sub(eye, target)),
      x = unit(cross(up, z)),
      y = cross(z, x);
    return [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1];
  }
  function perspective(fov, aspect, near, far) {
    const f = 1 / Math.tan(fov / 2);
    return [
      f / aspect,
      0,
      0,
      0,
      0,
      f,
      0,
      0,
      0,
      0,
      (far + near) / (near - far),
      -1,
      0,
      0,
      (2 * far * near) / (near - far),
      0,
    ];
  }
  const orthographic = (r, near, far) => [
    1 / r,
    0,
    0,
    0,
    0,
    1 / r,
    0,
    0,
    0,
    0,
    -2 / (far - near),
    0,
    0,
    0,
    -(far + near) / (far - near),
    1,
  ];

  // Interpolation between two poses, along the shorter rotation.
  function between(a, ia, b, ib, s, out, io) {
    for (let k = 0; k < 3; k++) out[io + k] = a[ia + k] + s * (b[ib + k] - a[ia + k]);
    let c = 0;
    for (let k = 3; k < 7; k++) c += a[ia + k] * b[ib + k];
    const sign = c < 0 ? -1 : 1;
    let n = 0;
    for (let k = 3; k < 7; k++) {
      const x = (1 - s) * a[ia + k] + s * sign * b[ib + k];
      out[io + k] = x;
      n += x * x;
    }
    n = Math.sqrt(n) || 1;
    for (let k = 3; k < 7; k++) out[io + k] /= n;
  }

  // 1, 2 or 5 times a power of ten, at most x.
  function round(x) {
    if (!(x > 0) || !isFinite(x)) return 1;
    const power = 10 ** Math.floor(Math.log10(x)),
      part = x / power;
    return power * (part >= 5 ? 5 : part >= 2 ? 2 : 1);
  }
  // … and at least x.
  function roundUp(x) {
    const low = round(x),
      part = Math.round(low / 10 ** Math.floor(Math.log10(low)));
    return x > 0 && isFinite(x) && low < x * (1 - 1e-9) ? low * (part === 2 ? 2.5 : 2) : low;
  }
  // Roll, pitch, yaw of a quaternion at an offset, rad.
  function angles(p, at) {
    const x = p[at],
      y = p[at + 1],
      z = p[at + 2],
      w = p[at + 3];
    return [
      Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
      Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))),
      Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    ];
  }
  return {
    add,
    sub,
    scale,
    dot,
    cross,
    norm,
    unit,
    identity,
    multiply,
    fromPose,
    point,
    direction,
    scaled,
    translation,
    along,
    lookAt,
    perspective,
    orthographic,
    between,
    round,
    roundUp,
    angles,
  };
})();

// A number, formatted for display.
pb.show = (x, digits = 4) => {
  if (x === null || x === undefined) return "–";
  if (!isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "not finite";
  if (Math.abs(x) < 1e-12) return "0";
  const size = Math.abs(x),
    text = size >= 1e5 || size < 1e-3 ? x.toExponential(2) : String(+x.toPrecision(digits));
  return text.replace("-", "−").replace("e+", "e");
};
