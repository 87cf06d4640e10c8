// The controls at the side: coordinates, live simulation, what to show, analyses.
pb.h = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made[name] = value;
    else if (typeof value === "boolean") { if (value) made.setAttribute(name, ""); } else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(c => c !== null && c !== undefined));
  return made;
};

// Pictures on buttons, drawn here: fonts differ from machine to machine.
pb.icons = {
  frame: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4M6 6h4v4H6z", hand: "M4 9V5.5a1 1 0 0 1 2 0V3a1 1 0 0 1 2 0v-.5a1 1 0 0 1 2 0V4a1 1 0 0 1 2 0v6c0 3-1.500 4.500-4 4.500S4.500 13 2.500 9.500c-.6-1.100.7-1.900 1.500-.500",
  theme: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 2v12M8 5h4.500M8 8h6M8 11h4.500", picture: "M8 2v8M4.500 7 8 10.500 11.500 7M2 11v3h12v-3", menu: "M2 4h12M2 8h12M2 12h12",
  help: "M5.500 6a2.500 2.500 0 1 1 3.500 2.300c-.7.400-1 .9-1 1.700M8 12.800v.400", play: "M4 2.500v11l9-5.500z", pause: "M4.500 3v10M11.500 3v10", first: "M3 3v10M13 3 6 8l7 5z", back: "M11 3 5 8l6 5z", next: "M5 3l6 5-6 5z",
  loop: "M3 8a5 5 0 0 1 9-3M13 2v3h-3M13 8a5 5 0 0 1-9 3M3 14v-3h3", close: "M4 4l8 8M12 4l-8 8",
};
pb.icon = name => {
  const span = document.createElement("span");
  const filled = ["play", "first", "back", "next"].includes(name);
  span.className = "glyph";
  span.innerHTML = `<svg width="15" height="15" viewBox="0 0 16 16" fill="${filled ? "currentColor" : "none"}" stroke="currentColor" stroke-width="${name === "pause" ? 3 : 1.5}" stroke-linejoin="round" stroke-linecap="round"><path d="${pb.icons[name]}"/></svg>`;
  return span;
};

pb.section = (title, open, ...children) => pb.h("details", { open, "data-section": title }, pb.h("summary", {}, title), ...children);

// Sliders: independent coordinates are set, dependent ones follow and are only shown.
pb.Coordinates = class {
  constructor(app, host) {
    this.app = app;
    this.rows = new Map();
    const joints = app.data.coordinates.filter(c => c.kind !== "base");
    this.suffix = joints.length > 1 && joints.every(c => /_joint(\.|$)/i.test(c.label)) ? /_joint(?=\.|$)/i : null;
    const groups = { base: "Base", independent: app.data.looped ? "Independent coordinates" : "Joints", dependent: "Dependent: they follow by assembly" };
    const lists = Object.fromEntries(Object.keys(groups).map(kind => [kind, app.data.coordinates.filter(c => c.kind === kind)]));
    for (const [kind, title] of Object.entries(groups)) {
      if (!lists[kind].length) continue;
      const rows = lists[kind].map(c => this.row(c));
      if (kind === "independent") host.append(pb.h("h3", {}, title), ...rows.flat());
      else host.append(pb.h("details", { class: "inner", open: kind === "dependent" && lists[kind].length < 13 }, pb.h("summary", { class: "note" }, `${title} (${lists[kind].length})`), ...rows.flat()));
    }
  }

  // Names of robots end alike: what all share is left out.
  short(label) { return this.suffix ? label.replace(this.suffix, "") : label; }

  row(c) {
    const h = pb.h, value = h("output", {}), name = h("span", { title: `${c.label} [${c.unit}]` }, this.short(c.label));
    const [low, high] = [c.low, c.high];
    if (c.kind === "dependent") {
      const mark = h("i", {}), row = h("div", { class: "row dependent", "data-coordinate": c.key }, name, h("div", { class: "bar" }, mark), value);
      this.rows.set(c.key, { c, row, value, show: x => { mark.style.left = `${Math.max(0, Math.min(100, 100 * (x - low) / (high - low)))}%`; } });
      return [row];
    }
    const slider = h("input", { type: "range", min: low, max: high, step: "any", "aria-label": `${c.label}, ${c.unit}`,
      oninput: () => { this.held = c.key; this.app.command({ do: "set", key: c.key, value: +slider.value }, true); },
      onchange: () => { this.held = null; } });
    const row = h("div", { class: "row", "data-coordinate": c.key }, name, slider, value);
    const bound = x => pb.show(x, 3);
    const range = h("div", { class: "range", title: c.limited ? "the joint's limits" : "no limits are stated: the range is ours" },
      `${c.limited ? "" : "no limits · "}${bound(low)} … ${bound(high)} ${c.unit}`);
    this.rows.set(c.key, { c, row, value, show: x => { if (this.held !== c.key || document.activeElement !== slider) slider.value = x; } });
    return [row, range];
  }

  show(values) {
    this.app.data.coordinates.forEach((c, k) => {
      const entry = this.rows.get(c.key), x = values[k];
      entry.value.textContent = `${x.toFixed(3).replace("-", "−")} ${c.unit}`;
      entry.show(x);
      const out = c.limited && (x < c.low - 1e-6 * (1 + Math.abs(c.low)) || x > c.high + 1e-6 * (1 + Math.abs(c.high)));
      if (!entry.refused) entry.row.classList.toggle("bad", out);
      entry.row.title = out ? `outside its limits, ${pb.show(c.low)} to ${pb.show(c.high)} ${c.unit}` : "";
    });
  }

  // A value that the loops do not let be reached.
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
  const { h } = pb, box = h("div");
  const names = h("select", { id: "configuration", onchange: () => { if (names.value) app.command({ do: "configuration", name: names.value }); names.value = ""; } });
  app.showConfigurations = list => names.replaceChildren(h("option", { value: "" }, "go to …"), ...list.map(n => h("option", { value: n }, n)));
  app.showConfigurations(app.data.configurations);
  const name = h("input", { type: "text", id: "configuration-name", placeholder: "name", size: 9, maxlength: 40 });
  const section = pb.section("Configuration", app.data.mode !== "live",
    h("div", { class: "buttons" }, names, name,
      h("button", { id: "save-configuration", title: "keep this configuration under a name", onclick: () => { app.command({ do: "save", name: name.value.trim() }); } }, "keep"),
      h("button", { id: "reset", title: "back to the first configuration (R)", onclick: () => app.command({ do: "reset" }) }, "reset"),
      h("button", { id: "random", onclick: () => app.command({ do: "random" }) }, "random")), box);
  app.coordinates = new pb.Coordinates(app, box);
  host.append(section);
};

pb.dragSection = (app, host) => {
  const { h } = pb, frames = app.data.frames;
  app.dragFrame = h("select", { id: "drag-frame", onchange: () => app.chooseDrag(app.dragFrame.value) }, h("option", { value: "" }, "no frame"), ...frames.filter(f => f.name !== "world").map(f => h("option", { value: f.name }, f.name)));
  app.keepTurn = h("input", { type: "checkbox", id: "keep-turn" });
  host.append(pb.section("Drag", true,
    h("div", { class: "row two" }, h("span", {}, "frame"), app.dragFrame),
    h("div", { class: "checks", style: "grid-template-columns:1fr" }, h("label", {}, app.keepTurn, "keep its orientation")),
    h("p", { class: "note" }, app.data.mode === "live" ? "Drag the orange ball: the goal of the controller. Hold Ctrl (or the hand tool) and drag a body: a spring pulls it." : "Drag the orange ball, or hold Ctrl (or use the hand tool) and drag a body: inverse kinematics follows.")));
};

pb.liveSection = (app, host) => {
  const { h } = pb, s = app.data.live, send = (key, value) => app.command({ do: "option", key, value });
  const choice = (id, label, options) => { const box = h("select", { id, onchange: () => send(id, box.value) }, ...options.map(o => h("option", { value: o }, o))); box.value = s[id]; app.liveControls[id] = box; return h("div", { class: "row two" }, h("span", {}, label), box); };
  const slider = (id, label, unit, low, high, log = false) => {
    const to = x => log ? Math.log10(Math.max(x, 10 ** low)) : x, from = x => log ? 10 ** x : x;
    const value = h("output", {}), box = h("input", { type: "range", id, min: low, max: high, step: "any", "aria-label": `${label}, ${unit}`, oninput: () => { value.textContent = `${pb.show(from(+box.value), 3)} ${unit}`; app.command({ do: "option", key: id, value: from(+box.value) }, true); } });
    app.liveControls[id] = { set value(x) { if (document.activeElement !== box || !box.matches(":active")) { box.value = to(x); value.textContent = `${pb.show(x, 3)} ${unit}`; } } };
    app.liveControls[id].value = s[id];
    return h("div", { class: "row" }, h("span", { title: label }, label), box, value);
  };
  app.liveControls = {};
  const out = id => { const box = h("td", { id }); return box; };
  const facts = h("table", { class: "facts" }, ...[["time", "live-time"], ["energy: kinetic", "live-kinetic"], ["potential", "live-potential"], ["total", "live-total"], ["loop residual", "live-residual"], ["real-time factor", "live-factor"]]
    .filter(([, id]) => id !== "live-residual" || app.data.looped).map(([label, id]) => h("tr", {}, h("td", {}, label), out(id))));
  app.runButton = h("button", { id: "run", title: "run or pause (space)", onclick: () => send("running", !app.live.running) }, "run");
  host.append(pb.section("Live simulation", true,
    h("div", { class: "buttons" }, app.runButton, h("button", { id: "step", title: "one step (→)", onclick: () => app.command({ do: "step" }) }, "step"),
      h("button", { id: "restart", title: "back to the first state (R)", onclick: () => app.command({ do: "reset" }) }, "reset"),
      h("button", { id: "goal-here", title: "the controller's goal becomes the configuration shown", onclick: () => app.command({ do: "goal" }) }, "goal here")),
    slider("speed", "speed", "×", -2, 0.6, true), facts,
    choice("controller", "controller", s.controllers), slider("kp", "kp", "1/s²", 0, 4, true), slider("kd", "kd", "1/s", -1, 3, true),
    choice("method", "integrator", s.methods), choice("step_size", "step", s.steps),
    slider("gravity", "gravity", "m/s²", 0, 20), slider("stiffness", "pull stiffness", "N/m", 0, 5, true),
    ...(s.floating ? [choice("base", "base", ["pinned", "free"])] : []),
    ...(s.parameters.length ? [h("h3", {}, "Parameters"), ...s.parameters.map(p => slider(p.key, p.label, p.unit, p.low, p.high))] : []),
    h("p", { class: "note", id: "live-note" })));
};

pb.showSection = (app, host) => {
  const { h } = pb, { data } = app, keys = ["frames", "all frames", "labels", "joint axes", "centre of mass", "inertia ellipsoids", "transparent", "floor", "grid"];
  app.showBoxes = {};
  const box = (key, color) => {
    const input = h("input", { type: "checkbox", "data-show": key, checked: app.scene.shown.has(key), onchange: () => app.toggle(key, input.checked) });
    app.showBoxes[key] = input;
    return h("label", {}, input, color ? h("span", { class: "swatch", style: `background:rgb(${color.map(x => Math.round(255 * x))})` }) : null, key);
  };
  const coloring = h("select", { id: "coloring", onchange: () => { app.scene.coloring = coloring.value; app.redraw(); } }, h("option", { value: "file" }, "as in the file"), h("option", { value: "body" }, "by body"));
  const range = (id, label, low, high, value, act, text) => {
    const out = h("output", {}, text(value)), input = h("input", { type: "range", id, min: low, max: high, step: "any", value: Math.log10(value), "aria-label": label, oninput: () => { const x = 10 ** +input.value; act(x); out.textContent = text(x); app.redraw(); } });
    return h("div", { class: "row" }, h("span", {}, label), input, out);
  };
  host.append(pb.section("Show", true, h("div", { class: "checks" }, ...keys.map(k => box(k))),
    h("h3", {}, "Forces and moments"), h("div", { class: "checks" }, ...data.layers.filter(l => l.offered !== false).map(l => box(l.key, pb.arrowColors[l.key]))),
    range("arrow-length", "arrows", -1, 1, 1, x => { app.scene.arrowLength = x; }, x => `× ${pb.show(x, 2)}`),
    range("ellipsoid-scale", "ellipsoids", -2, 0, app.scene.ellipsoidScale, x => { app.scene.ellipsoidScale = x; }, x => `1 : ${pb.show(1 / x, 2)}`),
    h("div", { class: "row two" }, h("span", {}, "colours"), coloring)));
};

pb.analysisSection = (app, host) => {
  const { h } = pb, list = h("div", { id: "analyses" });
  app.showAnalyses = found => {
    list.replaceChildren(h("p", { class: "note" }, found.text), h("div", { class: "buttons" }, ...found.motions.map((motion, k) =>
      h("button", { "data-motion": k, title: motion.detail, class: app.motion && app.motion.name === motion.name ? "on" : "", onclick: () => app.playMotion(motion) }, motion.name)),
    found.motions.length ? h("button", { id: "stop-motion", onclick: () => app.playMotion(null) }, "stop") : null));
  };
  host.append(pb.section("Analyses", true, h("div", { class: "buttons" },
    app.online ? h("button", { id: "mobility", onclick: () => app.command({ do: "analysis", name: "mobility" }) }, "mobility and singularities") : null,
    app.online && app.data.looped ? h("button", { id: "internal", onclick: () => app.command({ do: "analysis", name: "internal" }) }, "internal loads") : null), list));
  if (app.data.analyses) app.showAnalyses(app.data.analyses);
};
