// A camera that looks at a point: drag rotates, right or middle drag (or two fingers) pans, wheel or pinch zooms.
pb.Camera = class {
  constructor(up) {
    this.up = up;
    const m = pb.math;
    this.side = m.unit(m.cross(Math.abs(up[1]) < 0.9 ? [0, 1, 0] : [0, 0, 1], up)); // azimuth 0 looks along −side
    this.other = m.cross(up, this.side);
    this.fov = 0.56;
    this.target = [0, 0, 0];
    this.distance = 3;
    this.azimuth = -0.72;
    this.elevation = 0.36;
    this.aspect = 1;
    this.shift = 0; // what panels cover of the width, as a part of it
    this.top = 0; // what bars cover of the height at its top and its foot
    this.foot = 0;
  }

  // Fit a box: the distance at which all its corners are inside the image.
  frame(low, high, shift = 0) {
    const m = pb.math;
    this.target = m.scale(m.add(low, high), 0.5);
    const { eye } = this.place(1),
      forward = m.unit(m.sub(this.target, eye));
    const right = m.unit(m.cross(forward, this.up)),
      top = m.cross(right, forward);
    const ty = Math.tan(this.fov / 2),
      tx = ty * this.aspect * (1 - shift),
      free = ty * (1 - this.top - this.foot);
    let distance = 0.05;
    for (let k = 0; k < 8; k++) {
      const corner = m.sub([k & 1 ? high[0] : low[0], k & 2 ? high[1] : low[1], k & 4 ? high[2] : low[2]], this.target);
      const back = -m.dot(corner, forward);
      distance = Math.max(
        distance,
        back + Math.abs(m.dot(corner, right)) / tx,
        back + Math.abs(m.dot(corner, top)) / free,
      );
    }
    this.distance = 1.2 * distance;
    this.near = this.distance;
  }

  place(distance = this.distance) {
    const m = pb.math,
      c = Math.cos(this.elevation),
      s = Math.sin(this.elevation);
    const out = m.add(
      m.add(m.scale(this.side, c * Math.cos(this.azimuth)), m.scale(this.other, c * Math.sin(this.azimuth))),
      m.scale(this.up, s),
    );
    return { eye: m.add(this.target, m.scale(out, distance)), out };
  }

  // {view, projection, eye} for an image of this aspect; `shift`, `top` and `foot` move the middle to what is not covered.
  matrices() {
    const m = pb.math,
      { eye } = this.place();
    const view = m.lookAt(eye, this.target, this.up);
    const projection = m.perspective(this.fov, this.aspect, 0.02 * this.distance, 60 * this.distance);
    projection[8] += this.shift;
    projection[9] += this.top - this.foot;
    return { view, projection, eye };
  }

  turn(dx, dy) {
    this.azimuth -= dx * 0.0075;
    this.elevation = Math.max(-1.5, Math.min(1.5, this.elevation + dy * 0.0075));
  }

  move(dx, dy, height) {
    const m = pb.math,
      { out } = this.place(),
      right = m.unit(m.cross(this.up, out)),
      top = m.cross(out, right);
    const step = (2 * this.distance * Math.tan(this.fov / 2)) / height;
    this.target = m.add(this.target, m.add(m.scale(right, -dx * step), m.scale(top, dy * step)));
  }

  zoom(factor) {
    this.distance = Math.max(1e-3, this.distance * factor);
  }
};

// Pointers on the canvas become rotation, panning and zoom; what `grab` claims is dragged instead.
pb.pointers = (canvas, camera, hooks) => {
  const held = new Map();
  let grabbed = null,
    moved = 0,
    gap = 0;
  const at = e => {
    const r = canvas.getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  };
  canvas.addEventListener("contextmenu", e => e.preventDefault());
  canvas.addEventListener("pointerdown", e => {
    canvas.setPointerCapture(e.pointerId);
    held.set(e.pointerId, at(e));
    moved = 0;
    if (grabbed && held.size === 1) {
      hooks.release();
      grabbed = null;
    }
    if (held.size === 1 && e.button === 0) grabbed = hooks.grab(at(e), e);
    else if (grabbed) {
      hooks.release();
      grabbed = null;
    }
    gap = 0;
  });
  canvas.addEventListener("pointermove", e => {
    const before = held.get(e.pointerId),
      now = at(e);
    if (!before) {
      hooks.hover(now);
      return;
    }
    const dx = now[0] - before[0],
      dy = now[1] - before[1];
    held.set(e.pointerId, now);
    moved += Math.abs(dx) + Math.abs(dy);
    if (grabbed) hooks.drag(now, e);
    else if (held.size === 2) {
      const [a, b] = [...held.values()],
        wide = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (gap > 0) camera.zoom(gap / wide);
      gap = wide;
      camera.move(dx / 2, dy / 2, canvas.clientHeight);
    } else if (e.buttons & 6 || e.shiftKey) camera.move(dx, dy, canvas.clientHeight);
    else camera.turn(dx, dy);
    hooks.changed();
  });
  const up = e => {
    if (!held.delete(e.pointerId)) return;
    if (grabbed) {
      hooks.release();
      grabbed = null;
    }
    if (moved < 5 && e.type === "pointerup" && e.button === 0) hooks.click(at(e), e);
    gap = 0;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener(
    "wheel",
    e => {
      e.preventDefault();
      camera.zoom(Math.exp(e.deltaY * 0.0011));
      hooks.changed();
    },
    { passive: false },
  );
};
