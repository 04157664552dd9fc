// A section of the page: one run, one study, or several runs together. Its linked views share the x axis that the
// reader chooses, the part of it that is shown, and the round under the cursor.

class Section {
  constructor(element, data) {
    Object.assign(this, { element, data, views: [], axis: data.axis, shown: null, x: null, position: null });
    this.axes = Object.fromEntries(Object.entries(data.axes ?? {}).map(([name, text]) => [name, unpacked(text)]));
    this.rounds = this.axes.round ?? new Float64Array();
    this.ranges = {};
    this.bar = element.querySelector(".bar");
    if (this.bar) this.makeBar();
  }

  add(view) {
    this.views.push(view);
    this.ranges = {};
  }

  remove(view) {
    this.views = this.views.filter((each) => each !== view);
    this.ranges = {};
  }

  // Part of the x axis that is shown; null where nothing has a place on it.
  get window() {
    return this.shown ?? this.full;
  }

  get full() {
    if (!(this.axis in this.ranges)) {
      const found = this.views.filter((view) => view.data?.linked).map((view) => view.xRange() ?? []);
      const range = rangeOf([...found, this.axes[this.axis] ?? []]);
      const zero = (this.axis === "sim_time" || this.axis === "energy") && !this.views.some((view) => view.data?.linked && view.logX);
      const begins = range && zero ? [0, range[1]] : range;
      this.ranges[this.axis] = begins && (begins[0] < begins[1] ? begins : [begins[0] - 1, begins[1] + 1]);
    }
    return this.ranges[this.axis];
  }

  whyNot(axis) {
    return this.data.missing?.[axis] ?? "nothing has a place on this axis";
  }

  setAxis(axis) {
    Object.assign(this, { axis, shown: null });
    if (this.position !== null) this.x = this.axes[axis]?.[this.position] ?? null; else this.x = null;
    this.redraw();
  }

  // Shows a part of the axis in all linked views; null shows all of it.
  show(x) {
    const full = this.full;
    if (full === null) return;
    if (x !== null) {
      const [low, high] = [Math.max(x[0], full[0]), Math.min(x[1], full[1])];
      if (!(high - low > 1e-9 * (full[1] - full[0]))) return;
      this.shown = low <= full[0] && high >= full[1] ? null : [low, high];
    } else {
      this.shown = null;
      for (const view of this.views) view.showAll?.();
    }
    this.redraw();
  }

  // The pointer is at x: the nearest round is under the cursor, or x itself in a section of several runs.
  point(x) {
    if (this.rounds.length) this.setPosition(nearestPosition(this.axes[this.axis] ?? [], x));
    else { this.x = x; this.showCursors(); }
  }

  chooseX(x) {
    this.point(x);
    this.tell();
  }

  step(by) {
    if (!this.rounds.length) {
      const [low, high] = this.window ?? [0, 1];
      this.x = Math.min(high, Math.max(low, (this.x ?? low) + Math.sign(by) * (Number.isFinite(by) ? 0.02 : 1) * (high - low)));
      this.showCursors();
      return;
    }
    const last = this.rounds.length - 1, from = this.position ?? (by > 0 ? -1 : last + 1);
    this.setPosition(Math.min(last, Math.max(0, from + by)));
    if (this.shown && Number.isFinite(this.x)) {
      const moved = movedTo(this.shown, this.x);
      if (moved[0] !== this.shown[0]) this.show(moved);
    }
    this.tell();
  }

  setPosition(position) {
    if (position < 0 || position === this.position) return;
    this.position = position;
    this.x = this.axes[this.axis]?.[position] ?? null;
    if (this.slider) {
      this.slider.value = position;
      this.roundLabel.textContent = `${this.rounds[position]} of ${this.rounds[this.rounds.length - 1]}`;
    }
    this.showCursors();
  }

  showCursors() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      for (const view of this.views) view.showCursor();
    });
  }

  redraw() {
    this.element.querySelector(".bar .reset")?.toggleAttribute("disabled", this.shown === null && !this.views.some((view) => view.zoomed));
    for (const view of this.views) view.draw();
  }

  // What is at the cursor, for those who hear the page.
  tell() {
    const place = this.position !== null ? `round ${this.rounds[this.position]}` : numberText(this.x);
    const words = this.views.filter((view) => view.readouts).flatMap((view) => view.curves.map(
      (curve, at) => (view.readouts[at].textContent ? `${curve.label} ${numberText(view.valueAt(curve, this.x)[1])}` : ""),
    ));
    this.spoken.textContent = `${place}: ${words.filter(Boolean).join(", ")}`;
  }

  makeBar() {
    const find = (name) => this.bar.querySelector(`.${name}`);
    find("axis").addEventListener("change", (event) => this.setAxis(event.target.value));
    const middle = (factor) => {
      const [low, high] = this.window ?? [0, 1], at = this.x >= low && this.x <= high && this.x !== null ? this.x : (low + high) / 2;
      this.show([at - (at - low) * factor, at + (high - at) * factor]);
    };
    find("closer").addEventListener("click", () => middle(0.5));
    find("wider").addEventListener("click", () => middle(2));
    find("reset").addEventListener("click", () => this.show(null));
    this.spoken = find("spoken");
    // What is scrolled to or focused is not hidden behind the bar.
    new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${this.bar.offsetHeight + 8}px`; }).observe(this.bar);
    this.slider = find("round");
    if (!this.slider) return;
    this.roundLabel = find("number");
    this.slider.addEventListener("input", () => { this.setPosition(Number(this.slider.value)); this.tell(); });
    find("play").addEventListener("click", () => this.play(find("play")));
  }

  play(button) {
    const stop = () => { clearInterval(this.playing); this.playing = 0; button.textContent = "▶ Play"; };
    if (this.playing) { stop(); return; }
    if (this.position === this.rounds.length - 1) this.position = null;
    button.textContent = "⏸ Pause";
    this.playing = setInterval(() => {
      const next = (this.position ?? -1) + 1;
      if (next >= this.rounds.length) stop(); else this.setPosition(next);
    }, 250);
  }
}
