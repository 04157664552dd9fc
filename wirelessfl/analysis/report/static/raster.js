// All clients in all rounds as one picture: where a point of the screen holds several cells, it has the mean of their
// colours.

// Draws the cells of some rounds and clients into a canvas of so many points at most.
function paintCells(cells, { codes, rgb }, { rounds: [firstRound, lastRound], clients: [firstClient, lastClient], width, height }) {
  const columns = Math.min(lastRound - firstRound + 1, width), rows = Math.min(lastClient - firstClient + 1, height);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const sums = new Float32Array(columns * rows * 3), counts = new Uint32Array(columns * rows);
  const spanX = columns / (lastRound - firstRound + 1), spanY = rows / (lastClient - firstClient + 1);
  for (let round = firstRound; round <= lastRound; round++) {
    const column = Math.floor((round - firstRound) * spanX);
    for (let at = cells.offsets[round]; at < cells.offsets[round + 1]; at++) {
      const client = cells.client[at];
      if (client < firstClient || client > lastClient) continue;
      const point = Math.floor((client - firstClient) * spanY) * columns + column, shade = 3 * codes[at];
      sums[3 * point] += rgb[shade];
      sums[3 * point + 1] += rgb[shade + 1];
      sums[3 * point + 2] += rgb[shade + 2];
      counts[point] += 1;
    }
  }
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const full = 1 / Math.max(1, Math.floor(1 / spanX) * Math.floor(1 / spanY));
  for (let point = 0; point < counts.length; point++) {
    if (!counts[point]) continue;
    for (let part = 0; part < 3; part++) image.data[4 * point + part] = sums[3 * point + part] / counts[point];
    // Few clients among many that were not selected must still be seen.
    image.data[4 * point + 3] = 255 * Math.max(0.35, Math.min(1, counts[point] * full));
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// A series for ECharts that is one picture between the axes, painted anew for every part that is shown.
function pictureSeries(plot, paint) {
  return [{
    type: "custom", silent: true, clip: true, data: [[plot.window.x[0], plot.window.y[0]]],
    renderItem: () => {
      const { left, top, width, height } = plot.inner, density = window.devicePixelRatio || 1;
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [Math.round(width * density), Math.round(height * density)];
      const context = canvas.getContext("2d");
      context.scale(density, density);
      context.translate(-left, -top);
      context.imageSmoothingEnabled = false;
      paint(context);
      return { type: "image", style: { image: canvas, x: left, y: top, width, height } };
    },
  }];
}

// Copies the cells of a part onto a plot whose x axis has the ends of the rounds at `ends`.
function drawCells(context, plot, cells, colours, ends) {
  const { width, height } = plot.inner, begin = (at) => (at > 0 ? ends[at - 1] : ends.begin);
  const [fromX, toX] = plot.window.x, [fromY, toY] = plot.window.y;
  const firstRound = Math.max(0, Math.min(cells.rounds - 1, positionOf(ends, fromX) + 1));
  const lastRound = Math.min(cells.rounds - 1, Math.max(firstRound, positionOf(ends, toX) + 1));
  const firstRow = Math.max(0, Math.ceil(fromY - 0.5)), lastRow = Math.min(cells.clients - 1, Math.floor(toY + 0.5));
  if (firstRow > lastRow || !cells.clients) return;
  const picture = paintCells(cells, colours, {
    rounds: [firstRound, lastRound], clients: [cells.clientIn(lastRow), cells.clientIn(firstRow)],
    width: Math.round(width), height: Math.round(height * (window.devicePixelRatio || 1)),
  });
  const top = plot.pyOf(lastRow + 0.5), bottom = plot.pyOf(firstRow - 0.5), every = (lastRound - firstRound + 1) / picture.width;
  for (let column = 0; column < picture.width; column++) {
    const left = plot.pxOf(begin(firstRound + Math.floor(column * every)));
    const right = plot.pxOf(ends[Math.min(lastRound, firstRound + Math.ceil((column + 1) * every) - 1)]);
    if (right > left) context.drawImage(picture, column, 0, 1, picture.height, left, top, Math.max(right - left, 0.5), bottom - top);
  }
}

// Every client in every round: colours are outcomes; a click on one opens its life.
class StatusChart {
  // `only` is the one client that is shown, in its life.
  constructor(section, figure, cells, pick, only = null) {
    Object.assign(this, { section, figure, cells, pick, only, y: null, data: { linked: true } });
    this.empty = figure.querySelector(".empty");
    this.shades = new Shades(cells, figure.querySelector(".shade"), () => this.draw());
    this.plot = new Plot(figure.querySelector(".plot"), { description: figure.querySelector("figcaption").textContent, zoomsY: true });
    this.keys = new ClientKeys(this, pick);
    listenTo(this.plot, {
      hover: (px, py) => this.hover(px, py),
      leave: () => this.keys.leave(),
      show: (part) => { this.y = part ? this.within(part.y) : null; section.show(part?.x ?? null); },
      choose: (px, py) => { if (px === undefined) this.keys.open(); else this.choose(px, py); },
      step: (by) => this.keys.step(by),
      climb: (by) => (only === null ? this.keys.climb(by) : false),
    });
  }

  xRange() {
    const ends = this.ends;
    return ends && [ends.begin, ends[ends.length - 1]];
  }

  // Ends of the rounds on the axis, and where the first begins; rounds that take no room have the same end as the last.
  get ends() {
    const known = this.section.axes[this.section.axis];
    if (!known) return null;
    const whole = this.section.axis === "round", ends = Float64Array.from(known, (value) => value + (whole ? 0.5 : 0));
    for (let at = 0; at < ends.length; at++) if (Number.isNaN(ends[at])) ends[at] = at ? ends[at - 1] : 0;
    ends.begin = whole ? known[0] - 0.5 : 0;
    return ends;
  }

  // Whether a part of the clients is shown; the part of the rounds is that of the section.
  get zoomed() {
    return this.y !== null;
  }

  showAll() {
    this.y = null;
  }

  within([low, high]) {
    const [bottom, top] = [Math.max(-0.5, low), Math.min(this.cells.clients - 0.5, high)];
    return top - bottom < 0.5 || (bottom <= -0.5 && top >= this.cells.clients - 0.5) ? null : [bottom, top];
  }

  draw() {
    if (!this.shades.ready(() => this.draw())) return;
    const x = this.section.window, ends = this.ends;
    this.empty.hidden = Boolean(x && ends);
    this.plot.host.classList.toggle("without", !(x && ends));
    this.empty.textContent = this.section.whyNot(this.section.axis);
    if (!x || !ends) { this.plot.showCursor(null); return; }
    const all = this.only === null ? [-0.5, this.cells.clients - 0.5] : [this.cells.rowOf(this.only) - 0.5, this.cells.rowOf(this.only) + 0.5];
    this.plot.window = { x, y: (this.only === null && this.y) || all };
    const rows = this.cells.ticksBetween(...this.plot.window.y, 6);
    this.plot.draw(
      {
        x: { name: this.section.data.axisLabels[this.section.axis], whole: this.section.axis === "round" },
        y: { name: "client", ticks: rows, labels: (row) => String(this.cells.ids[this.cells.clientIn(row)]) },
      },
      pictureSeries(this.plot, (context) => drawCells(context, this.plot, this.cells, this.shades.table(), ends)),
    );
    this.shades.legend(this.figure.querySelector(".legend"));
    this.showCursor();
  }

  at(px, py) {
    const round = Math.min(this.cells.rounds - 1, positionOf(this.ends, this.plot.xOf(px)) + 1);
    const client = this.only ?? this.cells.clientIn(this.plot.yOf(py));
    return [round, client];
  }

  hover(px, py) {
    const [round, client] = this.at(px, py);
    this.section.setPosition(round);
    this.plot.say(this.linesOf(client), px, py);
  }

  linesOf(client) {
    const round = this.section.position ?? this.cells.rounds - 1;
    return [`client ${this.cells.ids[client]}, round ${this.section.rounds[round]}`, ...this.shades.words(this.cells.find(round, client))];
  }

  spotOf(client) {
    const at = this.section.position ?? this.cells.rounds - 1, ends = this.ends;
    if (!ends) return [NaN, NaN];
    return [this.plot.pxOf(((at > 0 ? ends[at - 1] : ends.begin) + ends[at]) / 2), this.plot.pyOf(this.cells.rowOf(client))];
  }

  reveal(client) {
    if (this.y === null) return;
    const row = this.cells.rowOf(client), [low, high] = movedTo(this.y, row);
    if (low === this.y[0]) return;
    this.y = this.within([low, high]);
    this.draw();
  }

  choose(px, py) {
    const [round, client] = this.at(px, py);
    this.section.setPosition(round);
    this.pick(client);
  }

  showCursor() {
    this.keys.show();
    this.plot.showCursor(this.section.x);
  }

  resize() {
    this.plot.resize();
    this.draw();
  }
}
