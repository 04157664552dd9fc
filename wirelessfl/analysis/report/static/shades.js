// Colours of cells: by the outcome of the round, or from dark to bright by a column of numbers.

const RAMP = ["ramp-0", "ramp-1", "ramp-2", "ramp-3", "ramp-4", "ramp-5"];
const SAMPLE = 20000;

function rgbOf(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

class Shades {
  // The choice is made in `select`; where all outcomes are the same, channel gains come first.
  constructor(cells, select, redraw) {
    Object.assign(this, { cells, select });
    for (const column of cells.columns) select.append(new Option(column.label, column.name));
    if (cells.outcomes.length < 2 && cells.column("gain")) select.value = "gain";
    select.addEventListener("change", redraw);
  }

  get column() {
    return this.cells.column(this.select.value) ?? null;
  }

  // Whether the colours are there; if they are not yet, `redraw` is called when they are.
  ready(redraw) {
    if (!this.column || this.column.codes) return true;
    this.column.load().then(redraw);
    return false;
  }

  // Ends of the colours of a column: all but a fiftieth of its values at either side.
  spread(column) {
    if (!column.spread) {
      const step = Math.max(1, Math.floor(this.cells.count / SAMPLE)), sample = [];
      for (let at = 0; at < this.cells.count; at += step) sample.push(column.value(at));
      const known = sample.filter(Number.isFinite).sort((a, b) => a - b), cut = Math.floor(known.length / 50);
      column.spread = known.length ? [known[cut], known[known.length - 1 - cut]] : [0, 1];
    }
    return column.spread;
  }

  // Red, green and blue of every code: of the outcomes, or of the numbers of the column.
  table() {
    const { cells, column } = this;
    if (!column) return { codes: cells.status, rgb: Uint8Array.from(cells.statuses.flatMap((name) => rgbOf(colour(name)))) };
    const [low, high] = this.spread(column), ramp = RAMP.map((name) => rgbOf(colour(name))), none = rgbOf(colour("faint"));
    const rgb = new Uint8Array(3 * 65536);
    for (let code = 0; code < 65536; code++) {
      const value = column.valueOf(code), share = Math.max(0, Math.min(1, high > low ? (value - low) / (high - low) : 1));
      const step = Math.min(RAMP.length - 2, Math.floor(share * (RAMP.length - 1))), rest = share * (RAMP.length - 1) - step;
      for (let part = 0; part < 3; part++) {
        rgb[3 * code + part] = Number.isNaN(value) ? none[part] : ramp[step][part] + rest * (ramp[step + 1][part] - ramp[step][part]);
      }
    }
    return { codes: column.codes, rgb };
  }

  // Words for a cell: its outcome, and its number where that is the colour.
  words(cell) {
    if (cell < 0) return ["not selected"];
    const { cells, column } = this, outcome = statusWords(cells.statuses[cells.status[cell]]);
    return column?.codes ? [outcome, `${column.label}: ${numberText(column.value(cell))}`] : [outcome];
  }

  legend(list, further = []) {
    const { cells, column } = this, entries = column
      ? RAMP.map((name, at) => {
        const [low, high] = this.spread(column), value = numberText(low + at / (RAMP.length - 1) * (high - low), 3);
        return [name, at === 0 ? `${value} and below` : at === RAMP.length - 1 ? `${value} and above` : value];
      })
      : cells.outcomes.map((name) => [name, statusWords(name)]);
    list.replaceChildren(...[...entries, ...further].map(([name, words, shape = "filled"]) => {
      const entry = document.createElement("li"), swatch = entry.appendChild(document.createElement("span"));
      swatch.className = `swatch ${shape}`;
      swatch.style.setProperty("--colour", `var(--${name.replaceAll("_", "-")})`);
      entry.append(words);
      return entry;
    }));
  }
}
