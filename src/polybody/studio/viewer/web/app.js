// The page: combines scene, controls, player and connection.
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
      grab: (at, e) => pb.grab(this, at, e),
      drag: at => pb.drag(this, at),
      release: () => pb.release(this),
      changed: () => this.redraw(),
      click: at => this.click(at),
      hover: at => this.hover(at),
    });
    addEventListener("resize", () => this.resize());
    addEventListener("keydown", e => pb.key(this, e));
    this.resize();
    if (this.player) this.player.go(this.player.start);
    else this.showState(data.state);
    this.frameView();
    this.loop();
    if (online) this.link = new pb.Link(this, online);
  }

  makeBar() {
    const { h } = pb,
      button = (id, title, icon, act) =>
        h("button", { id, class: "icon", title, "aria-label": title, onclick: act }, pb.icon(icon));
    document.getElementById("bar").replaceChildren(
      h("h1", { title: this.data.name }, this.data.name),
      button("frame-view", "fit the view (F)", "frame", () => {
        this.frameView();
      }),
      ...(this.online ? [button("hand", "hand: drag bodies without Ctrl (H)", "hand", () => this.toggleHand())] : []),
      button("theme", "dark or light theme (D)", "theme", () => this.setTheme(this.theme === "dark" ? "light" : "dark")),
      button("picture", "save an image (P)", "picture", () => this.picture()),
      button("panel-button", "controls (C)", "menu", () => this.togglePanel()),
      button("help-button", "keyboard and mouse (?)", "help", () => pb.showHelp(this)),
    );
  }

  makePanel() {
    const host = document.getElementById("panel"),
      { data } = this;
    if (data.runs.length) {
      this.player = new pb.Player(
        this,
        data.runs.map(run => new pb.Run(run, data.bodies.length - 1)),
      );
      pb.runsSection(this, host);
    }
    if (data.live) {
      this.recorder = new pb.Recorder(data.bodies.length - 1);
      pb.liveSection(this, host);
    }
    if (data.mode === "pose" || data.live) pb.poseSection(this, host);
    if (this.online && (data.mode === "pose" || data.live)) pb.dragSection(this, host);
    if (this.player || this.recorder) {
      this.plots = new pb.Plots(this, host);
      this.plots.rebuild();
    }
    pb.showSection(this, host);
    if (this.online || data.analyses) pb.analysisSection(this, host);
    pb.bodyList(this, host);
  }

  // Messages from the program.
  told(message) {
    if (message.k === "frame") {
      this.frameState = { t: message.t, poses: message.poses, values: message.values, layers: message.layers };
      if (this.recorder) this.recorder.add(this.frameState);
      if (message.live) this.showLive(message.live);
      if (!this.player && !this.motion) this.showState(this.frameState);
      if (this.coordinates)
        this.coordinates.refuse(
          message.refused ? message.refused.key : null,
          message.refused ? message.refused.value : null,
        );
    } else if (message.k === "notice") this.say(message.text, message.level, message.stays);
    else if (message.k === "settings") {
      this.live = { ...this.live, ...message.live };
      this.showSettings();
    } else if (message.k === "configurations" && this.showConfigurations) this.showConfigurations(message.names);
    else if (message.k === "analyses") {
      this.analyses = message;
      this.showAnalyses(message);
    } else if (message.k === "clear") this.say(null);
  }

  command(command, continuous = false) {
    if (!this.link) return;
    if (continuous) this.link.stream(command);
    else this.link.send(command);
  }

  connected() {
    this.sendLayers();
  }

  showSettings() {
    for (const [key, control] of Object.entries(this.liveControls || {}))
      if (this.live[key] !== undefined) control.value = this.live[key];
    if (this.runButton) {
      this.runButton.textContent = this.live.running ? "pause" : "run";
      this.runButton.classList.toggle("on", this.live.running);
    }
    document.getElementById("live-note").textContent = this.live.note || "";
  }

  showLive(live) {
    const put = (id, text) => {
      const box = document.getElementById(id);
      if (box) box.textContent = text;
    };
    put("live-time", `${this.frameState.t.toFixed(3)} s`);
    put("live-kinetic", `${pb.show(live.kinetic)} J`);
    put("live-potential", `${pb.show(live.potential)} J`);
    put("live-total", `${pb.show(live.kinetic + live.potential)} J`);
    put("live-residual", `${pb.show(live.residual, 2)}`);
    put("live-factor", live.factor === null ? "paused" : `${live.factor.toFixed(2)} ×`);
    this.scene.showGoal(live.goal || null);
    if (live.goal_poses) this.scene.placeGhosts([{ poses: live.goal_poses, tint: [0.1, 0.7, 0.45], opacity: 0.22 }]);
    else if (!this.player) this.scene.placeGhosts([]);
    const now = performance.now();
    if (this.plots && now - (this.plotted || 0) > 400) {
      this.plotted = now;
      this.plots.draw();
    }
  }

  say(text, level = "error", stays = false) {
    const box = document.getElementById("notice");
    clearTimeout(this.quiet);
    box.hidden = !text;
    if (!text) return;
    this.messages.push(text);
    box.textContent = text;
    box.className = level;
    if (!stays)
      this.quiet = setTimeout(
        () => {
          box.hidden = true;
        },
        level === "info" ? 2500 : 9000,
      );
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
    if (frame < 0) {
      this.scene.showHandle(null);
      return;
    }
    if (this.grabbed && this.grabbed.kind === "frame") this.scene.showHandle(this.grabbed.target);
    else {
      const at = this.scene.frameMatrix(this.state.poses, frame);
      this.scene.showHandle([at[12], at[13], at[14]]);
    }
  }

  redraw() {
    if (this.state) this.scene.place(this.state);
    this.dirty = true;
    this.wake();
  }
  wake() {
    if (this.asleep) {
      this.asleep = false;
      requestAnimationFrame(now => this.frame(now));
    }
  }

  loop() {
    this.asleep = true;
    this.wake();
  }

  frame(now) {
    if (this.player) this.player.tick(now);
    if (this.motion) pb.playFrame(this, now);
    if (this.dirty) {
      this.dirty = false;
      this.draw();
    }
    if (this.dirty || (this.player && this.player.playing) || this.motion) requestAnimationFrame(n => this.frame(n));
    else this.asleep = true;
  }

  draw() {
    this.world = this.scene.world(this.camera, this.theme);
    this.renderer.render(this.scene.items(), this.world);
    pb.drawLabels(this);
    pb.drawScales(this);
  }

  covered() {
    const p = document.getElementById("panel");
    return innerWidth <= 760 || p.classList.contains("away") ? 0 : p.offsetWidth / innerWidth;
  }

  resize() {
    const phone = innerWidth <= 760,
      below = phone && !document.getElementById("panel").classList.contains("away") ? 0.42 : 0;
    const high = Math.round(innerHeight * (1 - below)),
      ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.style.height = `${high}px`;
    this.canvas.width = Math.round(innerWidth * ratio);
    this.canvas.height = Math.round(high * ratio);
    this.camera.aspect = this.canvas.width / this.canvas.height;
    this.camera.shift = this.covered();
    const bar = document.getElementById("bar").getBoundingClientRect(),
      line = document.getElementById("line");
    this.camera.top = phone ? bar.bottom / high : 0; // on wide screens they leave the middle free
    this.camera.foot = phone && line.offsetHeight ? (line.offsetHeight + 12) / high : 0;
    if (this.plots) this.plots.charts.forEach(chart => chart.draw());
    this.redraw();
  }

  frameView() {
    const { low, high } = this.data,
      margin = 0.02 * this.data.size;
    this.camera.azimuth = this.data.view ? this.data.view[0] : -0.72;
    this.camera.elevation = this.data.view ? this.data.view[1] : 0.36;
    this.camera.frame(
      low.map(x => x - margin),
      high.map(x => x + margin),
      this.covered(),
    );
    this.redraw();
  }

  project(p) {
    const { view, projection } = this.world.camera,
      m = pb.math,
      v = m.point(view, p),
      w = -v[2];
    const x = (projection[0] * v[0] + projection[8] * v[2]) / w,
      y = (projection[5] * v[1] + projection[9] * v[2]) / w;
    return w > 0 ? [((x + 1) / 2) * this.canvas.clientWidth, ((1 - y) / 2) * this.canvas.clientHeight, w] : null;
  }

  // The point under the pointer in the plane through a point that faces the camera.
  unproject(at, through) {
    const { view, projection, eye } = this.camera.matrices(),
      m = pb.math;
    const depth = -m.point(view, through)[2],
      w = this.canvas.clientWidth,
      h = this.canvas.clientHeight;
    const x = (((2 * at[0]) / w - 1 + projection[8]) * depth) / projection[0],
      y = ((1 - (2 * at[1]) / h + projection[9]) * depth) / projection[5];
    const right = [view[0], view[4], view[8]],
      top = [view[1], view[5], view[9]],
      back = [view[2], view[6], view[10]];
    return m.add(eye, m.add(m.add(m.scale(right, x), m.scale(top, y)), m.scale(back, -depth)));
  }

  pickAt(at) {
    const ratio = this.canvas.width / this.canvas.clientWidth;
    return (
      this.scene.ids[
        this.renderer.pick(this.scene.items(), this.world, Math.round(at[0] * ratio), Math.round(at[1] * ratio))
      ] || null
    );
  }

  click(at) {
    const found = this.pickAt(at);
    if (!found || found.kind !== "handle") this.select(found);
  }
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

  toggleHand() {
    this.hand = !this.hand;
    document.getElementById("hand").classList.toggle("on", this.hand);
  }

  toggle(key, on = !this.scene.shown.has(key)) {
    if (on) this.scene.shown.add(key);
    else this.scene.shown.delete(key);
    if (this.showBoxes[key]) this.showBoxes[key].checked = on;
    this.sendLayers();
    this.redraw();
  }

  sendLayers() {
    if (!this.link || this.player) return;
    const keys = this.data.layers.map(l => l.key).filter(k => this.scene.shown.has(k));
    if (this.scene.selected && this.scene.selected.kind === "joint")
      keys.push(...this.data.layers.map(l => l.key).filter(k => k.startsWith("reaction")));
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

  picture() {
    this.draw();
    this.canvas.toBlob(blob => pb.download(`${this.data.name}.png`, blob), "image/png");
  }

  playOrPause() {
    if (this.player) this.player.toggle();
    else if (this.live) this.command({ do: "option", key: "running", value: !this.live.running });
  }
  stepBy(by) {
    if (this.player) this.player.step(by);
    else if (this.live && by > 0) this.command({ do: "step" });
  }
  reset() {
    if (this.player) {
      this.player.pause();
      this.player.go(this.player.start);
    } else this.command({ do: "reset" });
  }
  // State of the page as numbers, for tests and scripts.
  report() {
    const { scene, state, camera } = this,
      p = this.player;
    return {
      t: state.t,
      coordinates: state.values.coordinates ? [...state.values.coordinates] : null,
      poses: [...state.poses],
      shown: [...scene.shown],
      layers: Object.fromEntries(Object.entries(state.layers || {}).map(([k, v]) => [k, v.length / 6])),
      scales: { ...scene.scales },
      arrows: scene.arrows.length,
      selected: scene.selected,
      ghosts: scene.ghosts.length,
      paths: [...scene.paths.keys()],
      floor: scene.floorHeight,
      drawn: this.renderer.drawn,
      theme: this.theme,
      camera: {
        azimuth: camera.azimuth,
        elevation: camera.elevation,
        distance: camera.distance,
        target: camera.target,
      },
      messages: this.messages.slice(-20),
      playing: p ? p.playing : this.live ? !!this.live.running : false,
      live: this.live,
      frames: this.link ? this.link.frames : 0,
      charts: this.plots
        ? this.plots.charts.map(c => ({
            unit: c.options.unit,
            curves: c.options.curves.map(x => x.label),
            low: c.y0,
            high: c.y1,
            at: c.at,
          }))
        : [],
    };
  }
};
