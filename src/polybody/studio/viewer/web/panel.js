// The controls at the side: coordinates, dragging, what to show, analyses.
// Sliders: independent coordinates are set, dependent ones follow and are only shown.
pb.Coordinates = class {
  constructor(app, host) {
    this.app = app;
    this.rows = new Map();
    const joints = app.data.coordinates.filter(c => c.kind !== "base");
    this.suffix = joints.length > 1 && joints.every(c => /_joint(\.|$)/i.test(c.label)) ? /_joint(?=\.|$)/i : null;
    const groups = {
      base: "Base",
      independent: app.data.looped ? "Independent coordinates" : "Joints",
      dependent: "Dependent coordinates (by assembly)",
    };
    const lists = Object.fromEntries(
      Object.keys(groups).map(kind => [kind, app.data.coordinates.filter(c => c.kind === kind)]),
    );
    for (const [kind, title] of Object.entries(groups)) {
      if (!lists[kind].length) continue;
      const rows = lists[kind].map(c => this.row(c));
      if (kind === "independent") host.append(pb.h("h3", {}, title), ...rows.flat());
      else
        host.append(
          pb.h(
            "details",
            { class: "inner", open: kind === "dependent" && lists[kind].length < 13 },
            pb.h("summary", { class: "note" }, `${title} (${lists[kind].length})`),
            ...rows.flat(),
          ),
        );
    }
  }

  // Names of robots end alike: what all share is left out.
  short(label) {
    return this.suffix ? label.replace(this.suffix, "") : label;
  }

  row(c) {
    const h = pb.h,
      value = h("output", {}),
      name = h("span", { title: `${c.label} [${c.unit}]` }, this.short(c.label));
    const [low, high] = [c.low, c.high];
    if (c.kind === "dependent" || !this.app.online) {
      const mark = h("i", {}),
        row = h(
          "div",
          { class: "row dependent", "data-coordinate": c.key },
          name,
          h("div", { class: "bar" }, mark),
          value,
        );
      this.rows.set(c.key, {
        c,
        row,
        value,
        show: x => {
          mark.style.left = `${Math.max(0, Math.min(100, (100 * (x - low)) / (high - low)))}%`;
        },
      });
      return [row];
    }
    const slider = h("input", {
      type: "range",
      min: low,
      max: high,
      step: "any",
      "aria-label": `${c.label}, ${c.unit}`,
      oninput: () => {
        this.held = c.key;
        this.app.command({ do: "set", key: c.key, value: +slider.value }, true);
      },
      onchange: () => {
        this.held = null;
      },
    });
    const row = h("div", { class: "row", "data-coordinate": c.key }, name, slider, value);
    const bound = x => pb.show(x, 3);
    const range = h(
      "div",
      { class: "range", title: c.limited ? "the joint's limits" : "no limits given: default range" },
      `${c.limited ? "" : "no limits · "}${bound(low)} … ${bound(high)} ${c.unit}`,
    );
    this.rows.set(c.key, {
      c,
      row,
      value,
      show: x => {
        if (this.held !== c.key || document.activeElement !== slider) slider.value = x;
      },
    });
    return [row, range];
  }

  show(values) {
    this.app.data.coordinates.forEach((c, k) => {
      const entry = this.rows.get(c.key),
        x = values[k];
      entry.value.textContent = `${x.toFixed(3).replace("-", "−")} ${c.unit}`;
      entry.show(x);
      const out = c.limited && (x < c.low - 1e-6 * (1 + Math.abs(c.low)) || x > c.high + 1e-6 * (1 + Math.abs(c.high)));
      if (!entry.refused) entry.row.classList.toggle("bad", out);
      entry.row.title = out ? `outside its limits, ${pb.show(c.low)} to ${pb.show(c.high)} ${c.unit}` : "";
    });
  }

  // A value that the loops do not allow.
  refuse(key, wanted) {
    for (const [k, entry] of this.rows) {
      entry.refused = k === key && wanted !== null;
      if (entry.refused) {
        entry.row.classList.add("bad");
        entry.value.textContent = `${pb.show(wanted, 3)} ✕`;
        entry.row.title = "this value cannot be reached";
      }
    }
  }
};

pb.poseSection = (app, host) => {
  const { h } = pb,
    box = h("div");
  const names = h("select", {
    id: "configuration",
    onchange: () => {
      if (names.value) app.command({ do: "configuration", name: names.value });
      names.value = "";
    },
  });
  app.showConfigurations = list =>
    names.replaceChildren(h("option", { value: "" }, "go to …"), ...list.map(n => h("option", { value: n }, n)));
  app.showConfigurations(app.data.configurations);
  const name = h("input", { type: "text", id: "configuration-name", placeholder: "name", size: 9, maxlength: 40 });
  const buttons = h(
    "div",
    { class: "buttons" },
    names,
    name,
    h(
      "button",
      {
        id: "save-configuration",
        title: "save this configuration under a name",
        onclick: () => {
          app.command({ do: "save", name: name.value.trim() });
        },
      },
      "keep",
    ),
    h(
      "button",
      { id: "reset", title: "reset to the initial configuration (R)", onclick: () => app.command({ do: "reset" }) },
      "reset",
    ),
    h("button", { id: "random", onclick: () => app.command({ do: "random" }) }, "random"),
  );
  // a page without a program behind it shows the configuration; it cannot assemble another
  const note = h("p", { class: "note" }, "Static page: use polybody view to move the mechanism.");
  const section = pb.section("Configuration", app.data.mode !== "live", app.online ? buttons : note, box);
  app.coordinates = new pb.Coordinates(app, box);
  host.append(section);
};

pb.dragSection = (app, host) => {
  const { h } = pb,
    frames = app.data.frames;
  app.dragFrame = h(
    "select",
    { id: "drag-frame", onchange: () => app.chooseDrag(app.dragFrame.value) },
    h("option", { value: "" }, "no frame"),
    ...frames.filter(f => f.name !== "world").map(f => h("option", { value: f.name }, f.name)),
  );
  app.keepTurn = h("input", { type: "checkbox", id: "keep-turn" });
  host.append(
    pb.section(
      "Drag",
      true,
      h("div", { class: "row two" }, h("span", {}, "frame"), app.dragFrame),
      h(
        "div",
        { class: "checks", style: "grid-template-columns:1fr" },
        h("label", {}, app.keepTurn, "keep its orientation"),
      ),
      h(
        "p",
        { class: "note" },
        app.data.mode === "live"
          ? "Drag the orange ball: the goal of the controller. Hold Ctrl (or the hand tool) and drag a body: a spring pulls it."
          : "Drag the orange ball, or hold Ctrl (or use the hand tool) and drag a body: inverse kinematics follows.",
      ),
    ),
  );
};

pb.showSection = (app, host) => {
  const { h } = pb,
    { data } = app,
    keys = [
      "frames",
      "all frames",
      "labels",
      "joint axes",
      "centre of mass",
      "inertia ellipsoids",
      "transparent",
      "floor",
      "grid",
    ];
  app.showBoxes = {};
  const box = (key, color) => {
    const input = h("input", {
      type: "checkbox",
      "data-show": key,
      checked: app.scene.shown.has(key),
      onchange: () => app.toggle(key, input.checked),
    });
    app.showBoxes[key] = input;
    return h(
      "label",
      {},
      input,
      color ? h("span", { class: "swatch", style: `background:rgb(${color.map(x => Math.round(255 * x))})` }) : null,
      key,
    );
  };
  const coloring = h(
    "select",
    {
      id: "coloring",
      onchange: () => {
        app.scene.coloring = coloring.value;
        app.redraw();
      },
    },
    h("option", { value: "file" }, "as in the file"),
    h("option", { value: "body" }, "by body"),
  );
  const range = (id, label, low, high, value, act, text) => {
    const out = h("output", {}, text(value)),
      input = h("input", {
        type: "range",
        id,
        min: low,
        max: high,
        step: "any",
        value: Math.log10(value),
        "aria-label": label,
        oninput: () => {
          const x = 10 ** +input.value;
          act(x);
          out.textContent = text(x);
          app.redraw();
        },
      });
    return h("div", { class: "row" }, h("span", {}, label), input, out);
  };
  host.append(
    pb.section(
      "Show",
      true,
      h("div", { class: "checks" }, ...keys.map(k => box(k))),
      h("h3", {}, "Forces and moments"),
      h(
        "div",
        { class: "checks" },
        ...data.layers.filter(l => l.offered !== false).map(l => box(l.key, pb.arrowColors[l.key])),
      ),
      range(
        "arrow-length",
        "arrows",
        -1,
        1,
        1,
        x => {
          app.scene.arrowLength = x;
        },
        x => `× ${pb.show(x, 2)}`,
      ),
      range(
        "ellipsoid-scale",
        "ellipsoids",
        -2,
        0,
        app.scene.ellipsoidScale,
        x => {
          app.scene.ellipsoidScale = x;
        },
        x => `1 : ${pb.show(1 / x, 2)}`,
      ),
      h("div", { class: "row two" }, h("span", {}, "colours"), coloring),
    ),
  );
};

pb.analysisSection = (app, host) => {
  const { h } = pb,
    list = h("div", { id: "analyses" });
  app.showAnalyses = found => {
    list.replaceChildren(
      h("p", { class: "note" }, found.text),
      h(
        "div",
        { class: "buttons" },
        ...found.motions.map((motion, k) =>
          h(
            "button",
            {
              "data-motion": k,
              title: motion.detail,
              class: app.motion && app.motion.name === motion.name ? "on" : "",
              onclick: () => pb.playMotion(app, motion),
            },
            motion.name,
          ),
        ),
        found.motions.length
          ? h("button", { id: "stop-motion", onclick: () => pb.playMotion(app, null) }, "stop")
          : null,
      ),
    );
  };
  host.append(
    pb.section(
      "Analyses",
      true,
      h(
        "div",
        { class: "buttons" },
        app.online
          ? h(
              "button",
              { id: "mobility", onclick: () => app.command({ do: "analysis", name: "mobility" }) },
              "mobility and singularities",
            )
          : null,
        app.online && app.data.looped
          ? h(
              "button",
              { id: "internal", onclick: () => app.command({ do: "analysis", name: "internal" }) },
              "internal loads",
            )
          : null,
      ),
      list,
    ),
  );
  if (app.data.analyses) app.showAnalyses(app.data.analyses);
};
