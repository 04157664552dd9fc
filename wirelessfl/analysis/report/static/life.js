// The life of one client: what is known of it, its channel, back-off, energy and updates by round, and what it sent.

const MOST_ROWS = 1000;
const MOST_MESSAGES = 400;
const GROUPS = [
  ["channel", "Channel", ["gain", "csi", "path_gain"], false],
  ["backoff", "Back-off", ["backoff"], false],
  ["energy", "Energy", ["tx_energy_j", "compute_energy_j", "tx_energy"], true],
  ["update", "Norm of the update", ["update_norm_raw", "update_norm", "clip_norm"], false],
  ["time", "Time", ["compute_time", "tx_time"], true],
];

class Life {
  constructor(section, panel, cells, messages) {
    Object.assign(this, { section, panel, cells, messages, client: -1, charts: [], data: {} });
    this.find = (name) => panel.querySelector(`.${name}`);
    this.find("before").addEventListener("click", () => this.open(Math.max(0, this.client - 1)));
    this.find("after").addEventListener("click", () => this.open(Math.min(cells.clients - 1, this.client + 1)));
    this.find("close").addEventListener("click", () => this.close());
  }

  async open(client) {
    this.client = client;
    await Promise.all(this.cells.columns.map((column) => column.load()));
    if (this.client !== client) return;
    this.mine = [];
    for (let round = 0; round < this.cells.rounds; round++) {
      const cell = this.cells.find(round, client);
      if (cell >= 0) this.mine.push([round, cell]);
    }
    const first = this.panel.hidden;
    this.panel.hidden = false;
    this.find("who").textContent = `Client ${this.cells.ids[client]}`;
    this.showFacts();
    this.showCharts();
    this.showTable();
    this.findMessages(client);
    this.onOpen?.(client);
    if (first) this.panel.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.panel.hidden = true;
    this.client = -1;
    this.dropCharts();
    this.onOpen?.(-1);
  }

  showFacts() {
    const counts = new Map();
    for (const [, cell] of this.mine) {
      const name = statusWords(this.cells.statuses[this.cells.status[cell]]);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const facts = [
      ["rounds", `${this.mine.length} of ${this.cells.rounds}: ${[...counts].map(([name, count]) => `${name} ${count}`).join(", ")}`],
      ...this.cells.own.map(({ label, values }) => [label, numberText(values[this.client])]),
    ];
    const energy = this.cells.column("tx_energy_j") ?? this.cells.column("tx_energy");
    const spent = energy ? this.mine.map(([, cell]) => energy.value(cell)).filter(Number.isFinite) : [];
    if (spent.length) facts.push([`${energy.label}, in all`, numberText(spent.reduce((a, b) => a + b, 0))]);
    this.find("facts").replaceChildren(...facts.map(([name, words]) => {
      const fact = document.createElement("div");
      fact.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: words }));
      return fact;
    }));
  }

  dropCharts() {
    for (const chart of this.charts) {
      this.section.remove(chart);
      chart.plot.chart?.dispose();
    }
    this.charts = [];
    this.find("figures").replaceChildren();
  }

  showCharts() {
    this.dropCharts();
    const places = Object.fromEntries(Object.entries(this.section.axes).map(([name, values]) => [name, Float64Array.from(this.mine, ([round]) => values[round])]));
    const strip = this.figure("Rounds", "Each round of this client, in the colours of the chart of all clients.");
    strip.querySelector(".shade").append(new Option("outcome", ""));
    strip.querySelector(".plot").classList.add("strip");
    strip.classList.add("wide");
    this.keep(new StatusChart(this.section, strip, this.cells, () => {}, this.client));
    for (const [name, title, names, log] of GROUPS) {
      const known = names.map((each) => this.cells.column(each)).filter(Boolean)
        .map((column) => [column, Float64Array.from(this.mine, ([, cell]) => column.value(cell))])
        .filter(([, values]) => values.some(Number.isFinite));
      // Energy in units of the noise says nothing more where joules are known.
      const shown = known.filter(([column]) => column.name !== "tx_energy" || known.length === 1);
      if (!shown.length) continue;
      const units = [...new Set(shown.map(([column]) => /\(([^()]+)\)$/.exec(column.label)?.[1] ?? ""))];
      this.keep(new CurveChart(this.section, this.figure(title, ""), {
        name, title, caption: "", yLabel: shown.length === 1 ? shown[0][0].label : `${title.toLowerCase()} ${units.length === 1 && units[0] ? `(${units[0]})` : ""}`,
        xLabels: this.section.data.axisLabels, linked: true, log, logX: [], low: null, high: null,
        curves: shown.map(([column, y], at) => ({ label: column.label, colour: `cycle-${at}`, shape: "line", dash: at ? "dashed" : "solid", x: places, y })),
      }));
    }
    // Drawn once all have their places: a column of figures becomes narrower when the next one comes.
    for (const chart of this.charts) chart.resize();
  }

  keep(chart) {
    this.charts.push(chart);
    this.section.add(chart);
  }

  figure(title, caption) {
    const figure = this.find("figures").appendChild(document.createElement("figure")), part = (tag, name) => {
      const made = figure.appendChild(document.createElement(tag));
      made.className = name;
      return made;
    };
    figure.className = "chart";
    part("h4", "title").textContent = title;
    part("select", "shade").hidden = true;
    part("ul", "legend");
    const plot = part("div", "plot");
    plot.tabIndex = 0;
    plot.setAttribute("role", "img");
    part("p", "empty").hidden = true;
    part("figcaption", "").textContent = caption;
    return figure;
  }

  // Rows of a table: of a long life every second, every third, ... round.
  showTable() {
    const every = Math.ceil(this.mine.length / MOST_ROWS) || 1, columns = this.cells.columns.filter((column) => this.mine.some(([, cell]) => !Number.isNaN(column.value(cell))));
    const rows = this.mine.filter((_, at) => at % every === 0).map(([round, cell]) => [
      String(this.section.rounds[round]), statusWords(this.cells.statuses[this.cells.status[cell]]), ...columns.map((column) => numberText(column.value(cell))),
    ]);
    this.find("thinned").textContent = every > 1 ? `One round in ${every} is shown, of ${this.mine.length.toLocaleString("en")}.` : "";
    fillTable(this.find("rounds"), ["round", "outcome", ...columns.map((column) => column.label)], rows);
  }

  // Every event of the client, in all blocks.
  async findMessages(client) {
    const node = client + FIRST_CLIENT, found = [];
    for (let at = 0; at < this.messages.blocks.length; at++) {
      const block = await this.messages.block(at);
      if (this.client !== client) return;
      for (let event = 0; event < block.count; event++) {
        if (block.node[event] !== node) continue;
        found.push({ round: block.first + block.round[event], time: block.time[event], kind: this.messages.kinds[block.kind[event]], bits: block.bits?.value(event) });
      }
    }
    this.sent = found;
    this.showMessages();
  }

  showMessages() {
    if (!this.sent) return;
    const round = this.section.position === null ? null : this.section.rounds[this.section.position];
    const found = this.sent.findIndex((event) => event.round >= (round ?? 0));
    const begin = found < 0 ? Math.max(0, this.sent.length - 1) : found;
    const shown = this.sent.slice(begin, begin + MOST_MESSAGES);
    fillTable(this.find("events"), ["round", "time (s)", "event", "bits"], shown.map(({ round: each, time, kind, bits }) => [
      String(each), numberText(time, 9), statusWords(kind), Number.isFinite(bits) ? bits.toLocaleString("en") : "",
    ]));
    const some = shown.length === MOST_MESSAGES ? `${MOST_MESSAGES} of them are shown` : "shown";
    this.find("how-many").textContent = this.sent.length
      ? `${this.sent.length.toLocaleString("en")} events; ${some} from the round under the cursor on.` : "The page holds no events of this client.";
  }

  draw() {}

  showCursor() {
    if (this.client < 0) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.showMessages(), 150);
  }

  resize() {}
}

function fillTable(table, head, rows) {
  const line = (tag, texts) => {
    const row = document.createElement("tr");
    for (const text of texts) {
      const cell = row.appendChild(document.createElement(tag));
      cell.textContent = text;
      if (tag === "th") cell.scope = "col";
    }
    return row;
  };
  table.tHead.replaceChildren(line("th", head));
  table.tBodies[0].replaceChildren(...rows.map((texts) => line("td", texts)));
}
