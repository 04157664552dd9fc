// A plot: axes, what ECharts draws between them, a line at the chosen round, and a note beside the pointer.
//
// The plot sets the ends of both axes itself, so that charts that are linked show the same part at the same place.

const MARGIN = { left: 64, right: 14, top: 10, bottom: 40 };
const PART = 1e-9;

class Plot {
  // `axes` says how each axis is labelled: {name, log, whole, ticks}; `paint` gives the series for ECharts.
  constructor(host, { description, margin = {}, zoomsY = false }) {
    this.host = host;
    this.margin = { ...MARGIN, ...margin };
    this.description = description;
    this.zoomsY = zoomsY;
    this.window = { x: [0, 1], y: [0, 1] };
    this.chart = null;
    // ECharts empties the element that it is given.
    this.canvas = host.appendChild(document.createElement("div"));
    this.canvas.className = "canvas";
    this.line = host.appendChild(document.createElement("div"));
    this.line.className = "cursor";
    this.part = host.appendChild(document.createElement("div"));
    this.part.className = "part";
    this.spot = host.appendChild(document.createElement("div"));
    this.spot.className = "spot";
    this.note = host.appendChild(document.createElement("div"));
    this.note.className = "note";
    for (const mark of [this.line, this.part, this.spot, this.note]) mark.hidden = true;
  }

  get inner() {
    const { left, right, top, bottom } = this.margin;
    return {
      left, top,
      width: Math.max(20, this.host.clientWidth - left - right), height: Math.max(20, this.host.clientHeight - top - bottom),
    };
  }

  holds(px, py) {
    const { left, top, width, height } = this.inner;
    return px >= left - 2 && px <= left + width + 2 && py >= top - 2 && py <= top + height + 2;
  }

  xOf(px) {
    const [low, high] = this.window.x, { left, width } = this.inner;
    return low + (px - left) / width * (high - low);
  }

  yOf(py) {
    const [low, high] = this.window.y, { top, height } = this.inner;
    return high - (py - top) / height * (high - low);
  }

  pxOf(x) {
    const [low, high] = this.window.x, { left, width } = this.inner;
    return left + (x - low) / (high - low) * width;
  }

  pyOf(y) {
    const [low, high] = this.window.y, { top, height } = this.inner;
    return top + (high - y) / (high - low) * height;
  }

  partBetween([ax, ay], [bx, by]) {
    const x = [this.xOf(Math.min(ax, bx)), this.xOf(Math.max(ax, bx))];
    const y = [this.yOf(Math.max(ay, by)), this.yOf(Math.min(ay, by))];
    return {
      x: Math.abs(ax - bx) > SHORTEST_DRAG ? x : this.window.x,
      y: this.zoomsY && Math.abs(ay - by) > SHORTEST_DRAG ? y : this.window.y,
    };
  }

  zoomed(factor, place = null) {
    const { left, top, width, height } = this.inner;
    const [px, py] = place ?? [left + width / 2, top + height / 2];
    const about = ([low, high], at) => [at - (at - low) * factor, at + (high - at) * factor];
    return {
      x: about(this.window.x, this.xOf(px)), y: this.zoomsY ? about(this.window.y, this.yOf(py)) : this.window.y,
    };
  }

  moved(from, dx, dy) {
    const { width, height } = this.inner;
    const by = ([low, high], share) => [low - share * (high - low), high - share * (high - low)];
    return { x: by(from.x, dx / width), y: this.zoomsY ? by(from.y, -dy / height) : from.y };
  }

  draw(axes, series) {
    if (this.host.clientWidth === 0) return;
    this.chart ??= echarts.init(this.canvas, null, { renderer: "canvas" });
    const ink = colour("soft"), faint = colour("faint");
    const axis = (kind, { name, log = false, whole = false, ticks = null, labels = null }, most) => {
      const [low, high] = this.window[kind];
      const at = ticks ?? (log ? logTicks(low, high) : linearTicks(low, high, most, whole));
      const words = labels ?? ((value) => (log ? numberText(10 ** value, 3, 1e4) : numberText(value, 6)));
      return {
        type: "value", min: low, max: high, name, nameLocation: "middle", nameGap: kind === "x" ? 24 : 48,
        nameTextStyle: { color: ink, fontSize: 12 }, axisLine: { show: true, onZero: false, lineStyle: { color: ink } },
        axisTick: { show: true, customValues: at, lineStyle: { color: ink } },
        axisLabel: { color: ink, fontSize: 11, customValues: at, formatter: words, hideOverlap: true },
        splitLine: { show: true, customValues: at, lineStyle: { color: faint, width: 0.6 } }, minorTick: { show: false },
      };
    };
    const { left, right, top, bottom } = this.margin, { width, height } = this.inner;
    this.chart.setOption({
      animation: false,
      aria: { enabled: true, label: { description: this.description } },
      grid: { left, right, top, bottom, outerBoundsMode: "none" },
      xAxis: axis("x", axes.x, Math.max(2, Math.floor(width / 90))),
      yAxis: axis("y", axes.y, Math.max(2, Math.floor(height / 30))),
      series,
    }, { notMerge: true });
  }

  resize() {
    this.chart?.resize();
  }

  showCursor(x) {
    const at = x === null || !Number.isFinite(x) ? NaN : this.pxOf(x), { left, top, width, height } = this.inner;
    this.line.hidden = !(at >= left - PART && at <= left + width + PART);
    if (this.line.hidden) return;
    this.line.style.cssText = `left:${at}px;top:${top}px;height:${height}px`;
  }

  // A ring around a place; null takes it away.
  showSpot(place) {
    this.spot.hidden = place === null;
    if (place !== null) this.spot.style.cssText = `left:${place[0]}px;top:${place[1]}px`;
  }

  // The part between two places that a drag has chosen so far; null takes the mark away.
  markPart(from, to) {
    this.part.hidden = from === null;
    if (from === null) return;
    const { left, top, width, height } = this.inner;
    const within = (value, low, size) => Math.min(Math.max(value, low), low + size);
    const [ax, bx] = [from[0], to[0]].map((value) => within(value, left, width)).sort((a, b) => a - b);
    const whole = !this.zoomsY;
    const [ay, by] = whole ? [top, top + height] : [from[1], to[1]].map((value) => within(value, top, height)).sort((a, b) => a - b);
    this.part.style.cssText = `left:${ax}px;top:${ay}px;width:${bx - ax}px;height:${by - ay}px`;
  }

  // Words beside the pointer, one line each; null takes them away.
  say(lines, px = 0, py = 0) {
    this.note.hidden = lines === null;
    if (lines === null) return;
    this.note.replaceChildren(...lines.map((words) => {
      const line = document.createElement("div");
      line.textContent = words;
      return line;
    }));
    const right = px < this.host.clientWidth / 2, below = py < this.host.clientHeight / 2;
    this.note.style.cssText = `${right ? "left" : "right"}:${(right ? px : this.host.clientWidth - px) + 12}px;`
      + `${below ? "top" : "bottom"}:${(below ? py : this.host.clientHeight - py) + 8}px`;
  }
}

// A colour of the page's style, by day or by night: `--NAME` of style.css, or of the palette of all pictures.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name.replaceAll("_", "-")}`).trim() || "#7f7f7f";
}
