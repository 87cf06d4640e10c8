// Dragging the mechanism: by the ball of a frame, or by a body with Ctrl or the hand tool.

pb.grab = (app, at, e) => {
  if (!app.link || app.player) return null;
  const found = app.pickAt(at);
  if (!found) return null;
  if (found.kind === "handle") {
    const place = [app.scene.handle.matrix[12], app.scene.handle.matrix[13], app.scene.handle.matrix[14]];
    app.grabbed = {
      kind: "frame",
      frame: app.dragging,
      start: place,
      from: app.unproject(at, place),
      target: place,
    };
    return app.grabbed;
  }
  if (!(e.ctrlKey || e.metaKey || app.hand) || found.kind === "frame") return null;
  const body = found.kind === "joint" ? app.data.joints[found.index].body : found.index,
    own = app.data.bodies[body];
  if (body >= app.data.bodies.length - 1) return null;
  const matrix = app.scene.bodies[body],
    m = pb.math,
    point = app.unproject(at, m.point(matrix, own.com));
  const d = m.sub(point, [matrix[12], matrix[13], matrix[14]]),
    column = k => [matrix[4 * k], matrix[4 * k + 1], matrix[4 * k + 2]];
  const local = [0, 1, 2].map(k => m.dot(d, column(k)));
  if (app.data.live) app.grabbed = { kind: "pull", body, local, through: point };
  else
    app.grabbed = {
      kind: "frame",
      frame: own.name,
      start: [matrix[12], matrix[13], matrix[14]],
      from: point,
      target: point,
    };
  return app.grabbed;
};

pb.drag = (app, at) => {
  const g = app.grabbed,
    m = pb.math;
  if (!g) return;
  if (g.kind === "pull") {
    const now = m.point(app.scene.bodies[g.body], g.local),
      target = app.unproject(at, now);
    app.scene.showPull(now, target);
    app.command({ do: "pull", body: g.body, local: g.local, target }, true);
  } else {
    g.target = m.add(g.start, m.sub(app.unproject(at, g.from), g.from));
    app.placeHandle();
    app.command({ do: "drag", frame: g.frame, target: g.target, turn: !!(app.keepTurn && app.keepTurn.checked) }, true);
  }
  app.dirty = true;
};

pb.release = app => {
  if (app.grabbed && app.grabbed.kind === "pull") {
    app.link.forget("pull");
    app.command({ do: "release" });
    app.scene.showPull(null);
  }
  app.grabbed = null;
  app.placeHandle();
  app.redraw();
};
