// Names beside marks, only where they cover neither a curve nor a mark nor one another.

const HEIGHT = 14;
const CHARACTER = 6.7;
const STEP = 6; // pixels between boxes along a curve

export function boxAround([x, y], half) {
  return { left: x - half, right: x + half, top: y - half, bottom: y + half };
}

export function pathBoxes(path) {
  return path.slice(1).flatMap(([x, y], i) => {
    const [startX, startY] = path[i];
    const parts = Math.max(1, Math.ceil(Math.hypot(x - startX, y - startY) / STEP));
    return Array.from({ length: parts + 1 }, (_, k) => boxAround(
      [startX + ((x - startX) * k) / parts, startY + ((y - startY) * k) / parts], 3,
    ));
  });
}

function isFree(taken, box) {
  return !taken.some((b) => box.left < b.right && box.right > b.left && box.top < b.bottom && box.bottom > b.top);
}

// taken grows by the boxes of the names; what finds no room is left out, and read by pointing at its mark.
export function labelMarks(marks, taken, area, node) {
  return marks.filter((mark) => mark.label).flatMap(({ label, point: [x, y] }) => {
    const width = label.length * CHARACTER;
    for (const [dx, dy] of [[8, 5], [-8 - width, 5], [-width / 2, -8], [-width / 2, 21]]) {
      const box = { left: x + dx, right: x + dx + width, top: y + dy - HEIGHT, bottom: y + dy };
      const isInside = box.left >= area.left && box.right <= area.right && box.top >= area.top && box.bottom <= area.bottom;
      if (!isInside || !isFree(taken, box)) continue;
      taken.push(box);
      return [node("text", { class: "name", x: box.left, y: box.bottom - 3 }, label)];
    }
    return [];
  });
}
