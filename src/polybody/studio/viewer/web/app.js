// The page: puts scene, controls, player and line together.
pb.App = class {
  constructor(data, online) {
    this.data = data;
    this.online = online;
    data.hasNamed = data.frames.some(f => f.named);
    this.data.looped = data.loops.length > 0 || data.coordinates.some(c => c.kind === "dependent");
    this.canvas = document.getElementById("view");
    this.renderer = new pb.Renderer(this.canvas);
    this.scene = new pb.Scene(this.renderer, data);
    this.camera = new pb.Camera(data.up);
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.live = data.live ? { ...data.live } : null;
    this.dirty = true;
    this.messages = [];
    this.hand = false;
    this.card = new pb.Card(this);
    this.makeBar();
    this.makePanel();
    this.setTheme(this.theme);
    pb.pointers(this.canvas, this.camera, {
      grab: (at, e) => this.grab(at, e), drag: at => this.drag(at), release: () => this.release(), changed: () => this.redraw(),
      click: at => this.click(at), hover: at => this.hover(at),
    });
    addEventListener("resize", () => this.resize());
    addEventListener("keydown", e => this.key(e));
    this.resize();
    if (this.player) this.player.go(this.player.start);
    else this.showState(data.state);
    this.frameView();
    this.loop();
    if (online) this.link = new pb.Link(this, online);
  }

  makeBar() {
    const { h } = pb, button = (id, title, icon, act) => h("button", { id, class: "icon", title, "aria-label": title, onclick: act }, pb.icon(icon));
    document.getElementById("bar").replaceChildren(h("h1", { title: this.data.name }, this.data.name),
      button("frame-view", "frame the mechanism (F)", "frame", () => { this.frameView(); }),
      ...(this.online ? [button("hand", "hand: drag bodies without Ctrl (H)", "hand", () => this.toggleHand())] : []),
      button("theme", "dark or light (D)", "theme", () => this.setTheme(this.theme === "dark" ? "light" : "dark")),
      button("picture", "save a picture (P)", "picture", () => this.picture()),
      button("panel-button", "controls (C)", "menu", () => this.togglePanel()), button("help-button", "keyboard and mouse (?)", "help", () => this.showHelp()));
  }

  makePanel() {
    const host = document.getElementById("panel"), { data } = this;
    if (data.runs.length) {
      this.player = new pb.Player(this, data.runs.map(run => new pb.Run(run, data.bodies.length - 1)));
      pb.runsSection(this, host);
    }
    if (data.live) { this.recorder = new pb.Recorder(data.bodies.length - 1); pb.liveSection(this, host); }
    if (data.mode === "pose" || data.live) pb.poseSection(this, host);
    if (this.online && (data.mode === "pose" || data.live)) pb.dragSection(this, host);
    if (this.player || this.recorder) { this.plots = new pb.Plots(this, host); this.plots.rebuild(); }
    pb.showSection(this, host);
    if (this.online || data.analyses) pb.analysisSection(this, host);
    this.bodyList(host);
  }

  bodyList(host) {
    const { h } = pb, button = (kind, index, name, color) => h("button", { "data-pick": `${kind} ${name}`, onclick: () => this.select({ kind, index }) }, color ? h("span", { class: "swatch", style: `background:rgb(${color});margin-right:5px` }) : null, name);
    host.append(pb.section("Bodies and joints", false, h("h3", {}, "Bodies"), h("div", { class: "chips" }, ...this.data.bodies.map((b, k) => button("body", k, b.name, b.color))),
      h("h3", {}, "Joints"), h("div", { class: "chips" }, ...this.data.joints.map((j, k) => button("joint", k, j.name, j.color))),
      h("h3", {}, "Frames"), h("div", { class: "chips" }, ...this.data.frames.map((f, k) => button("frame", k, f.name)))));
  }

  // What the program says.
  told(message) {
    if (message.k === "frame") {
      this.frameState = { t: message.t, poses: message.poses, values: message.values, layers: message.layers };
      if (this.recorder) this.recorder.add(this.frameState);
      if (message.live) this.showLive(message.live);
      if (!this.player && !this.motion) this.showState(this.frameState);
      if (this.coordinates) this.coordinates.refuse(message.refused ? message.refused.key : null, message.refused ? message.refused.value : null);
    } else if (message.k === "notice") this.say(message.text, message.level, message.stays);
    else if (message.k === "settings") { this.live = { ...this.live, ...message.live }; this.showSettings(); }
    else if (message.k === "configurations" && this.showConfigurations) this.showConfigurations(message.names);
    else if (message.k === "analyses") { this.analyses = message; this.showAnalyses(message); }
    else if (message.k === "clear") this.say(null);
  }

  command(command, continuous = false) {
    if (!this.link) return;
    if (continuous) this.link.stream(command); else this.link.send(command);
  }

  connected() { this.sendLayers(); }

  showSettings() {
    for (const [key, control] of Object.entries(this.liveControls || {})) if (this.live[key] !== undefined) control.value = this.live[key];
    if (this.runButton) { this.runButton.textContent = this.live.running ? "pause" : "run"; this.runButton.classList.toggle("on", this.live.running); }
    document.getElementById("live-note").textContent = this.live.note || "";
  }

  showLive(live) {
    const put = (id, text) => { const box = document.getElementById(id); if (box) box.textContent = text; };
    put("live-time", `${this.frameState.t.toFixed(3)} s`);
    put("live-kinetic", `${pb.show(live.kinetic)} J`); put("live-potential", `${pb.show(live.potential)} J`);
    put("live-total", `${pb.show(live.kinetic + live.potential)} J`);
    put("live-residual", `${pb.show(live.residual, 2)}`); put("live-factor", live.factor === null ? "paused" : `${live.factor.toFixed(2)} ×`);
    this.scene.showGoal(live.goal || null);
    if (live.goal_poses) this.scene.placeGhosts([{ poses: live.goal_poses, tint: [0.1, 0.7, 0.45], opacity: 0.22 }]); else if (!this.player) this.scene.placeGhosts([]);
    const now = performance.now();
    if (this.plots && now - (this.plotted || 0) > 400) { this.plotted = now; this.plots.draw(); }
  }

  say(text, level = "error", stays = false) {
    const box = document.getElementById("notice");
    clearTimeout(this.quiet);
    box.hidden = !text;
    if (!text) return;
    this.messages.push(text);
    box.textContent = text;
    box.className = level;
    if (!stays) this.quiet = setTimeout(() => { box.hidden = true; }, level === "info" ? 2500 : 9000);
  }

  // A state: {t, poses, values, layers}.
  showState(state) {
    this.state = state;
    this.scene.place(state);
    if (this.coordinates && state.values.coordinates) this.coordinates.show(state.values.coordinates);
    if (this.player && this.plots) this.plots.cursor(state.t);
    this.card.update();
    this.placeHandle();
    this.dirty = true;
    this.wake();
  }

  placeHandle() {
    const frame = this.dragging ? this.data.frames.findIndex(f => f.name === this.dragging) : -1;
    if (frame < 0) { this.scene.showHandle(null); return; }
    if (this.grabbed && this.grabbed.kind === "frame") this.scene.showHandle(this.grabbed.target);
    else { const at = this.scene.frameMatrix(this.state.poses, frame); this.scene.showHandle([at[12], at[13], at[14]]); }
  }

  redraw() { if (this.state) this.scene.place(this.state); this.dirty = true; this.wake(); }
  wake() { if (this.asleep) { this.asleep = false; requestAnimationFrame(now => this.frame(now)); } }

  loop() { this.asleep = true; this.wake(); }

  frame(now) {
    if (this.player) this.player.tick(now);
    if (this.motion) this.playFrame(now);
    if (this.dirty) { this.dirty = false; this.draw(); }
    if (this.dirty || (this.player && this.player.playing) || this.motion) requestAnimationFrame(n => this.frame(n));
    else this.asleep = true;
  }

  draw() {
    this.world = this.scene.world(this.camera, this.theme);
    this.renderer.render(this.scene.items(), this.world);
    this.drawLabels();
    this.drawScales();
  }

  covered() { const p = document.getElementById("panel"); return innerWidth <= 760 || p.classList.contains("away") ? 0 : p.offsetWidth / innerWidth; }

  resize() {
    const phone = innerWidth <= 760, below = phone && !document.getElementById("panel").classList.contains("away") ? 0.42 : 0;
    const high = Math.round(innerHeight * (1 - below)), ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.style.height = `${high}px`;
    this.canvas.width = Math.round(innerWidth * ratio);
    this.canvas.height = Math.round(high * ratio);
    this.camera.aspect = this.canvas.width / this.canvas.height;
    this.camera.shift = this.covered();
    if (this.plots) this.plots.charts.forEach(chart => chart.draw());
    this.redraw();
  }

  frameView() {
    const { low, high } = this.data, margin = 0.02 * this.data.size;
    this.camera.azimuth = this.data.view ? this.data.view[0] : -0.72;
    this.camera.elevation = this.data.view ? this.data.view[1] : 0.36;
    this.camera.frame(low.map(x => x - margin), high.map(x => x + margin), this.covered());
    this.redraw();
  }

  project(p) {
    const { view, projection } = this.world.camera, m = pb.math, v = m.point(view, p), w = -v[2];
    const x = (projection[0] * v[0] + projection[8] * v[2]) / w, y = projection[5] * v[1] / w;
    return w > 0 ? [(x + 1) / 2 * this.canvas.clientWidth, (1 - y) / 2 * this.canvas.clientHeight, w] : null;
  }

  // The point under the pointer in the plane through a point that faces the camera.
  unproject(at, through) {
    const { view, projection, eye } = this.camera.matrices(), m = pb.math;
    const depth = -m.point(view, through)[2], w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    const x = (2 * at[0] / w - 1 + projection[8]) * depth / projection[0], y = (1 - 2 * at[1] / h) * depth / projection[5];
    const right = [view[0], view[4], view[8]], top = [view[1], view[5], view[9]], back = [view[2], view[6], view[10]];
    return m.add(eye, m.add(m.add(m.scale(right, x), m.scale(top, y)), m.scale(back, -depth)));
  }

  drawLabels() {
    const { data, scene, state } = this, wanted = [], host = document.getElementById("labels");
    const at = m => [m[12], m[13], m[14]];
    if (scene.shown.has("labels")) {
      const named = data.frames.filter(f => f.named);
      if (scene.shown.has("frames")) (scene.shown.has("all frames") || !named.length ? data.frames : named).forEach(f => wanted.push([f.name, at(scene.frameMatrix(state.poses, data.frames.indexOf(f)))]));
      else if (scene.shown.has("joint axes")) data.joints.forEach(j => wanted.push([j.name, at(scene.bodies[j.body])]));
      else data.bodies.slice(0, -1).forEach((b, k) => wanted.push([b.name, pb.math.point(scene.bodies[k], b.com)]));
    }
    scene.parts.forEach(part => { if (part.label) wanted.push([part.label, at(part.matrix), "missing"]); });
    if (scene.selected && scene.selected.kind === "frame") wanted.unshift([data.frames[scene.selected.index].name, at(scene.frameMatrix(state.poses, scene.selected.index))]);
    if (!scene.com.hidden) wanted.unshift(["centre of mass", scene.center]);
    const taken = [], made = [];
    for (const [text, place, kind] of wanted) {
      const p = this.project(place);
      if (!p) continue;
      const box = [p[0] + 10, p[1] - 9, p[0] + 24 + 6.6 * text.length, p[1] + 9];
      if (taken.some(o => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) continue;  // none over another
      if (box[2] > innerWidth * (1 - this.covered()) || p[0] < 0 || p[1] < 48 || p[1] > this.canvas.clientHeight - 10) continue;
      taken.push(box);
      made.push(pb.h("span", { style: `left:${p[0].toFixed(1)}px;top:${p[1].toFixed(1)}px`, class: kind || "" }, text));
    }
    host.replaceChildren(...made);
  }

  // How long a metre, a newton and an ellipsoid are drawn, at the distance of the point looked at.
  drawScales() {
    const { scene, data } = this, { h } = pb, rows = [];
    const pixels = this.canvas.clientHeight / (2 * this.camera.distance * Math.tan(this.camera.fov / 2));
    const line = (length, color, arrow) => {
      const l = Math.max(14, Math.min(170, length));
      const head = arrow ? `<path d="M${l} 6l-8-4.5v9z" fill="${color}"/>` + (arrow === 2 ? `<path d="M${l - 7} 6l-8-4.5v9z" fill="${color}"/>` : "") : `<path d="M1 2v8M${l - 1} 2v8" stroke="${color}" stroke-width="2"/>`;
      const span = h("span"); span.style.background = "none"; span.style.padding = "0";
      span.innerHTML = `<svg width="${l}" height="12"><path d="M0 6H${l - (arrow ? 6 : 0)}" stroke="${color}" stroke-width="2"/>${head}</svg>`;
      return span;
    };
    const metre = pb.math.round(130 / pixels);
    rows.push(h("div", { "data-scale": "length" }, line(metre * pixels, "currentColor", 0), h("span", {}, `${pb.show(metre)} m${scene.shown.has("grid") ? ` · grid ${pb.show(scene.cell / 5)} m` : ""}`)));
    for (const layer of data.layers) {
      const value = scene.scales[layer.key];
      if (!scene.shown.has(layer.key) || !value) continue;
      const color = `rgb(${(pb.arrowColors[layer.key] || [0.5, 0.5, 0.5]).map(x => Math.round(255 * x))})`;
      rows.push(h("div", { "data-scale": layer.key }, line(0.2 * data.size * scene.arrowLength * pixels, color, layer.moment ? 2 : 1), h("span", {}, `${pb.show(value)} ${layer.unit} · ${layer.key}`)));
    }
    if (scene.shown.has("inertia ellipsoids")) rows.push(h("div", { "data-scale": "ellipsoids" }, h("span", {}, `ellipsoids of equal inertia, 1 : ${pb.show(1 / scene.ellipsoidScale, 3)} of their size`)));
    const box = document.getElementById("scales"), time = document.getElementById("line");
    box.style.bottom = `${time.hidden ? innerHeight - this.canvas.clientHeight + 14 : innerHeight - time.getBoundingClientRect().top + 9}px`;
    box.replaceChildren(...rows);
  }

  pickAt(at) {
    const ratio = this.canvas.width / this.canvas.clientWidth;
    return this.scene.ids[this.renderer.pick(this.scene.items(), this.world, Math.round(at[0] * ratio), Math.round(at[1] * ratio))] || null;
  }

  click(at) { const found = this.pickAt(at); if (!found || found.kind !== "handle") this.select(found); }
  hover() {}

  select(what) {
    this.scene.selected = what;
    this.card.show(what);
    if (what && this.link) this.sendLayers();
    this.redraw();
  }

  chooseDrag(name) {
    this.dragging = name || null;
    if (this.dragFrame) this.dragFrame.value = name;
    this.placeHandle();
    this.redraw();
  }

  toggleHand() { this.hand = !this.hand; document.getElementById("hand").classList.toggle("on", this.hand); }

  grab(at, e) {
    if (!this.link || this.player) return null;
    const found = this.pickAt(at);
    if (!found) return null;
    if (found.kind === "handle") {
      const place = [this.scene.handle.matrix[12], this.scene.handle.matrix[13], this.scene.handle.matrix[14]];
      this.grabbed = { kind: "frame", frame: this.dragging, start: place, from: this.unproject(at, place), target: place };
      return this.grabbed;
    }
    if (!(e.ctrlKey || e.metaKey || this.hand) || found.kind === "frame") return null;
    const body = found.kind === "joint" ? this.data.joints[found.index].body : found.index, own = this.data.bodies[body];
    if (body >= this.data.bodies.length - 1) return null;
    const matrix = this.scene.bodies[body], m = pb.math, point = this.unproject(at, m.point(matrix, own.com));
    const d = m.sub(point, [matrix[12], matrix[13], matrix[14]]), column = k => [matrix[4 * k], matrix[4 * k + 1], matrix[4 * k + 2]];
    const local = [0, 1, 2].map(k => m.dot(d, column(k)));
    if (this.data.live) this.grabbed = { kind: "pull", body, local, through: point };
    else this.grabbed = { kind: "frame", frame: own.name, start: [matrix[12], matrix[13], matrix[14]], from: point, target: point };
    return this.grabbed;
  }

  drag(at) {
    const g = this.grabbed, m = pb.math;
    if (!g) return;
    if (g.kind === "pull") {
      const now = m.point(this.scene.bodies[g.body], g.local), target = this.unproject(at, now);
      this.scene.showPull(now, target);
      this.command({ do: "pull", body: g.body, local: g.local, target }, true);
    } else {
      g.target = m.add(g.start, m.sub(this.unproject(at, g.from), g.from));
      this.placeHandle();
      this.command({ do: "drag", frame: g.frame, target: g.target, turn: !!(this.keepTurn && this.keepTurn.checked) }, true);
    }
    this.dirty = true;
  }

  release() {
    if (this.grabbed && this.grabbed.kind === "pull") { this.link.forget("pull"); this.command({ do: "release" }); this.scene.showPull(null); }
    this.grabbed = null;
    this.placeHandle();
    this.redraw();
  }

  toggle(key, on = !this.scene.shown.has(key)) {
    if (on) this.scene.shown.add(key); else this.scene.shown.delete(key);
    if (this.showBoxes[key]) this.showBoxes[key].checked = on;
    this.sendLayers();
    this.redraw();
  }

  sendLayers() {
    if (!this.link || this.player) return;
    const keys = this.data.layers.map(l => l.key).filter(k => this.scene.shown.has(k));
    if (this.scene.selected && this.scene.selected.kind === "joint") keys.push(...this.data.layers.map(l => l.key).filter(k => k.startsWith("reaction")));
    this.command({ do: "layers", keys: [...new Set(keys)] });
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.classList.toggle("dark", theme === "dark");
    if (this.state) this.redraw();
  }

  togglePanel() {
    const away = document.getElementById("panel").classList.toggle("away");
    document.body.classList.toggle("wide", away);
    this.resize();
  }

  picture() { this.draw(); this.canvas.toBlob(blob => pb.download(`${this.data.name}.png`, blob), "image/png"); }

  // A free motion, there and back, as long as it is chosen.
  playMotion(motion) {
    this.motion = motion;
    this.motionStart = performance.now();
    document.querySelectorAll("[data-motion]").forEach(b => b.classList.toggle("on", !!motion && b.textContent === motion.name));
    if (!motion) { const s = this.frameState || this.data.state; if (this.player) this.player.go(this.player.time); else this.showState(s); }
    this.wake();
  }

  playFrame(now) {
    const { motion } = this, bodies = this.data.bodies.length - 1, n = motion.poses.length / (7 * bodies);
    if (motion.layer) { const s = this.frameState || this.data.state, swing = Math.sin((now - this.motionStart) / 700);
      this.scene.shown.add("internal loads");
      const key = motion.layer.key, values = Float32Array.from(motion.layer.values, (x, k) => k % 6 < 3 ? x : x * swing);
      this.showState({ ...s, layers: { ...s.layers, [key]: values }, largest: { [key]: motion.layer.largest } });
      return; }
    const phase = (0.5 - 0.5 * Math.cos((now - this.motionStart) / 1000 * 2.2)) * (n - 1), k = Math.min(n - 2, Math.floor(phase));
    const poses = new Float32Array(7 * bodies);
    for (let b = 0; b < bodies; b++) pb.math.between(motion.poses, 7 * (k * bodies + b), motion.poses, 7 * ((k + 1) * bodies + b), phase - k, poses, 7 * b);
    const s = this.frameState || this.data.state;
    this.showState({ ...s, poses, layers: {} });
  }

  key(e) {
    if (e.target.matches("input[type=text], input[type=number], select") || e.altKey || e.metaKey || e.ctrlKey) return;
    const act = { " ": () => this.playOrPause(), ArrowRight: () => this.stepBy(1), ArrowLeft: () => this.stepBy(-1), r: () => this.reset(), f: () => this.frameView(),
      d: () => this.setTheme(this.theme === "dark" ? "light" : "dark"), l: () => this.toggle("labels"), a: () => this.toggle("frames"), j: () => this.toggle("joint axes"),
      m: () => this.toggle("centre of mass"), i: () => this.toggle("inertia ellipsoids"), g: () => this.toggle("grid"), t: () => this.toggle("transparent"),
      p: () => this.picture(), c: () => this.togglePanel(), h: () => this.online && this.toggleHand(), "?": () => this.showHelp(), Escape: () => { this.select(null); document.getElementById("help").hidden = true; },
      Home: () => this.player && (this.player.pause(), this.player.go(this.player.start)), End: () => this.player && (this.player.pause(), this.player.go(this.player.end)),
      "+": () => this.faster(2), "-": () => this.faster(0.5) }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!act || (e.target.matches("input[type=range]") && e.key.startsWith("Arrow"))) return;
    e.preventDefault();
    act();
  }

  playOrPause() { if (this.player) this.player.toggle(); else if (this.live) this.command({ do: "option", key: "running", value: !this.live.running }); }
  stepBy(by) { if (this.player) this.player.step(by); else if (this.live && by > 0) this.command({ do: "step" }); }
  reset() { if (this.player) { this.player.pause(); this.player.go(this.player.start); } else this.command({ do: "reset" }); }
  faster(factor) {
    if (this.player) { const box = this.player.speedBox, k = Math.max(0, Math.min(box.options.length - 1, box.selectedIndex + (factor > 1 ? 1 : -1))); box.selectedIndex = k; this.player.speed = +box.value; }
    else if (this.live) this.command({ do: "option", key: "speed", value: Math.max(0.01, Math.min(4, this.live.speed * factor)) });
  }

  showHelp() {
    const { h } = pb, box = document.getElementById("help"), rows = [["drag", "turn"], ["right or Shift drag, two fingers", "move"], ["wheel, pinch", "nearer, farther"], ["click", "pick a body, joint or frame"],
      ["Ctrl drag, or hand", this.data.live ? "pull a body with a spring" : "drag a body: inverse kinematics"], ["space", "play or pause"], ["← →", "one step"], ["Home End", "first, last state"], ["R", "reset"], ["+ −", "faster, slower"],
      ["F", "frame the mechanism"], ["A J M I L", "frames, joint axes, mass centre, inertia ellipsoids, labels"], ["G T", "grid, transparent"], ["D", "dark or light"], ["C", "controls"], ["P", "picture"], ["H", "hand"], ["Esc", "close"]];
    box.replaceChildren(h("div", {}, h("h2", {}, "Keyboard and mouse"), h("table", { class: "facts" }, ...rows.map(([a, b]) => h("tr", {}, h("td", {}, h("kbd", {}, a)), h("td", {}, b)))), h("p", { class: "note" }, "x red, y green, z blue. Lengths in m, angles in rad, forces in N, moments in N m.")));
    box.hidden = !box.hidden;
    box.onclick = () => { box.hidden = true; };
  }

  // For those who look from outside: what is shown, as numbers.
  report() {
    const { scene, state, camera } = this, p = this.player;
    return { t: state.t, coordinates: state.values.coordinates ? [...state.values.coordinates] : null, poses: [...state.poses], shown: [...scene.shown],
      layers: Object.fromEntries(Object.entries(state.layers || {}).map(([k, v]) => [k, v.length / 6])), scales: { ...scene.scales }, arrows: scene.arrows.length,
      selected: scene.selected, ghosts: scene.ghosts.length, paths: [...scene.paths.keys()], floor: scene.floorHeight, drawn: this.renderer.drawn, theme: this.theme,
      camera: { azimuth: camera.azimuth, elevation: camera.elevation, distance: camera.distance, target: camera.target }, messages: this.messages.slice(-20),
      playing: p ? p.playing : this.live ? !!this.live.running : false, live: this.live, frames: this.link ? this.link.frames : 0,
      charts: this.plots ? this.plots.charts.map(c => ({ unit: c.options.unit, curves: c.options.curves.map(x => x.label), low: c.y0, high: c.y1, at: c.at })) : [] };
  }
};

pb.begin = async () => {
  const text = document.getElementById("data").textContent.trim();
  let bytes, online = null;
  try {
    if (text) bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    else {
      const answer = await fetch("scene.bin");
      if (!answer.ok) throw new Error(`the scene could not be fetched (${answer.status})`);
      bytes = await answer.arrayBuffer();
      online = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "").replace(/\/$/, "") + "/socket";
    }
    window.polybody = new pb.App(await pb.unpack(bytes), online);
  } catch (error) {
    const box = document.getElementById("notice");
    box.hidden = false;
    box.textContent = `the page could not be shown: ${error.message}`;
    throw error;
  }
};
pb.begin();
