// What is on the stage: bodies and everything that can be shown about them, placed by a state {poses, layers}.
pb.themes = {
  light: {
    top: [0.975, 0.982, 0.992],
    bottom: [0.862, 0.888, 0.922],
    sky: [0.86, 0.9, 0.98],
    earth: [0.5, 0.48, 0.46],
    line: [0.55, 0.6, 0.68],
    floor: [0.93, 0.945, 0.965],
    shadow: 0.34,
  },
  dark: {
    top: [0.085, 0.1, 0.13],
    bottom: [0.15, 0.175, 0.215],
    sky: [0.6, 0.66, 0.78],
    earth: [0.2, 0.2, 0.22],
    line: [0.42, 0.47, 0.56],
    floor: [0.17, 0.195, 0.235],
    shadow: 0.55,
  },
};
pb.arrowColors = {
  "joint torques": [0.86, 0.15, 0.15],
  "joint forces": [0.85, 0.45, 0.05],
  "reaction forces": [0.09, 0.6, 0.3],
  "reaction moments": [0.0, 0.55, 0.6],
  "closure forces": [0.49, 0.23, 0.93],
  "closure moments": [0.82, 0.2, 0.6],
  "internal loads": [0.95, 0.65, 0.05],
};
pb.runTints = [
  [0.15, 0.39, 0.92],
  [0.92, 0.45, 0.1],
  [0.1, 0.62, 0.4],
  [0.6, 0.3, 0.8],
  [0.8, 0.2, 0.35],
];

pb.Scene = class {
  constructor(renderer, data) {
    this.renderer = renderer;
    this.data = data;
    this.shown = new Set(["floor", "grid"]);
    this.coloring = "file";
    this.arrowLength = 1;
    this.ellipsoidScale = data.ellipsoid_scale;
    this.scales = {};
    this.selected = null;
    this.ids = [null];
    this.ghosts = [];
    this.paths = new Map();
    this.labels = [];
    const solid = name => renderer.mesh(pb.solids[name]());
    this.rod = solid("rod");
    this.cone = solid("cone");
    this.ball = solid("ball");
    this.makeBodies();
    this.floorHeight = data.ground;
  }

  id(what) {
    this.ids.push(what);
    return this.ids.length - 1;
  }

  makeBodies() {
    const { data } = this,
      byte = c => c.map(x => x / 255);
    this.meshes = data.meshes.map(mesh => this.renderer.mesh(pb.geometry(mesh)));
    this.parts = [];
    data.bodies.forEach((body, index) => {
      const id = this.id({ kind: "body", index });
      body.parts.forEach(part => {
        const joint = part.joint ? data.joints.findIndex(j => j.name === part.joint) : -1;
        const own = joint >= 0 ? this.id({ kind: "joint", index: joint }) : id;
        this.parts.push({
          mesh: this.meshes[part.mesh],
          body: index,
          file: byte(part.color),
          by: byte(body.color),
          id: own,
          joint,
          matrix: pb.math.identity(),
          color: byte(part.color),
          label: part.label,
        });
      });
    });
    const rod = (name, extra) => ({ mesh: this.rod, matrix: pb.math.identity(), shadow: false, ...extra });
    this.triads = data.frames.map((frame, index) => {
      const id = this.id({ kind: "frame", index });
      return [
        [0.9, 0.2, 0.2],
        [0.18, 0.7, 0.25],
        [0.2, 0.4, 0.95],
      ].map(color => rod("axis", { color, id, flat: 0.4 }));
    });
    this.axes = data.joints.flatMap((joint, index) => {
      const id = this.id({ kind: "joint", index });
      return joint.axes.map(axis => rod("joint", { color: byte(joint.color), id, joint: index, axis, flat: 0.3 }));
    });
    this.ellipsoids = data.ellipsoids.map(one => ({
      mesh: this.ball,
      matrix: pb.math.identity(),
      shadow: false,
      color: byte(data.bodies[one.body].color),
      one,
    }));
    this.com = {
      mesh: this.ball,
      matrix: pb.math.identity(),
      color: [0.98, 0.78, 0.1],
      flat: 0.2,
      over: true,
      shadow: false,
    };
    this.handle = {
      mesh: this.ball,
      matrix: pb.math.identity(),
      color: [1, 0.55, 0.05],
      flat: 0.35,
      over: true,
      shadow: false,
      id: this.id({ kind: "handle" }),
      hidden: true,
    };
    this.pull = rod("pull", { color: [1, 0.55, 0.05], flat: 0.5, hidden: true, over: true });
    this.goal = {
      mesh: this.ball,
      matrix: pb.math.identity(),
      color: [0.1, 0.75, 0.45],
      flat: 0.35,
      over: true,
      shadow: false,
      hidden: true,
    };
  }

  bodyMatrix(poses, body) {
    return body < this.data.bodies.length - 1 ? pb.math.fromPose(poses, 7 * body) : pb.math.identity();
  }

  frameMatrix(poses, frame) {
    const { body, pose } = this.data.frames[frame];
    return pb.math.multiply(this.bodyMatrix(poses, body), pb.math.fromPose(pose));
  }

  // Place everything by a state.
  place(state) {
    const m = pb.math,
      { data } = this,
      size = data.size;
    this.state = state;
    const bodies = data.bodies.map((_, k) => this.bodyMatrix(state.poses, k));
    this.bodies = bodies;
    for (const part of this.parts) {
      part.matrix = bodies[part.body];
      part.color = this.coloring === "body" && part.joint < 0 ? part.by : part.file;
      part.recolored = this.coloring === "body";
      const s = this.selected;
      part.glow =
        s && ((s.kind === "body" && s.index === part.body) || (s.kind === "joint" && part.joint === s.index)) ? 1 : 0;
      part.opacity = this.shown.has("transparent") || this.shown.has("inertia ellipsoids") ? 0.3 : 1;
    }
    this.triads.forEach((triad, k) => {
      const s = this.selected,
        picked = s && s.kind === "frame" && s.index === k;
      const show =
        picked ||
        (this.shown.has("frames") && (data.frames[k].named || !data.hasNamed || this.shown.has("all frames")));
      const at = show ? this.frameMatrix(state.poses, k) : null,
        l = (picked ? 0.14 : 0.09) * size,
        r = (picked ? 0.006 : 0.0038) * size;
      triad.forEach((item, axis) => {
        item.hidden = !show;
        if (show)
          item.matrix = m.scaled(
            m.along([at[12], at[13], at[14]], [at[4 * axis], at[4 * axis + 1], at[4 * axis + 2]]),
            [r, r, l],
          );
        item.over = show;
      });
    });
    this.axes.forEach(item => {
      const joint = data.joints[item.joint],
        s = this.selected,
        picked = s && s.kind === "joint" && s.index === item.joint;
      item.hidden = !(this.shown.has("joint axes") || picked);
      if (item.hidden) return;
      const at = bodies[joint.body],
        dir = m.direction(at, item.axis.direction),
        l = 0.17 * size,
        r = (picked ? 0.008 : 0.005) * size;
      item.matrix = m.scaled(m.along(m.sub([at[12], at[13], at[14]], m.scale(dir, l / 2)), dir), [r, r, l]);
      item.over = true;
      item.glow = picked ? 1 : 0;
    });
    this.ellipsoids.forEach(item => {
      item.hidden = !this.shown.has("inertia ellipsoids");
      const at = m.multiply(bodies[item.one.body], m.fromPose(item.one.pose));
      item.matrix = m.scaled(
        at,
        item.one.half.map(h => h * this.ellipsoidScale),
      );
    });
    this.center = this.massCenter(bodies);
    this.com.hidden = !this.shown.has("centre of mass") || !this.center;
    if (this.center)
      this.com.matrix = m.scaled(
        m.translation(this.center),
        [0.018, 0.018, 0.018].map(x => x * size),
      );
    this.lower(bodies);
    this.arrows = this.makeArrows(state);
  }

  massCenter(bodies) {
    let total = 0,
      sum = [0, 0, 0];
    this.data.bodies.forEach((body, k) => {
      if (!(body.mass > 0) || k === this.data.bodies.length - 1) return;
      total += body.mass;
      sum = pb.math.add(sum, pb.math.scale(pb.math.point(bodies[k], body.com), body.mass));
    });
    return total > 0 ? pb.math.scale(sum, 1 / total) : null;
  }

  // The floor is never above anything shown.
  lower(bodies) {
    const m = pb.math,
      up = this.data.up;
    this.data.bodies.forEach((body, k) => {
      for (let i = 0; i < body.hull.length; i += 3) {
        const h = m.dot(m.point(bodies[k], [body.hull[i], body.hull[i + 1], body.hull[i + 2]]), up);
        if (h < this.floorHeight - 1e-4 * this.data.size) this.floorHeight = h;
      }
    });
  }

  // Newtons (or newton metres) in a metre of arrow: round, so that the largest is about a fifth of the mechanism (at most
  // 4/15), and kept while it fits.
  scaleOf(layer, largest) {
    const known = this.scales[layer.key],
      length = 0.2 * this.data.size;
    if (!known || largest > 1.6 * known || (largest < 0.15 * known && largest > 0))
      this.scales[layer.key] = pb.math.roundUp(0.75 * largest || 1);
    return this.scales[layer.key] / (length * this.arrowLength);
  }

  // The largest arrow of every layer shown; those of one unit share it, unless one is ten times smaller than another.
  largestOf(state) {
    const own = {},
      most = {};
    for (const layer of this.data.layers) {
      const values = state.layers && state.layers[layer.key];
      if (!this.shown.has(layer.key) || !values) continue;
      let largest = (state.largest && state.largest[layer.key]) || 0;
      for (let k = 0; k < values.length; k += 6)
        largest = Math.max(largest, Math.hypot(values[k + 3], values[k + 4], values[k + 5]));
      own[layer.key] = largest;
      most[layer.unit] = Math.max(most[layer.unit] || 0, largest);
    }
    for (const layer of this.data.layers)
      if (own[layer.key] > 0.1 * most[layer.unit]) own[layer.key] = most[layer.unit];
    return own;
  }

  makeArrows(state) {
    const m = pb.math,
      items = [],
      size = this.data.size,
      largest = this.largestOf(state);
    for (const layer of this.data.layers) {
      const values = state.layers && state.layers[layer.key];
      if (!this.shown.has(layer.key) || !values) continue;
      const perMetre = this.scaleOf(layer, largest[layer.key]),
        color = pb.arrowColors[layer.key] || [0.5, 0.5, 0.5];
      for (let k = 0; k < values.length; k += 6) {
        const v = [values[k + 3] / perMetre, values[k + 4] / perMetre, values[k + 5] / perMetre],
          l = m.norm(v);
        if (!(l > 0.004 * size) || !isFinite(l)) continue;
        const at = [values[k], values[k + 1], values[k + 2]],
          dir = m.scale(v, 1 / l);
        const r = 0.0065 * size,
          head = Math.min(0.05 * size, 0.6 * l),
          tip = d => m.along(m.add(at, m.scale(dir, d)), dir);
        const look = { color, flat: 0.3, shadow: false, over: true };
        items.push({ mesh: this.rod, matrix: m.scaled(tip(0), [r, r, l - head]), ...look });
        items.push({ mesh: this.cone, matrix: m.scaled(tip(l - head), [2.6 * r, 2.6 * r, head]), ...look });
        if (layer.moment)
          items.push({
            mesh: this.cone,
            matrix: m.scaled(tip(Math.max(l - 1.7 * head, 0)), [2.6 * r, 2.6 * r, head]),
            ...look,
          });
      }
    }
    return items;
  }

  // Other runs beside the one shown: translucent bodies in one colour each.
  placeGhosts(list) {
    this.ghosts = list.flatMap(({ poses, tint, opacity }) =>
      this.parts.map(part => ({
        mesh: part.mesh,
        color: tint,
        recolored: true,
        opacity: opacity ?? 0.38,
        shadow: false,
        matrix: this.bodyMatrix(poses, part.body),
      })),
    );
  }

  setPath(key, points, color) {
    const old = this.paths.get(key);
    if (old) {
      this.renderer.free(old.mesh);
      this.paths.delete(key);
    }
    if (points && points.length > 1) {
      const mesh = this.renderer.mesh(pb.solids.tube(points, 0.0042 * this.data.size));
      this.paths.set(key, { mesh, matrix: pb.math.identity(), color, flat: 0.6, shadow: false, points });
    }
  }

  showHandle(place) {
    this.handle.hidden = !place;
    if (place)
      this.handle.matrix = pb.math.scaled(
        pb.math.translation(place),
        [1, 1, 1].map(() => 0.022 * this.data.size),
      );
  }

  showPull(from, to) {
    const m = pb.math;
    this.pull.hidden = !from;
    if (from) {
      const d = m.sub(to, from),
        r = 0.005 * this.data.size;
      this.pull.matrix = m.scaled(m.along(from, d), [r, r, Math.max(m.norm(d), 1e-9)]);
    }
  }

  showGoal(place) {
    this.goal.hidden = !place;
    if (place)
      this.goal.matrix = pb.math.scaled(
        pb.math.translation(place),
        [1, 1, 1].map(() => 0.02 * this.data.size),
      );
  }

  items() {
    return [
      ...this.parts,
      ...this.paths.values(),
      ...this.triads.flat(),
      ...this.axes,
      ...this.ghosts,
      ...this.ellipsoids,
      ...this.arrows,
      this.com,
      this.pull,
      this.goal,
      this.handle,
    ];
  }

  world(camera, theme) {
    const { data } = this,
      m = pb.math;
    const low = [...data.low],
      high = [...data.high];
    const center = m.scale(m.add(low, high), 0.5),
      radius = Math.max(m.norm(m.sub(high, low)), data.size);
    const up = data.up,
      across = m.unit(m.cross(Math.abs(up[1]) < 0.9 ? [0, 1, 0] : [0, 0, 1], up));
    return {
      camera: camera.matrices(),
      up,
      across,
      center: this.follow || center,
      radius,
      floor: this.floorHeight,
      cell: this.cell,
      theme: pb.themes[theme],
      showFloor: this.shown.has("floor"),
      grid: this.shown.has("grid"),
    };
  }

  get cell() {
    return pb.math.round(0.5 * this.data.size);
  }
};
