// What every node does over simulated time: from afar the outcomes of rounds, from near each message.

const MOST_DRAWN = 250000;
const ORDER = ["wait", "compute", "server", "jam", "send"];
const FIRST_ROUNDS = 3;

class Timeline {
  constructor(section, figure, cells, messages, pick) {
    Object.assign(this, { section, figure, cells, messages, pick, shown: null, ready: new Map() });
    this.plot = new Plot(figure.querySelector(".plot"), { description: figure.querySelector("figcaption").textContent, zoomsY: true, margin: { left: 66 } });
    this.hint = figure.querySelector(".hint");
    const ends = section.axes.sim_time;
    this.times = { ends: Object.assign(Float64Array.from(ends), { begin: 0 }), last: ends[ends.length - 1] };
    // Rows from above: server, jammer, then the clients; the first two as high as several clients where these are many.
    this.thick = Math.max(1, Math.ceil(cells.clients / 25));
    this.rows = cells.clients + (messages.blocks.length ? 2 * this.thick : 0);
    this.keys = new ClientKeys(this, pick);
    listenTo(this.plot, {
      hover: (px, py) => this.hover(px, py),
      leave: () => this.keys.leave(),
      show: (part) => this.show(part),
      choose: (px, py) => { if (px === undefined) this.keys.open(); else this.choose(px, py); },
      step: (by) => this.step(by),
      climb: (by) => this.keys.climb(by),
    });
    const button = (name, act) => figure.querySelector(`.${name}`).addEventListener("click", act);
    button("closer", () => this.show(this.plot.zoomed(0.5)));
    button("wider", () => this.show(this.plot.zoomed(2)));
    button("reset", () => this.show(null));
    button("here", () => this.showRound(section.position ?? 0));
    // Asynchronously a round is the step of a single client.
    const first = messages.asynchronous ? FIRST_ROUNDS * cells.clients : FIRST_ROUNDS;
    if (messages.blocks.length) this.shown = { x: [0, this.times.ends[Math.min(first, ends.length) - 1]], y: this.whole.y };
  }

  get whole() {
    return { x: [0, this.times.last || 1], y: [-0.6, this.rows - 0.4] };
  }

  showRound(position) {
    this.show({ x: [position ? this.times.ends[position - 1] : 0, this.times.ends[position]], y: this.plot.window.y });
  }

  show(part) {
    const { x, y } = this.whole;
    if (part) {
      const clipped = { x: [Math.max(x[0], part.x[0]), Math.min(x[1], part.x[1])], y: [Math.max(y[0], part.y[0]), Math.min(y[1], part.y[1])] };
      if (!(clipped.x[1] - clipped.x[0] > 1e-9) || clipped.y[1] - clipped.y[0] < 0.9) return;
      this.shown = clipped;
    } else {
      this.shown = null;
    }
    this.draw();
  }

  // Middle of the row of a node: server and jammer above all clients.
  rowOf(node) {
    return node >= FIRST_CLIENT ? this.cells.rowOf(node - FIRST_CLIENT) : this.cells.clients - 0.5 + this.thick * (node === JAMMER ? 0.5 : 1.5);
  }

  // Node in whose row a place on the y axis lies.
  nodeAt(y) {
    if (y < this.cells.clients - 0.5) return this.cells.clientIn(y) + FIRST_CLIENT;
    return y < this.cells.clients - 0.5 + this.thick ? JAMMER : SERVER;
  }

  nameOf(node) {
    return node === JAMMER ? "jammer" : node === SERVER ? "server" : String(this.cells.ids[node - FIRST_CLIENT] ?? "");
  }

  // Whether so few messages are in the part that each can be drawn.
  get near() {
    const { x, y } = this.plot.window, share = Math.min(1, (y[1] - y[0]) / this.rows);
    const count = this.messages.countBetween(...x);
    return count > 0 && count <= MOST_DRAWN && count * share <= MOST_DRAWN && x[0] <= this.messages.blocks.at(-1).end;
  }

  draw() {
    this.plot.window = this.shown ?? this.whole;
    const near = this.near, wanted = near ? this.messages.between(...this.plot.window.x) : [];
    const missing = wanted.filter((at) => !this.ready.has(at));
    if (missing.length) {
      Promise.all(missing.map(async (at) => this.ready.set(at, await this.messages.doings(at)))).then(() => this.draw());
    }
    this.doings = missing.length ? null : wanted.map((at) => this.ready.get(at));
    const [low, high] = this.plot.window.y, most = Math.max(2, Math.floor(this.plot.inner.height / 16));
    const ticks = this.cells.ticksBetween(low, high, most);
    for (const node of this.messages.blocks.length ? [SERVER, JAMMER] : []) if (this.rowOf(node) < high) ticks.push(this.rowOf(node));
    this.plot.draw(
      { x: { name: "simulated time (s)" }, y: { name: "client", ticks, labels: (row) => this.nameOf(this.nodeAt(row)) } },
      pictureSeries(this.plot, (context) => {
        if (this.doings?.length) this.drawDoings(context); else drawCells(context, this.plot, this.cells, this.outcomes, this.times.ends);
      }),
    );
    this.tell(near);
    this.showCursor();
  }

  tell(near) {
    const { blocks, count, all } = this.messages;
    const held = count < all && blocks.length ? ` The page holds the messages up to ${numberText(blocks.at(-1).end)} s.` : "";
    this.hint.textContent = !blocks.length ? "This run kept no events: outcomes of the rounds."
      : (near ? "Each message. " : "Outcomes of the rounds; zoom in to see each message. ") + held;
  }

  get outcomes() {
    return { codes: this.cells.status, rgb: Uint8Array.from(this.cells.statuses.flatMap((name) => rgbOf(colour(name)))) };
  }

  drawDoings(context) {
    const { plot } = this, [fromX, toX] = plot.window.x, [fromY, toY] = plot.window.y;
    const thin = Math.max(1, Math.abs(plot.pyOf(1) - plot.pyOf(0)) * 0.76);
    const shades = Object.fromEntries(ORDER.map((role) => [role, colour(role)]));
    for (const role of ORDER) {
      context.fillStyle = shades[role];
      for (const { stretches } of this.doings) {
        for (const stretch of stretches) {
          if (stretch.role !== role || stretch.end < fromX || stretch.begin > toX) continue;
          const row = this.rowOf(stretch.node);
          if (row < fromY - 1 || row > toY + this.thick) continue;
          const height = stretch.node < FIRST_CLIENT ? thin * this.thick : thin;
          const left = Math.max(plot.pxOf(stretch.begin), plot.inner.left - 2), right = Math.min(plot.pxOf(stretch.end), plot.inner.left + plot.inner.width + 2);
          // A slot that is a thousandth of the round stays visible.
          context.fillRect(left, plot.pyOf(row) - height / 2, Math.max(right - left, role === "wait" ? 0 : 1.2), height);
        }
      }
    }
    this.drawMarks(context, Math.min(5, Math.max(1.5, thin / 2)));
  }

  drawMarks(context, size) {
    const { plot } = this, [fromX, toX] = plot.window.x;
    for (const { marks } of this.doings) {
      for (const mark of marks) {
        if (mark.time < fromX || mark.time > toX) continue;
        const px = plot.pxOf(mark.time), py = plot.pyOf(this.rowOf(mark.node));
        context.fillStyle = colour(mark.role);
        context.beginPath();
        context.moveTo(px, py - size);
        context.lineTo(px + size, py);
        context.lineTo(px, py + size);
        context.lineTo(px - size, py);
        context.fill();
      }
    }
  }

  // What is under the pointer: a failure, or the shortest of the stretches there.
  at(px, py) {
    const node = this.nodeAt(this.plot.yOf(py)), x = this.plot.xOf(px), reach = Math.abs(this.plot.xOf(px + 4) - x), doings = this.doings ?? [];
    const marks = doings.flatMap((each) => each.marks.filter((mark) => mark.node === node && Math.abs(mark.time - x) <= reach));
    const stretches = doings.flatMap((each) => each.stretches.filter(
      (stretch) => stretch.node === node && stretch.begin - reach <= x && stretch.end + reach >= x,
    ));
    stretches.sort((a, b) => (a.end - a.begin) - (b.end - b.begin));
    return { node, x, mark: marks[0] ?? null, stretch: stretches[0] ?? null };
  }

  hover(px, py) {
    const round = Math.min(this.cells.rounds - 1, positionOf(this.times.ends, this.plot.xOf(px)) + 1);
    this.section.setPosition(round);
    this.plot.say(this.linesAt(px, py, round), px, py);
  }

  linesAt(px, py, round) {
    const { node, mark, stretch } = this.at(px, py), isClient = node >= FIRST_CLIENT;
    const lines = [`${isClient ? "client " : ""}${this.nameOf(node)}`];
    if (mark) lines.push(`${statusWords(mark.kind)} at ${numberText(mark.time, 8)} s, round ${mark.round}`);
    if (stretch) {
      lines.push(`${DOING[stretch.role]}${stretch.role === "send" ? ` (${statusWords(stretch.kind)})` : ""}, round ${stretch.round}`);
      lines.push(`${numberText(stretch.begin, 8)} s to ${numberText(stretch.end, 8)} s: ${numberText(stretch.end - stretch.begin)} s`);
      if (stretch.bits > 0) lines.push(`${stretch.bits.toLocaleString("en")} bit`);
    }
    if (isClient && !mark && !stretch) {
      const cell = this.cells.find(round, node - FIRST_CLIENT);
      lines.push(`round ${this.section.rounds[round]}: ${cell < 0 ? "not selected" : statusWords(this.cells.statuses[this.cells.status[cell]])}`);
    }
    return lines;
  }

  // Middle of the round under the cursor, in the part of it that is shown.
  get middle() {
    const at = this.section.position ?? 0, begin = at ? this.times.ends[at - 1] : 0, end = this.times.ends[at];
    const [low, high] = this.plot.window.x, [from, to] = [Math.max(low, begin), Math.min(high, end)];
    return from <= to ? (from + to) / 2 : (begin + end) / 2;
  }

  spotOf(client) {
    return [this.plot.pxOf(this.middle), this.plot.pyOf(this.cells.rowOf(client))];
  }

  linesOf(client) {
    return this.linesAt(...this.spotOf(client), this.section.position ?? 0);
  }

  reveal(client) {
    const { x, y } = this.plot.window, shown = { x: movedTo(x, this.middle), y: movedTo(y, this.cells.rowOf(client)) };
    if (shown.x[0] !== x[0] || shown.y[0] !== y[0]) this.show(shown);
  }

  step(by) {
    this.section.step(by);
    const { x, y } = this.plot.window, moved = movedTo(x, this.middle);
    if (moved[0] !== x[0]) this.show({ x: moved, y });
    this.keys.tell();
  }

  choose(px, py) {
    const { node } = this.at(px, py);
    this.hover(px, py);
    if (node >= FIRST_CLIENT && node - FIRST_CLIENT < this.cells.clients) this.pick(node - FIRST_CLIENT);
  }

  showCursor() {
    this.keys.show();
    this.plot.showCursor(this.section.position === null ? null : this.times.ends[this.section.position]);
  }

  resize() {
    this.plot.resize();
    this.draw();
  }
}
