// The map: clients where they stand in the round under the cursor, base stations, cells and jammer. Where a scenario
// has no places, clients stand in a circle, the nearer to the server the stronger their channel is in the round.

const OUTER = 1, INNER = 0.2;

class ClientMap {
  constructor(section, figure, cells, data, pick) {
    Object.assign(this, { section, figure, cells, map: data, pick, shown: null, picked: -1 });
    this.plot = new Plot(figure.querySelector(".plot"), { description: figure.querySelector("figcaption").textContent, zoomsY: true });
    this.shades = new Shades(cells, figure.querySelector(".shade"), () => this.draw());
    this.keys = new ClientKeys(this, pick);
    listenTo(this.plot, {
      hover: (px, py) => this.hover(px, py),
      leave: () => this.keys.leave(),
      show: (part) => { this.shown = part; this.draw(); },
      choose: (px, py) => {
        if (px === undefined) { this.keys.open(); return; }
        const at = this.nearest(px, py);
        if (at >= 0) pick(at);
      },
      step: (by) => this.keys.step(by),
      climb: (by) => this.keys.climb(by),
    });
    const button = (name, act) => figure.querySelector(`.${name}`).addEventListener("click", act);
    button("closer", () => { this.shown = this.plot.zoomed(0.5); this.draw(); });
    button("wider", () => { this.shown = this.plot.zoomed(2); this.draw(); });
    button("reset", () => { this.shown = null; this.draw(); });
  }

  async load() {
    const { x, y, frames } = this.map, gain = this.cells.column("gain");
    if (frames) this.frames = await Promise.all([wholeNumbers(frames.x), wholeNumbers(frames.y)]);
    else if (x) this.points = await Promise.all([doubles(x), doubles(y)]);
    else await gain?.load();
    this.reach = this.farthest();
    this.figure.querySelector(".hint").textContent = this.map.note
      || (frames?.every > 1 ? `Clients on the move; the page holds their places of one round in ${frames.every}.` : "");
  }

  get schematic() {
    return Boolean(this.map.note);
  }

  get round() {
    return this.section.position ?? this.cells.rounds - 1;
  }

  // Place of a client in a round (m), or in the circle.
  placeOf(client, round) {
    if (this.frames) {
      const { every, begin, step } = this.map.frames, count = this.cells.clients;
      const at = Math.min(Math.floor(round / every), this.frames[0].length / count - 1) * count + client;
      return [begin + step * this.frames[0][at], begin + step * this.frames[1][at]];
    }
    if (this.points) return [this.points[0][client], this.points[1][client]];
    const angle = 2 * Math.PI * client / this.cells.clients, gain = this.cells.column("gain"), cell = this.cells.find(round, client);
    const value = gain && cell >= 0 ? gain.value(cell) : NaN, [low, high] = this.gains ?? [0, 1];
    const share = Number.isFinite(value) ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0;
    const radius = OUTER - share * (OUTER - INNER);
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }

  farthest() {
    if (this.schematic) {
      const gain = this.cells.column("gain");
      if (gain) {
        const step = Math.max(1, Math.floor(this.cells.count / 20000)), sample = [];
        for (let at = 0; at < this.cells.count; at += step) sample.push(gain.value(at));
        const known = sample.filter(Number.isFinite).sort((a, b) => a - b);
        if (known.length > 1 && known[0] < known.at(-1)) this.gains = [known[Math.floor(known.length / 50)], known.at(-1)];
      }
      return 1.1;
    }
    const { sites, spacing, jammer, frames } = this.map, far = [...sites, ...(jammer ? [jammer] : [])].flat().map(Math.abs);
    if (spacing) far.push(...sites.flat().map((value) => Math.abs(value) + spacing / Math.sqrt(3)));
    if (frames) far.push(Math.abs(frames.begin), Math.abs(frames.end));
    else for (const values of this.points) for (const value of values) far.push(Math.abs(value));
    return 1.05 * far.reduce((a, b) => Math.max(a, b), 1);
  }

  // A part with the same scale on both axes, about the middle of what was asked for.
  fitted({ x, y }) {
    const { width, height } = this.plot.inner, scale = Math.max((x[1] - x[0]) / width, (y[1] - y[0]) / height);
    const about = ([low, high], size) => [(low + high) / 2 - scale * size / 2, (low + high) / 2 + scale * size / 2];
    return { x: about(x, width), y: about(y, height) };
  }

  draw() {
    if (this.reach === undefined || this.plot.host.clientWidth === 0) return;
    if (!this.shades.ready(() => this.draw())) return;
    this.plot.window = this.fitted(this.shown ?? { x: [-this.reach, this.reach], y: [-this.reach, this.reach] });
    const none = this.schematic ? { ticks: [], name: "" } : {};
    this.plot.draw({ x: { name: "m", ...none }, y: { name: "m", ...none } }, pictureSeries(this.plot, (context) => this.paint(context)));
    this.drawLegend();
    this.keys.show();
  }

  paint(context) {
    const { plot, cells, round } = this, ink = colour("ink"), idle = colour("faint"), { codes, rgb } = this.shades.table();
    this.paintCells(context);
    const size = Math.max(2, Math.min(6, 180 / Math.sqrt(cells.clients)));
    for (let client = 0; client < cells.clients; client++) {
      const [x, y] = this.placeOf(client, round), px = plot.pxOf(x), py = plot.pyOf(y), cell = cells.find(round, client);
      context.fillStyle = cell < 0 ? idle : `rgb(${rgb.subarray(3 * codes[cell], 3 * codes[cell] + 3).join(" ")})`;
      context.beginPath();
      context.arc(px, py, client === this.picked ? size + 3 : size, 0, 2 * Math.PI);
      context.fill();
      if (client === this.picked) { context.strokeStyle = ink; context.lineWidth = 2; context.stroke(); }
    }
    this.paintStations(context, ink);
  }

  paintCells(context) {
    const { plot, map } = this, radius = (map.spacing ?? 0) / Math.sqrt(3);
    context.strokeStyle = colour("soft");
    context.lineWidth = 0.8;
    for (const [x, y] of map.spacing ? map.sites : []) {
      context.beginPath();
      for (let corner = 0; corner < 6; corner++) {
        const angle = Math.PI / 6 + corner * Math.PI / 3;
        context.lineTo(plot.pxOf(x + radius * Math.cos(angle)), plot.pyOf(y + radius * Math.sin(angle)));
      }
      context.closePath();
      context.stroke();
    }
  }

  paintStations(context, ink) {
    const { plot } = this;
    for (const [x, y] of this.map.sites ?? [[0, 0]]) {
      const [px, py] = [plot.pxOf(x), plot.pyOf(y)];
      context.fillStyle = ink;
      context.beginPath();
      context.moveTo(px, py - 8);
      context.lineTo(px + 7, py + 6);
      context.lineTo(px - 7, py + 6);
      context.fill();
    }
    if (!this.map.jammer) return;
    const [px, py] = [plot.pxOf(this.map.jammer[0]), plot.pyOf(this.map.jammer[1])];
    context.strokeStyle = colour("jam");
    context.lineWidth = 4;
    context.beginPath();
    for (const turn of [1, -1]) { context.moveTo(px - 6, py - 6 * turn); context.lineTo(px + 6, py + 6 * turn); }
    context.stroke();
  }

  drawLegend() {
    const stands = this.schematic || this.map.sites.length === 1 ? "server" : "base station";
    this.shades.legend(this.figure.querySelector(".legend"), [
      ["ink", stands, "triangle"], ...(this.map.jammer ? [["jam", "jammer"]] : []), ["faint", "not selected"],
    ]);
  }

  nearest(px, py) {
    let best = -1, least = 24 ** 2;
    for (let client = 0; client < this.cells.clients; client++) {
      const [x, y] = this.placeOf(client, this.round), far = (this.plot.pxOf(x) - px) ** 2 + (this.plot.pyOf(y) - py) ** 2;
      if (far < least) [best, least] = [client, far];
    }
    return best;
  }

  hover(px, py) {
    const client = this.nearest(px, py);
    if (client < 0) this.plot.say(null); else this.plot.say(this.linesOf(client), px, py);
  }

  linesOf(client) {
    const words = this.shades.words(this.cells.find(this.round, client));
    const lines = [`client ${this.cells.ids[client]}, round ${this.section.rounds[this.round]}`, ...words];
    if (!this.schematic) lines.push(`at ${this.placeOf(client, this.round).map((value) => numberText(value, 4)).join(", ")} m`);
    return lines;
  }

  spotOf(client) {
    const [x, y] = this.placeOf(client, this.round);
    return [this.plot.pxOf(x), this.plot.pyOf(y)];
  }

  reveal(client) {
    if (this.shown === null) return;
    const [x, y] = this.placeOf(client, this.round);
    this.shown = { x: movedTo(this.shown.x, x), y: movedTo(this.shown.y, y) };
    this.draw();
  }

  showCursor() {
    this.draw();
  }

  resize() {
    this.plot.resize();
    this.draw();
  }
}
