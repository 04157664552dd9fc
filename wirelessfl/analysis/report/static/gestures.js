// What a reader does on a plot with mouse, finger or keys.
//
// Dragging chooses a part to zoom into, with Shift it moves the part that is shown; a double click shows all again. The
// wheel zooms with Ctrl alone: without it the page scrolls. A finger scrolls up and down and chooses sideways.

const SHORTEST_DRAG = 6;

function listenTo(plot, act) {
  const host = plot.host;
  let begin = null;

  const placeOf = (event) => {
    const box = host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !plot.holds(...placeOf(event))) return;
    begin = { place: placeOf(event), moves: event.shiftKey, window: plot.window };
    host.setPointerCapture(event.pointerId);
  });
  host.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    if (begin === null) {
      if (plot.holds(...place)) act.hover(...place); else act.leave();
    } else if (begin.moves) {
      act.show(plot.moved(begin.window, place[0] - begin.place[0], place[1] - begin.place[1]));
    } else {
      plot.markPart(begin.place, place);
    }
  });
  host.addEventListener("pointerup", (event) => {
    if (begin === null) return;
    const place = placeOf(event), [dx, dy] = place.map((value, at) => Math.abs(value - begin.place[at]));
    const drag = dx > SHORTEST_DRAG || (plot.zoomsY && dy > SHORTEST_DRAG);
    plot.markPart(null);
    if (!begin.moves && drag) act.show(plot.partBetween(begin.place, place));
    else if (!begin.moves) act.choose(...place);
    begin = null;
  });
  host.addEventListener("pointercancel", () => { begin = null; plot.markPart(null); });
  host.addEventListener("pointerleave", () => { if (begin === null) act.leave(); });
  host.addEventListener("dblclick", () => act.show(null));
  host.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    act.show(plot.zoomed(event.deltaY > 0 ? 1.25 : 0.8, placeOf(event)));
  }, { passive: false });
  host.addEventListener("keydown", (event) => {
    const keys = {
      ArrowLeft: () => act.step(-1), ArrowRight: () => act.step(1), Home: () => act.step(-Infinity),
      End: () => act.step(Infinity), "+": () => act.show(plot.zoomed(0.5)), "=": () => act.show(plot.zoomed(0.5)),
      "-": () => act.show(plot.zoomed(2)), 0: () => act.show(null), Enter: () => act.choose(), Escape: () => act.leave(),
      ArrowUp: () => act.climb(1), ArrowDown: () => act.climb(-1),
    };
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    if (keys[event.key]() === false) return;
    event.preventDefault();
  });
}
