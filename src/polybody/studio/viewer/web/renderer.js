// Triangles on a WebGL 2 canvas: one sun with soft shadows, a sky, a floor with a grid that fades, and a buffer to pick from.
pb.Renderer = class {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: true, alpha: false, preserveDrawingBuffer: true }));
    if (!gl) throw new Error("this browser does not support WebGL 2");
    const about = gl.getExtension("WEBGL_debug_renderer_info");
    this.slow = !!about && /swiftshader|llvmpipe|software/i.test(gl.getParameter(about.UNMASKED_RENDERER_WEBGL)); // no graphics card
    this.shadowSize = this.slow ? 1024 : 2048;
    this.makePrograms();
    this.makeShadow();
    this.floor = this.mesh({
      positions: new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]),
      normals: new Float32Array([0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]),
      indices: new Uint32Array([0, 1, 2, 0, 2, 3]),
    });
    this.drawn = 0;
  }

  makePrograms() {
    const head = "#version 300 es\nprecision highp float;\nprecision highp sampler2DShadow;\n";
    const vertex =
      head +
      `
      layout(location=0) in vec3 position; layout(location=1) in vec3 normal; layout(location=2) in vec3 tint;
      uniform mat4 model, view, projection, sun;
      out vec3 vNormal, vPlace, vTint; out vec4 vSun;
      void main() {
        vec4 place = model * vec4(position, 1.0);
        vNormal = transpose(inverse(mat3(model))) * normal; vPlace = place.xyz; vTint = tint;
        vSun = sun * vec4(place.xyz + normalize(vNormal) * 0.0, 1.0);
        gl_Position = projection * view * place;
      }`;
    const taps = this.slow ? 1 : 2,
      shade = `
      uniform sampler2DShadow shadow;
      float lit(vec4 at, float bias) {
        vec3 p = at.xyz / at.w * 0.5 + 0.5;
        if (any(lessThan(p, vec3(0.0))) || any(greaterThan(p, vec3(1.0)))) return 1.0;
        float sum = 0.0;
        for (int i = -${taps}; i <= ${taps}; i++) for (int j = -${taps}; j <= ${taps}; j++)
          sum += texture(shadow, vec3(p.xy + vec2(i, j) * 1.1 / ${this.shadowSize}.0, p.z - bias));
        return sum / ${(2 * taps + 1) ** 2}.0;
      }`;
    this.main = this.program(
      vertex,
      head +
        shade +
        `
      in vec3 vNormal, vPlace, vTint; in vec4 vSun; out vec4 color;
      uniform vec3 base, eye, up, toSun, sky, earth; uniform float opacity, glow, tinted, flatness;
      void main() {
        vec3 N = normalize(vNormal), V = normalize(eye - vPlace);
        if (dot(N, V) < 0.0) N = -N;
        vec3 albedo = pow(mix(base, vTint, tinted), vec3(2.2));
        float facing = dot(N, toSun), s = lit(vSun, 0.0012 + 0.003 * (1.0 - max(facing, 0.0)));
        vec3 H = normalize(V + toSun), F = normalize(V - toSun * 0.35 + up * 0.3);
        float wrap = max(facing, 0.0) * s, fill = max(dot(N, F), 0.0);
        vec3 ambient = mix(earth, sky, dot(N, up) * 0.5 + 0.5);
        vec3 lightIn = ambient * 0.62 + vec3(1.0, 0.97, 0.92) * wrap * 0.95 + fill * 0.16;
        float rim = pow(1.0 - max(dot(N, V), 0.0), 3.0);
        vec3 shine = vec3(0.16) * pow(max(dot(N, H), 0.0), 42.0) * s + sky * rim * 0.07;
        vec3 result = mix(albedo * lightIn + shine, albedo, flatness);
        result = mix(result, vec3(1.0, 0.62, 0.12), glow * (0.25 + 0.5 * rim));
        color = vec4(pow(clamp(result, 0.0, 1.0), vec3(1.0 / 2.2)), opacity);
      }`,
    );
    this.ground = this.program(
      vertex,
      head +
        shade +
        `
      in vec3 vNormal, vPlace, vTint; in vec4 vSun; out vec4 color;
      uniform vec3 eye, across, ahead, center, line, floorColor; uniform float cell, reach, strength, grid;
      float lines(vec2 p, float width) {
        vec2 w = fwidth(p), d = abs(fract(p - 0.5) - 0.5) / w;
        return (1.0 - min(min(d.x, d.y) / width, 1.0)) * clamp(1.0 - 3.0 * max(w.x, w.y), 0.0, 1.0);
      }
      void main() {
        vec2 p = vec2(dot(vPlace, across), dot(vPlace, ahead));
        float r = length(vPlace - center) / reach, fade = 1.0 - smoothstep(0.25, 1.0, r);
        float thick = lines(p / cell, 1.4), thin = lines(p / cell * 5.0, 1.0);
        float dark = (1.0 - lit(vSun, 0.0008)) * strength;
        float g = max(thick * 0.75, thin * 0.33) * fade * grid;
        float disc = (1.0 - smoothstep(0.0, 1.0, r)) * 0.35;
        vec3 c = mix(floorColor, line, g / max(g + disc * 0.6, 1e-4));
        c = mix(c, vec3(0.02, 0.03, 0.06), dark);
        color = vec4(c, max(max(g, disc), dark * (1.0 - smoothstep(0.7, 1.0, r))));
      }`,
    );
    this.depth = this.program(
      head +
        `layout(location=0) in vec3 position; uniform mat4 model, sun;
      void main() { gl_Position = sun * model * vec4(position, 1.0); }`,
      head + "void main() {}",
    );
    this.flat = this.program(
      head +
        `layout(location=0) in vec3 position; uniform mat4 model, view, projection;
      void main() { gl_Position = projection * view * model * vec4(position, 1.0); }`,
      head + "uniform vec3 base; out vec4 color; void main() { color = vec4(base, 1.0); }",
    );
    this.backdrop = this.program(
      head +
        `out vec2 at; void main() {
      at = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2); gl_Position = vec4(at * 2.0 - 1.0, 0.9999, 1.0); }`,
      head +
        "in vec2 at; uniform vec3 top, bottom; out vec4 color; void main() { color = vec4(mix(bottom, top, at.y), 1.0); }",
    );
  }

  program(vertex, fragment) {
    const gl = this.gl,
      made = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const places = {};
    for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
      const { name } = gl.getActiveUniform(made, k);
      places[name] = gl.getUniformLocation(made, name);
    }
    return { made, places };
  }

  makeShadow() {
    const gl = this.gl;
    this.shadowMap = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    gl.texImage2D(
      gl.TEXTURE_2D,
      0,
      gl.DEPTH_COMPONENT24,
      this.shadowSize,
      this.shadowSize,
      0,
      gl.DEPTH_COMPONENT,
      gl.UNSIGNED_INT,
      null,
    );
    for (const [name, value] of [
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR],
      [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
      [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ])
      gl.texParameteri(gl.TEXTURE_2D, name, value);
    this.shadowFrame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowMap, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  mesh({ positions, normals, indices, colors }) {
    const gl = this.gl,
      array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffers = [];
    const attribute = (place, data, size, type, normalized) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, type, normalized, 0, 0);
      buffers.push(buffer);
    };
    attribute(0, positions, 3, gl.FLOAT, false);
    if (normals instanceof Int8Array) attribute(1, normals, 3, gl.BYTE, true);
    else attribute(1, normals, 3, gl.FLOAT, false);
    if (colors) attribute(2, colors, 3, gl.UNSIGNED_BYTE, true);
    const index = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, index);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    return { array, count: indices.length, tinted: !!colors, buffers: [...buffers, index] };
  }

  free(mesh) {
    mesh.buffers.forEach(buffer => this.gl.deleteBuffer(buffer));
    this.gl.deleteVertexArray(mesh.array);
  }

  set(program, values) {
    const gl = this.gl;
    for (const [name, value] of Object.entries(values)) {
      const place = program.places[name];
      if (place === undefined) continue;
      if (typeof value === "number") gl.uniform1f(place, value);
      else if (value.length === 16) gl.uniformMatrix4fv(place, false, value);
      else gl.uniform3fv(place, value);
    }
  }

  draw(mesh) {
    this.gl.bindVertexArray(mesh.array);
    this.gl.drawElements(this.gl.TRIANGLES, mesh.count, this.gl.UNSIGNED_INT, 0);
  }

  // items: {mesh, matrix, color, opacity, id, glow, flat, shadow, hidden}; world: camera, bounds, floor and theme.
  render(items, world) {
    const gl = this.gl,
      m = pb.math,
      { camera, theme } = world;
    const sun = this.sunMatrix(world),
      toSun = this.toSun;
    gl.enable(gl.DEPTH_TEST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.viewport(0, 0, this.shadowSize, this.shadowSize);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.depth.made);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 3);
    for (const item of items) {
      if (item.hidden || item.shadow === false || (item.opacity ?? 1) < 0.6) continue;
      this.set(this.depth, { model: item.matrix, sun });
      this.draw(item.mesh);
    }
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.backdrop.made);
    this.set(this.backdrop, { top: theme.top, bottom: theme.bottom });
    gl.depthMask(false);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.depthMask(true);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    const common = { view: camera.view, projection: camera.projection, sun, eye: camera.eye };
    gl.useProgram(this.main.made);
    this.set(this.main, { ...common, up: world.up, toSun, sky: theme.sky, earth: theme.earth });
    for (const item of items) if (!item.hidden && (item.opacity ?? 1) >= 1 && !item.over) this.item(item);
    this.drawFloor(world, common);
    gl.useProgram(this.main.made);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    const clear = items.filter(i => !i.hidden && (i.opacity ?? 1) < 1 && !i.over);
    const far = i => -m.norm(m.sub([i.matrix[12], i.matrix[13], i.matrix[14]], camera.eye));
    for (const item of clear.sort((a, b) => far(a) - far(b))) {
      gl.colorMask(false, false, false, false); // the nearest layer alone: no inner faces shine through
      this.item(item);
      gl.colorMask(true, true, true, true);
      gl.depthFunc(gl.LEQUAL);
      this.item(item);
      gl.depthFunc(gl.LESS);
    }
    gl.disable(gl.BLEND);
    const over = items.filter(i => !i.hidden && i.over);
    if (over.length) {
      gl.clear(gl.DEPTH_BUFFER_BIT);
      for (const item of over) this.item(item);
    }
    this.drawn += 1;
  }

  item(item) {
    this.set(this.main, {
      model: item.matrix,
      base: item.color,
      opacity: item.opacity ?? 1,
      glow: item.glow ?? 0,
      tinted: item.mesh.tinted && !item.recolored ? 1 : 0,
      flatness: item.flat ?? 0,
    });
    this.draw(item.mesh);
  }

  sunMatrix(world) {
    const m = pb.math,
      up = world.up,
      side = world.across,
      ahead = m.cross(up, side);
    this.toSun = m.unit(m.add(up, m.add(m.scale(side, 0.06), m.scale(ahead, -0.55)))); // over the first viewer's left shoulder
    const r = 0.62 * world.radius + 0.02,
      eye = m.add(world.center, m.scale(this.toSun, 3 * r));
    return m.multiply(m.orthographic(r, 0.5 * r, 6 * r), m.lookAt(eye, world.center, side));
  }

  drawFloor(world, common) {
    if (!world.showFloor) return;
    const gl = this.gl,
      m = pb.math,
      { theme } = world,
      across = world.across,
      ahead = m.cross(world.up, across);
    const height = m.dot(world.center, world.up),
      reach = 3.2 * world.radius;
    const center = m.add(world.center, m.scale(world.up, world.floor - height - 1e-4 * world.radius));
    const matrix = [...m.scale(across, reach), 0, ...m.scale(ahead, reach), 0, ...world.up, 0, ...center, 1];
    gl.useProgram(this.ground.made);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthMask(false);
    this.set(this.ground, {
      ...common,
      model: matrix,
      across,
      ahead,
      center,
      line: theme.line,
      floorColor: theme.floor,
      cell: world.cell,
      reach,
      strength: theme.shadow,
      grid: world.grid ? 1 : 0,
    });
    this.draw(this.floor);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  // The id of what is seen at a pixel, 0 for nothing.
  pick(items, world, x, y) {
    const gl = this.gl,
      w = this.canvas.width,
      h = this.canvas.height;
    if (!this.pickFrame || this.pickSize !== w + "x" + h) {
      this.pickFrame = this.pickFrame || gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.pickFrame);
      for (const [place, format] of [
        [gl.COLOR_ATTACHMENT0, gl.RGBA8],
        [gl.DEPTH_ATTACHMENT, gl.DEPTH_COMPONENT16],
      ]) {
        const buffer = gl.createRenderbuffer();
        gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
        gl.renderbufferStorage(gl.RENDERBUFFER, format, w, h);
        gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, buffer);
      }
      this.pickSize = w + "x" + h;
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.pickFrame);
    gl.viewport(0, 0, w, h);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(x - 1, h - y - 2, 3, 3);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.flat.made);
    this.set(this.flat, { view: world.camera.view, projection: world.camera.projection });
    const solid = items.filter(i => !i.hidden && i.id && !i.over),
      over = items.filter(i => !i.hidden && i.id && i.over);
    const paint = item => {
      this.set(this.flat, { model: item.matrix, base: [(item.id & 255) / 255, ((item.id >> 8) & 255) / 255, 0] });
      this.draw(item.mesh);
    };
    solid.forEach(paint);
    if (over.length) {
      gl.clear(gl.DEPTH_BUFFER_BIT);
      over.forEach(paint);
    }
    const pixel = new Uint8Array(4);
    gl.readPixels(x, h - y - 1, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    gl.disable(gl.SCISSOR_TEST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return pixel[0] + 256 * pixel[1];
  }
};
