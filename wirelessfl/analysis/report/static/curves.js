// A chart of curves with its legend, whose entries show the values at the cursor and can be switched off.

const BAND = 0.18;
// Dashes of a line with more points than these cannot be told from its ups and downs.
const MOST_DASHED = 150;

class CurveChart {
  constructor(section, figure, data) {
    Object.assign(this, { section, figure, data, off: new Set() });
    const numbers = (packed) => (typeof packed === "string" ? unpacked(packed) : packed);
    this.curves = data.curves.map((curve) => ({
      ...curve,
      x: Object.fromEntries(Object.entries(curve.x).map(([name, packed]) => [name, numbers(packed)])),
      y: numbers(curve.y), low: numbers(curve.low), high: numbers(curve.high),
    }));
    this.plot = new Plot(figure.querySelector(".plot"), { description: this.description() });
    this.empty = figure.querySelector(".empty");
    this.own = null;
    this.makeLegend(figure.querySelector(".legend"));
    listenTo(this.plot, {
      hover: (px, py) => this.hover(px, py),
      leave: () => { this.plot.say(null); },
      show: (window) => this.show(window?.x ?? null),
      choose: (px) => { if (px !== undefined && data.linked) section.chooseX(this.plot.xOf(px)); },
      step: (by) => data.linked && section.step(by),
      climb: () => false,
    });
  }

  get axis() {
    return this.data.linked ? this.section.axis : Object.keys(this.data.xLabels)[0];
  }

  xOf(curve) {
    const values = curve.x[this.axis];
    return values && this.logX ? values.map((value) => (value > 0 ? Math.log10(value) : -Infinity)) : values;
  }

  get logX() {
    return this.data.logX.includes(this.axis);
  }

  description() {
    const words = this.curves.map((curve) => {
      const known = [...curve.y].filter((value) => !Number.isNaN(value));
      if (!known.length) return `${curve.label}: no values`;
      const [first, last] = [known[0], known[known.length - 1]].map((value) => numberText(value, 3));
      const [low, high] = (rangeOf([known]) ?? [NaN, NaN]).map((value) => numberText(value, 3));
      return `${curve.label}: from ${first} to ${last}, least ${low}, largest ${high}`;
    });
    return `${this.data.title}, ${this.data.yLabel}. ${this.data.caption} ${words.join(". ")}.`;
  }

  makeLegend(list) {
    this.readouts = this.curves.map((curve, at) => {
      const entry = list.appendChild(document.createElement("li")), button = entry.appendChild(document.createElement("button"));
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const swatch = button.appendChild(document.createElement("span"));
      swatch.className = `swatch ${curve.shape === "line" ? curve.dash : "filled"}`;
      swatch.style.setProperty("--colour", `var(--${curve.colour.replaceAll("_", "-")})`);
      button.appendChild(document.createTextNode(curve.label));
      button.addEventListener("click", () => {
        if (!this.off.delete(at)) this.off.add(at);
        button.setAttribute("aria-pressed", String(!this.off.has(at)));
        this.draw();
      });
      return entry.appendChild(document.createElement("output"));
    });
  }

  // Range of the whole x axis; of linked charts the section takes the range of them all together.
  xRange() {
    return rangeOf(this.curves.map((curve) => this.xOf(curve) ?? []));
  }

  show(x) {
    if (this.data.linked) { this.section.show(x); return; }
    this.own = x;
    this.draw();
  }

  // Over all curves and their bands. Of confidence intervals, up to half the range of the curves beyond them: that of two
  // seeds is thirteen times as wide as they are apart, and would leave flat lines.
  yRange([from, to]) {
    const { log } = this.data, allowed = log ? (value) => value > 0 && value < Infinity : Number.isFinite;
    const inside = (lists) => this.curves.flatMap((curve, at) => {
      const places = this.xOf(curve);
      if (this.off.has(at) || !places) return [];
      return lists(curve).filter(Boolean).map((values) => values.filter((_, place) => places[place] >= from && places[place] <= to));
    });
    const scaled = (range) => range && log ? range.map(Math.log10) : range;
    const lines = scaled(rangeOf(inside((curve) => [curve.y]), allowed));
    if (lines === null) return null;
    const bands = scaled(rangeOf(inside((curve) => [curve.low, curve.high]), allowed)) ?? lines;
    const beyond = this.data.fitsBands ? Infinity : 0.5 * (lines[1] - lines[0]) || (log ? 0.1 : Math.abs(lines[1]) / 10 || 1);
    const low = Math.min(lines[0], Math.max(bands[0], lines[0] - beyond)), high = Math.max(lines[1], Math.min(bands[1], lines[1] + beyond));
    if (log) {
      const room = Math.max(0.05, 0.04 * (high - low));
      return [low - room, high + room];
    }
    const [bottom, top] = [this.data.low ?? low, this.data.high ?? high];
    const room = top > bottom ? 0.05 * (top - bottom) : Math.abs(top) / 10 || 1;
    return [this.data.low ?? bottom - room, this.data.high ?? top + room];
  }

  draw() {
    const x = this.data.linked ? this.section.window : this.own ?? this.fullOwn();
    const y = x && this.yRange(x);
    this.empty.hidden = Boolean(y);
    this.empty.textContent = x ? "no finite values here" : this.section.whyNot(this.axis);
    this.plot.host.classList.toggle("without", !y);
    if (!y) { this.plot.showCursor(null); return; }
    this.plot.window = { x, y };
    const label = this.data.xLabels[this.axis];
    this.plot.draw(
      { x: { name: label, whole: this.axis === "round", log: this.logX }, y: { name: this.data.yLabel, log: this.data.log } },
      this.curves.flatMap((curve, at) => (this.off.has(at) ? [] : this.series(curve))),
    );
    this.showCursor();
  }

  fullOwn() {
    const range = this.xRange();
    return range && (range[0] < range[1] ? range : [range[0] - 1, range[1] + 1]);
  }

  series(curve) {
    const places = this.xOf(curve), shade = colour(curve.colour), { log } = this.data;
    if (!places) return [];
    const scaled = (value) => (!log ? value : value > 0 ? Math.log10(value) : NaN);
    const points = (values) => Array.from(values, (value, at) => [places[at], scaled(value)])
      .filter(([place, value]) => Number.isFinite(place) && Number.isFinite(value));
    const drawn = points(curve.y);
    if (curve.shape === "points") return [{ type: "scatter", symbolSize: 6, itemStyle: { color: shade }, data: drawn }];
    const steps = curve.shape === "steps" ? { step: "end", areaStyle: { color: shade, opacity: 0.35, origin: "start" } } : {};
    return [
      ...this.band(curve, places, scaled, shade),
      {
        type: "line", data: drawn, showSymbol: drawn.length < 3, symbolSize: 5, sampling: "minmax", clip: true, silent: true,
        itemStyle: { color: shade }, lineStyle: { color: shade, width: drawn.length > MOST_DASHED ? 1.2 : 1.8, type: drawn.length > MOST_DASHED ? "solid" : curve.dash },
        ...steps,
      },
    ];
  }

  // The area between both edges: one polygon, along the upper edge and back along the lower one.
  band(curve, places, scaled, shade) {
    if (!curve.low || !curve.high) return [];
    const known = [...places.keys()].filter((at) => Number.isFinite(places[at]) && Number.isFinite(scaled(curve.low[at]))
      && Number.isFinite(scaled(curve.high[at])));
    if (!known.length) return [];
    const edge = [...known.map((at) => [places[at], scaled(curve.high[at])]),
      ...known.reverse().map((at) => [places[at], scaled(curve.low[at])])];
    return [{
      type: "custom", silent: true, clip: true, data: [[0, 0]],
      renderItem: (_, api) => ({
        type: "polygon", shape: { points: edge.map((point) => api.coord(point)) }, style: { fill: shade, opacity: BAND },
      }),
    }];
  }

  valueAt(curve, x) {
    const places = this.xOf(curve), at = places ? nearestPosition(places, x) : -1;
    return at < 0 ? [NaN, NaN] : [places[at], curve.y[at]];
  }

  showCursor() {
    const x = this.data.linked ? this.section.x : null;
    this.plot.showCursor(x);
    this.curves.forEach((curve, at) => {
      this.readouts[at].textContent = x === null || !Number.isFinite(x) ? "" : numberText(this.valueAt(curve, x)[1]);
    });
  }

  hover(px, py) {
    const x = this.plot.xOf(px);
    if (this.data.linked) this.section.point(x);
    const label = this.data.xLabels[this.axis], shown = this.curves.filter((_, at) => !this.off.has(at));
    const [place] = shown.map((curve) => this.valueAt(curve, x)[0]).filter(Number.isFinite);
    const at = numberText(this.logX ? 10 ** (place ?? x) : place ?? x, 5);
    this.plot.say([`${label}: ${at}`, ...shown.map((curve) => `${curve.label}: ${numberText(this.valueAt(curve, x)[1])}`)], px, py);
  }

  resize() {
    this.plot.resize();
    this.draw();
  }
}
