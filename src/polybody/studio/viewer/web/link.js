// Connection to the program: commands out, states in; a lost connection is restored, and the page reports it.
pb.Link = class {
  constructor(app, address) {
    this.app = app;
    this.address = address;
    this.number = 0;
    this.acknowledged = 0;
    this.waiting = new Map();
    this.tries = 0;
    this.frames = 0;
    this.bytes = 0;
    this.open();
  }

  open() {
    this.socket = new WebSocket(this.address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.tries = 0;
      this.acknowledged = this.number;
      this.sent = 0;
      if (this.lost) this.app.say("reconnected", "info");
      this.lost = false;
      this.app.connected();
    };
    this.socket.onmessage = event => this.receive(event.data);
    this.socket.onclose = () => {
      this.lost = true;
      this.app.say(
        this.tries < 8
          ? "connection to polybody lost; reconnecting …"
          : "polybody has ended: start `polybody view` again and open its address",
        "error",
        true,
      );
      this.tries += 1;
      setTimeout(() => this.open(), Math.min(5000, 250 * 1.6 ** this.tries));
    };
  }

  receive(data) {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      if (message.k === "ack") {
        this.acknowledged = Math.max(this.acknowledged, message.n);
        this.flush();
      } else this.app.told(message);
      return;
    }
    this.frames += 1;
    this.bytes += data.byteLength;
    this.app.told(pb.opened(data));
  }

  // At once and always: buttons and choices.
  send(command) {
    if (this.socket.readyState !== 1) return;
    this.number += 1;
    this.socket.send(JSON.stringify({ ...command, n: this.number }));
  }

  // What changes continuously: of each thing the latest alone, once what was sent before is answered.
  stream(command) {
    this.waiting.set(`${command.do} ${command.key || ""}`, command);
    this.flush();
  }

  forget(what) {
    this.waiting.delete(`${what} `);
  }

  flush() {
    const late = performance.now() - (this.sent || 0) > 700;
    if (!this.waiting.size || (this.acknowledged < this.number && !late)) return;
    const commands = [...this.waiting.values()];
    this.waiting.clear();
    this.sent = performance.now();
    commands.forEach(command => this.send(command));
  }
};
