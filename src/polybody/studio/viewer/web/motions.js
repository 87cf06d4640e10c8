// Motions of analyses: free motions back and forth, internal loads of varying size.

// A free motion, back and forth, while it is selected.
pb.playMotion = (app, motion) => {
  app.motion = motion;
  app.motionStart = performance.now();
  document
    .querySelectorAll("[data-motion]")
    .forEach(b => b.classList.toggle("on", !!motion && b.textContent === motion.name));
  if (!motion) {
    const s = app.frameState || app.data.state;
    if (app.player) app.player.go(app.player.time);
    else app.showState(s);
  }
  app.wake();
};

pb.playFrame = (app, now) => {
  const { motion } = app,
    bodies = app.data.bodies.length - 1,
    n = motion.poses.length / (7 * bodies);
  if (motion.layer) {
    const s = app.frameState || app.data.state,
      swing = Math.sin((now - app.motionStart) / 700);
    app.scene.shown.add("internal loads");
    const key = motion.layer.key,
      values = Float32Array.from(motion.layer.values, (x, k) => (k % 6 < 3 ? x : x * swing));
    app.showState({ ...s, layers: { ...s.layers, [key]: values }, largest: { [key]: motion.layer.largest } });
    return;
  }
  const phase = (0.5 - 0.5 * Math.cos(((now - app.motionStart) / 1000) * 2.2)) * (n - 1),
    k = Math.min(n - 2, Math.floor(phase));
  const poses = new Float32Array(7 * bodies);
  for (let b = 0; b < bodies; b++)
    pb.math.between(
      motion.poses,
      7 * (k * bodies + b),
      motion.poses,
      7 * ((k + 1) * bodies + b),
      phase - k,
      poses,
      7 * b,
    );
  const s = app.frameState || app.data.state;
  app.showState({ ...s, poses, layers: {} });
};
