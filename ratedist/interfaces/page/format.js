// Numbers as one reads them, and grids of numbers to ask about.

export function text(value) {
  const number = Number(value);
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return number.toLocaleString("en");
  return String(Number(number.toPrecision(6)));
}

export function short(value) {
  return text(Number(value).toPrecision(3));
}

export function seconds(value) {
  return `${short(value)} s`;
}

export function spread(low, high, points) {
  return Array.from({ length: points }, (_, i) => Number((low * (high / low) ** (i / (points - 1))).toPrecision(6)));
}
