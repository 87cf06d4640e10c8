// The selected item: name, parameters, and present values.
pb.Card = class {
  constructor(app) {
    this.app = app;
    this.box = document.getElementById("card");
  }

  show(selected) {
    const { h } = pb,
      { data } = this.app;
    this.selected = selected;
    this.box.hidden = !selected;
    if (!selected) return;
    const close = h(
      "button",
      { class: "icon", title: "close (Esc)", onclick: () => this.app.select(null) },
      pb.icon("close"),
    );
    const table = rows =>
      h("table", { class: "facts" }, ...rows.map(([a, b]) => h("tr", {}, h("td", {}, a), h("td", {}, b))));
    const color = c => h("span", { class: "swatch", style: `background:rgb(${c})` });
    this.live = h("table", { class: "facts", id: "card-live" });
    let parts = [];
    if (selected.kind === "body") {
      const body = data.bodies[selected.index];
      parts = [h("h2", {}, color(body.color), body.name, close), table(body.facts)];
      const joint = data.joints.find(j => j.body === selected.index);
      if (joint)
        parts.push(
          h("h3", {}, "moved by"),
          h(
            "button",
            { id: "card-joint", onclick: () => this.app.select({ kind: "joint", index: data.joints.indexOf(joint) }) },
            joint.name,
          ),
        );
    } else if (selected.kind === "joint") {
      const joint = data.joints[selected.index];
      parts = [h("h2", {}, color(joint.color), joint.name, close), table(joint.facts)];
    } else if (selected.kind === "frame") {
      const frame = data.frames[selected.index];
      parts = [
        h("h2", {}, frame.name, close),
        table([
          ["frame of", data.bodies[frame.body].name],
          [
            "in the body",
            `${frame.pose
              .slice(0, 3)
              .map(x => pb.show(x, 3))
              .join(", ")} m`,
          ],
        ]),
      ];
      if (this.app.online && frame.name !== "world")
        parts.push(h("button", { onclick: () => this.app.chooseDrag(frame.name) }, "drag"));
    }
    this.box.replaceChildren(...parts, h("h3", {}, "now"), this.live);
    this.update();
  }

  update() {
    const { selected } = this,
      { data, state, scene } = this.app,
      { h } = pb;
    if (!selected || !state) return;
    const list = (values, unit) => `${[...values].map(x => pb.show(x)).join(", ")} ${unit}`;
    let rows = [];
    if (selected.kind === "joint") {
      const joint = data.joints[selected.index];
      for (const key of ["positions", "velocities", "accelerations", "forces"]) {
        const channel = data.channels.find(c => c.key === key),
          values = state.values[key];
        if (!channel || !values) continue;
        channel.items.forEach((item, k) => {
          if (item.joint === joint.name)
            rows.push([
              `${channel.short}${item.part ? " " + item.part : ""}`,
              `${pb.show(values[k])} ${item.unit === "1" ? "" : item.unit}`,
            ]);
        });
      }
      for (const key of ["reaction forces", "reaction moments"]) {
        const layer = data.layers.find(l => l.key === key),
          at = layer ? layer.names.indexOf(joint.name) : -1,
          v = state.layers && state.layers[key];
        if (v && at >= 0)
          rows.push([
            key.slice(0, -1),
            `${pb.show(Math.hypot(v[6 * at + 3], v[6 * at + 4], v[6 * at + 5]))} ${layer.unit}`,
          ]);
      }
    } else {
      const matrix =
        selected.kind === "body" ? scene.bodies[selected.index] : scene.frameMatrix(state.poses, selected.index);
      const turn = pb.angles(matrix);
      rows = [
        ["position", list([matrix[12], matrix[13], matrix[14]], "m")],
        [
          "roll, pitch, yaw",
          list(
            turn.map(x => Math.round((x * 1.8e6) / Math.PI) / 1e4 + 0),
            "°",
          ),
        ],
      ];
      if (selected.kind === "body" && selected.index < data.bodies.length - 1)
        rows.push(["centre of mass", list(pb.math.point(matrix, data.bodies[selected.index].com), "m")]);
    }
    this.live.replaceChildren(...rows.map(([a, b]) => h("tr", {}, h("td", {}, a), h("td", {}, b))));
  }
};

// Roll, pitch, yaw of a matrix, rad.
pb.angles = m => [Math.atan2(m[6], m[10]), Math.asin(Math.max(-1, Math.min(1, -m[2]))), Math.atan2(m[1], m[0])];

// Everything that can be selected, by name.
pb.bodyList = (app, host) => {
  const { h } = pb,
    button = (kind, index, name, color) =>
      h(
        "button",
        { "data-pick": `${kind} ${name}`, onclick: () => app.select({ kind, index }) },
        color ? h("span", { class: "swatch", style: `background:rgb(${color});margin-right:5px` }) : null,
        name,
      );
  host.append(
    pb.section(
      "Bodies and joints",
      false,
      h("h3", {}, "Bodies"),
      h("div", { class: "chips" }, ...app.data.bodies.map((b, k) => button("body", k, b.name, b.color))),
      h("h3", {}, "Joints"),
      h("div", { class: "chips" }, ...app.data.joints.map((j, k) => button("joint", k, j.name, j.color))),
      h("h3", {}, "Frames"),
      h("div", { class: "chips" }, ...app.data.frames.map((f, k) => button("frame", k, f.name))),
    ),
  );
};
