// Columns of numbers that the page holds compressed; each is unpacked when it is first needed (packing.py writes them).

async function inflated(id) {
  const packed = bytesOf(document.getElementById(id).textContent);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Whole numbers from their planes of bytes, the lowest byte first.
async function wholeNumbers(ids) {
  const planes = await Promise.all(ids.map(inflated)), count = planes[0].length;
  if (planes.length === 1) return planes[0];
  const values = planes.length === 2 ? new Uint16Array(count) : planes.length <= 4 ? new Uint32Array(count) : new Float64Array(count);
  planes.forEach((plane, place) => {
    const weight = 256 ** place;
    for (let at = 0; at < count; at++) values[at] += plane[at] * weight;
  });
  return values;
}

async function doubles(id) {
  return new Float64Array((await inflated(id)).buffer);
}

// A column of codes on a scale; `value(at)` is the number of a cell, in the unit of its label.
class Column {
  constructor({ name, label, scale, planes, decibels = false, factor = 1 }) {
    Object.assign(this, { name, label, scale, planes, decibels, factor, codes: null });
  }

  async load() {
    this.loading ??= wholeNumbers(this.planes).then((codes) => { this.codes = codes; });
    return this.loading;
  }

  value(at) {
    return this.valueOf(this.codes[at]);
  }

  valueOf(code) {
    const { kind, begin, step, first } = this.scale;
    if (code === 0) return NaN;
    if (code === 1) return Infinity;
    let value = code === 2 ? 0 : begin + step * (code - first);
    if (kind === "log" && code >= first) value = Math.exp(value);
    return this.decibels ? 10 * Math.log10(value) : value * this.factor;
  }
}

// Clients and cells of a run: `offsets` are where the cells of each round begin, and in a round they are in the order
// of the clients.
class Cells {
  constructor(data) {
    this.count = data.cells.count;
    this.columns = data.cells.columns.map((column) => new Column(column));
    this.statuses = data.cells.statuses;
    this.packed = data;
  }

  // Ids, outcomes and where they stand; the other columns come when they are asked for.
  async load() {
    this.loading ??= (async () => {
      const { clients, cells } = this.packed;
      const [ids, offsets, client, status] = await Promise.all(
        [doubles(clients.ids), wholeNumbers(cells.offsets), wholeNumbers(cells.client), wholeNumbers(cells.status)],
      );
      Object.assign(this, { ids, offsets: Uint32Array.from(offsets), client, status });
      this.rounds = this.offsets.length - 1;
      const seen = new Uint8Array(256);
      for (const code of status) seen[code] = 1;
      this.outcomes = this.statuses.filter((_, code) => code > 0 && seen[code]);
      this.clients = ids.length;
      this.own = await Promise.all(clients.columns.map(async (column) => ({ ...column, values: await doubles(column.values) })));
    })();
    return this.loading;
  }

  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  // Cell of a client in a round, -1 where it was not selected.
  find(round, client) {
    let low = this.offsets[round], high = this.offsets[round + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.client[middle] < client) low = middle + 1; else high = middle;
    }
    return low < this.offsets[round + 1] && this.client[low] === client ? low : -1;
  }

  // Row of a client counted from below: the first client is at the top, as in all pictures.
  rowOf(client) {
    return this.clients - 1 - client;
  }

  clientIn(row) {
    return this.clients - 1 - Math.min(this.clients - 1, Math.max(0, Math.round(row)));
  }

  // Rows of the ticks between two places of the y axis, at round numbers of clients.
  ticksBetween(low, high, most) {
    return linearTicks(this.clientIn(high), this.clientIn(low), most, true).map((client) => this.rowOf(client));
  }

  // Place of the client with an id, -1 where the page has none such.
  placeOf(id) {
    const at = positionOf(this.ids, id);
    return this.ids[at] === id ? at : -1;
  }
}

function statusWords(name) {
  return name.replaceAll("_", " ");
}
