// Where a number lies on an axis, and which numbers are written beside it.

const AROUND = 0.04; // of the range, free at each end

function widened(low, high, least) {
  if (high - low >= least) return [low, high];
  return [(low + high - least) / 2, (low + high + least) / 2];
}

function placing(low, high, start, end) {
  const [first, last] = [low - AROUND * (high - low), high + AROUND * (high - low)];
  return [first, last, (value) => start + ((value - first) / (last - first)) * (end - start)];
}

export function linearAxis(values, least, start, end) {
  const good = values.filter(Number.isFinite);
  const [low, high, place] = placing(...widened(Math.min(...good), Math.max(...good), least), start, end);
  return { isLinear: true, low, high, place };
}

export function logarithmicAxis(values, least, start, end) {
  const good = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const [low, high, place] = placing(...widened(Math.min(...good), Math.max(...good), least), start, end);
  return { low, high, place: (value) => place(Math.log10(value)), ticks: (most) => powers(low, high, most) };
}

function powers(low, high, most) {
  const every = Math.max(1, Math.ceil((high - low) / most));
  const whole = [];
  for (let k = Math.ceil(low); k <= high; k += 1) if (k % every === 0) whole.push(10 ** k);
  if (whole.length > 1) return whole;
  const fine = [];
  for (let k = Math.floor(low); k <= high; k += 1) {
    for (const digit of [1, 2, 5]) {
      const power = k + Math.log10(digit);
      if (power >= low && power <= high) fine.push(10 ** power);
    }
  }
  return fine;
}

export function decimalTicks({ low, high }, most) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1].find((width) => (high - low) / width <= most) ?? high - low;
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) ticks.push(k * step);
  return ticks;
}

export function tickText(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 0.01 && Math.abs(value) < 1e4) return String(Number(value.toPrecision(2)));
  return Number(value.toPrecision(1)).toExponential().replace("e+", "e");
}
