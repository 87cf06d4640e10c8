// Labels over the scene, without overlap, and the scales of lengths, forces and ellipsoids.

pb.drawLabels = app => {
  const { data, scene, state } = app,
    wanted = [],
    host = document.getElementById("labels");
  const at = m => [m[12], m[13], m[14]];
  if (scene.shown.has("labels")) {
    const named = data.frames.filter(f => f.named);
    if (scene.shown.has("frames"))
      (scene.shown.has("all frames") || !named.length ? data.frames : named).forEach(f =>
        wanted.push([f.name, at(scene.frameMatrix(state.poses, data.frames.indexOf(f)))]),
      );
    else if (scene.shown.has("joint axes")) data.joints.forEach(j => wanted.push([j.name, at(scene.bodies[j.body])]));
    else data.bodies.slice(0, -1).forEach((b, k) => wanted.push([b.name, pb.math.point(scene.bodies[k], b.com)]));
  }
  scene.parts.forEach(part => {
    if (part.label) wanted.push([part.label, at(part.matrix), "missing"]);
  });
  if (scene.selected && scene.selected.kind === "frame")
    wanted.unshift([data.frames[scene.selected.index].name, at(scene.frameMatrix(state.poses, scene.selected.index))]);
  if (!scene.com.hidden) wanted.unshift(["centre of mass", scene.center]);
  const taken = [],
    made = [];
  for (const [text, place, kind] of wanted) {
    const p = app.project(place);
    if (!p) continue;
    const box = [p[0] + 10, p[1] - 9, p[0] + 24 + 6.6 * text.length, p[1] + 9];
    if (taken.some(o => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) continue; // none over another
    if (box[2] > innerWidth * (1 - app.covered()) || p[0] < 0 || p[1] < 48 || p[1] > app.canvas.clientHeight - 10)
      continue;
    taken.push(box);
    made.push(pb.h("span", { style: `left:${p[0].toFixed(1)}px;top:${p[1].toFixed(1)}px`, class: kind || "" }, text));
  }
  host.replaceChildren(...made);
};

// Scales of a metre, a newton and an ellipsoid, at the distance of the camera target.
pb.drawScales = app => {
  const { scene, data } = app,
    { h } = pb,
    rows = [];
  const pixels = app.canvas.clientHeight / (2 * app.camera.distance * Math.tan(app.camera.fov / 2));
  const line = (length, color, arrow) => {
    const l = Math.max(14, Math.min(170, length));
    const head = arrow
      ? `<path d="M${l} 6l-8-4.5v9z" fill="${color}"/>` +
        (arrow === 2 ? `<path d="M${l - 7} 6l-8-4.5v9z" fill="${color}"/>` : "")
      : `<path d="M1 2v8M${l - 1} 2v8" stroke="${color}" stroke-width="2"/>`;
    const span = h("span");
    span.style.background = "none";
    span.style.padding = "0";
    span.innerHTML = `<svg width="${l}" height="12"><path d="M0 6H${l - (arrow ? 6 : 0)}" stroke="${color}" stroke-width="2"/>${head}</svg>`;
    return span;
  };
  const metre = pb.math.round(130 / pixels);
  rows.push(
    h(
      "div",
      { "data-scale": "length" },
      line(metre * pixels, "currentColor", 0),
      h("span", {}, `${pb.show(metre)} m${scene.shown.has("grid") ? ` · grid ${pb.show(scene.cell / 5)} m` : ""}`),
    ),
  );
  for (const layer of data.layers) {
    const value = scene.scales[layer.key];
    if (!scene.shown.has(layer.key) || !value) continue;
    const color = `rgb(${(pb.arrowColors[layer.key] || [0.5, 0.5, 0.5]).map(x => Math.round(255 * x))})`;
    rows.push(
      h(
        "div",
        { "data-scale": layer.key },
        line(0.2 * data.size * scene.arrowLength * pixels, color, layer.moment ? 2 : 1),
        h("span", {}, `${pb.show(value)} ${layer.unit} · ${layer.key}`),
      ),
    );
  }
  if (scene.shown.has("inertia ellipsoids"))
    rows.push(
      h(
        "div",
        { "data-scale": "ellipsoids" },
        h("span", {}, `ellipsoids of equal inertia, 1 : ${pb.show(1 / scene.ellipsoidScale, 3)} of their true size`),
      ),
    );
  const box = document.getElementById("scales"),
    time = document.getElementById("line");
  box.style.bottom = `${time.hidden ? innerHeight - app.canvas.clientHeight + 14 : innerHeight - time.getBoundingClientRect().top + 9}px`;
  box.replaceChildren(...rows);
};
