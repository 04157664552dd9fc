// Numbers: unpacked from the page, looked up, and put into words.

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

// Little-endian doubles in base 64, as `packed` in charts.py writes them.
function unpacked(text) {
  return new Float64Array(bytesOf(text).buffer);
}

const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function numberText(value, digits = 4, largest = 1e6) {
  if (Number.isNaN(value) || value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= largest || size < 1e-3)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 3) - 1).split("e");
    const power = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPT[digit]).join("");
    const factor = Number(mantissa) === 1 ? "" : `${Number(mantissa)}·`;
    return `${factor}10${exponent < 0 ? "⁻" : ""}${power}`.replace("-", "−");
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// Position of the last value that is not above x, in values that never descend; NaN count as above all.
function positionOf(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// Position of the value nearest to x, -1 where there is none.
function nearestPosition(values, x) {
  const before = positionOf(values, x), after = before + 1;
  if (before < 0) return values[after] <= Infinity ? after : -1;
  if (!(values[after] < Infinity)) return before;
  return x - values[before] <= values[after] - x ? before : after;
}

// A part of an axis, as long as before, moved as little as it takes to hold `at`.
function movedTo([low, high], at) {
  const by = at < low ? at - low : at > high ? at - high : 0;
  return [low + by, high + by];
}

// Least and largest finite number of several lists; null where there is none.
function rangeOf(lists, wanted = Number.isFinite) {
  let low = Infinity, high = -Infinity;
  for (const values of lists) {
    for (const value of values) {
      if (!wanted(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

// Ticks of a logarithmic axis between two exponents of ten: 1, 3, 10, 30, ..., fewer or more as the range asks.
function logTicks(low, high) {
  const decades = high - low, ticks = [];
  const steps = decades <= 1.2 ? [1, 2, 3, 5, 7] : decades <= 3 ? [1, 3] : [1];
  const every = Math.max(1, Math.ceil(decades / 6));
  for (let power = Math.floor(low); power <= high; power += 1) {
    if (power % every !== 0) continue;
    for (const step of steps) {
      const at = power + Math.log10(step);
      if (at >= low - 1e-9 && at <= high + 1e-9) ticks.push(at);
    }
  }
  return ticks.length > 1 ? ticks : linearTicks(10 ** low, 10 ** high, 4).map(Math.log10);
}

// Ticks of a linear axis: multiples of 1, 2 or 5 times a power of ten; whole numbers alone where only these exist. One
// tick gives no scale: there are more than `most` rather than that.
function linearTicks(low, high, most, whole = false) {
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [0.2, 0.5, 1, 2, 5, 10].map((factor) => factor * power).map((step) => (whole ? Math.max(1, Math.round(step)) : step));
  let at = steps.findIndex((step) => step >= rough * (1 - 1e-9)), ticks = multiples(steps[at], low, high);
  while (ticks.length < 2 && at > 0) ticks = multiples(steps[at -= 1], low, high);
  return ticks;
}

function multiples(step, low, high) {
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + 1e-9 * step; count += 1) found.push(count * step);
  return found;
}
