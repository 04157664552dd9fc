// Clients chosen with the keyboard: up and down go from client to client, Enter opens the life of the chosen one.

class ClientKeys {
  // `view` says where a client is (`spotOf`, in points of the plot) and what is known of it (`linesOf`, one line each).
  constructor(view, pick) {
    Object.assign(this, { view, pick, client: null });
    view.plot.host.addEventListener("blur", () => this.leave());
  }

  climb(by) {
    const last = this.view.cells.clients - 1, first = by > 0 ? last : 0;
    this.client = this.client === null ? first : Math.min(last, Math.max(0, this.client - by));
    this.view.reveal?.(this.client);
    this.tell();
  }

  step(by) {
    this.view.section.step(by);
    this.tell();
  }

  open() {
    if (this.client !== null) this.pick(this.client);
  }

  leave() {
    this.client = null;
    this.view.plot.say(null);
    this.view.plot.showSpot(null);
  }

  // Puts mark and note where the client is now.
  show() {
    if (this.client === null) return;
    const place = this.view.spotOf(this.client), seen = place.every(Number.isFinite) && this.view.plot.holds(...place);
    this.view.plot.showSpot(seen ? place : null);
    this.view.plot.say(seen ? this.view.linesOf(this.client) : null, ...place);
  }

  tell() {
    if (this.client === null) return;
    this.show();
    this.view.section.spoken.textContent = this.view.linesOf(this.client).join(", ");
  }
}
