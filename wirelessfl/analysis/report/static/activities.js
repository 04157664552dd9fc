// What nodes do, from the events of a block: the rules are those of wirelessfl/summary/timeline.py.

const BEGINS = {
  broadcast: "server", compute_start: "compute", compute_end: "wait", jam: "jam", arrive: "wait", transmit: "send",
  advertise_keys: "send", share_keys: "send", masked_input: "send", unmask: "send",
};
const ENDS = new Set(["late", "crash", "deep_fade", "outage", "no_model", "vanish"]);
const ENDS_ALL = new Set(["broadcast", "superpose", "evaluate"]);
const MARKS = {
  unavailable: "unavailable", battery_empty: "battery_empty", crash: "crashed", late: "late", deep_fade: "deep_fade",
  outage: "outage", no_model: "no_model", vanish: "lost", refuse: "lost", time_out: "late", abort: "aborted", jammer_failure: "crashed",
  server_restart: "server",
};
const DOING = { server: "broadcasts", compute: "trains", wait: "waits", send: "sends", jam: "jams" };
const JAMMER = 0, SERVER = 1, FIRST_CLIENT = 2;

// Stretches {node, role, kind, round, bits, begin, end} and marks {node, role, kind, round, time} of the events of one
// block, after what goes on at its beginning; `going` is changed to what goes on at its end.
function activities(block, kinds, going) {
  const stretches = [], marks = [];
  const stop = (node, time) => {
    const open = going.get(node);
    if (going.delete(node) && time > open.begin) stretches.push({ ...open, node, end: time });
  };
  for (let event = 0; event < block.count; event++) {
    const kind = kinds[block.kind[event]], node = block.node[event], time = block.time[event];
    if (ENDS_ALL.has(kind)) {
      for (const [each, { role }] of going) {
        if (kind === "superpose" || (role !== "compute" && role !== "send")) stop(each, time);
      }
    }
    if (kind === "compute_start") stop(SERVER, time);
    if (kind in BEGINS) {
      stop(node, time);
      going.set(node, { role: BEGINS[kind], kind, begin: time, round: block.first + block.round[event], bits: block.bits?.value(event) });
    } else if (ENDS.has(kind)) {
      stop(node, time);
    }
    if (kind in MARKS) marks.push({ node, role: MARKS[kind], kind, time, round: block.first + block.round[event] });
  }
  return { stretches, marks };
}

// The events of a run, block by block.
class Messages {
  constructor(data, asynchronous) {
    Object.assign(this, { ...data, asynchronous, unpacked: new Map(), done: new Map() });
  }

  async block(at) {
    if (!this.unpacked.has(at)) this.unpacked.set(at, this.unpack(this.blocks[at]));
    return this.unpacked.get(at);
  }

  async unpack(packed) {
    const [steps, node, kind, round] = await Promise.all(["time", "node", "kind", "round"].map((name) => wholeNumbers(packed[name])));
    const time = new Float64Array(packed.count), bits = packed.bits ? new Column({ name: "bits", label: "bits", ...packed.bits }) : null;
    let ticks = 0;
    for (let at = 0; at < packed.count; at++) { ticks += steps[at]; time[at] = packed.begin + ticks * packed.tick; }
    await bits?.load();
    return { count: packed.count, first: packed.first, time, node, kind, round, bits };
  }

  // What nodes do in a block. In rounds nothing goes on from one to the next; asynchronously it does, and the blocks
  // before tell what goes on.
  async doings(at) {
    if (!this.done.has(at)) {
      this.done.set(at, (async () => {
        const before = this.asynchronous && at > 0 ? (await this.doings(at - 1)).going : new Map();
        const block = await this.block(at), going = new Map(before);
        const found = activities(block, this.kinds, going);
        const open = at === this.blocks.length - 1 || !this.asynchronous ? going : new Map();
        const end = block.time[block.count - 1];
        for (const [node, doing] of open) if (end > doing.begin) found.stretches.push({ ...doing, node, end });
        return { ...found, block, going };
      })());
    }
    return this.done.get(at);
  }

  // Blocks that reach into a span of time.
  between(from, to) {
    return this.blocks.flatMap(({ begin, end }, at) => (end >= from && begin <= to ? [at] : []));
  }

  countBetween(from, to) {
    return this.between(from, to).reduce((sum, at) => {
      const { begin, end, count } = this.blocks[at], part = Math.min(end, to) - Math.max(begin, from);
      return sum + (end > begin ? count * Math.max(0, part) / (end - begin) : count);
    }, 0);
  }

  nodeName(node, ids) {
    return node === JAMMER ? "jammer" : node === SERVER ? "server" : `client ${ids[node - FIRST_CLIENT]}`;
  }
}
