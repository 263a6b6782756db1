// The colour bar: the range of the scale, its ticks, and the values under the pointer.

import { format } from "./layers.js";

const BAR = 14;

/** Draw one bar for each scale that is in use; `marks` are values under the pointer. */
export function drawLegends(place, legends) {
  while (place.children.length > legends.length) place.lastChild.remove();
  legends.forEach((legend, number) => {
    let row = place.children[number];
    if (!row) {
      row = document.createElement("div");
      row.className = "legend";
      row.append(document.createElement("span"), document.createElement("canvas"));
      place.append(row);
    }
    row.firstChild.textContent = legend.title;
    drawBar(row.lastChild, legend);
  });
}

function drawBar(canvas, { scale, marks }) {
  const density = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  canvas.width = width * density;
  canvas.height = height * density;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  const style = getComputedStyle(document.body);
  const [left, right] = [12, width - 12];
  const n = scale.colours.length;
  for (let x = left; x < right; x++) {
    context.fillStyle = `rgb(${scale.colours[Math.floor(((x - left) / (right - left)) * n)].join(",")})`;
    context.fillRect(x, 8, 1.5, BAR);
  }
  if (scale.extend === "min" || scale.extend === "both") arrow(context, left, -9, scale.colours[0]);
  if (scale.extend === "max" || scale.extend === "both") arrow(context, right, 9, scale.colours[n - 1]);
  const place = (value) => left + ((value - scale.low) / (scale.high - scale.low)) * (right - left);
  context.fillStyle = style.getPropertyValue("--faint");
  context.font = "12px system-ui, sans-serif";
  for (const tick of ticks(scale.low, scale.high)) {
    const x = place(tick.value);
    context.textAlign = x < left + 24 ? "left" : x > right - 24 ? "right" : "center";
    context.fillRect(x - 0.5, 8 + BAR, 1, 4);
    context.fillText(tick.text, x, 8 + BAR + 16);
  }
  context.fillStyle = style.getPropertyValue("--ink");
  for (const mark of marks) {
    const x = Math.max(left - 9, Math.min(right + 9, place(mark)));
    context.beginPath();
    context.moveTo(x, 8);
    context.lineTo(x - 5, 0);
    context.lineTo(x + 5, 0);
    context.fill();
  }
}

function arrow(context, x, way, colour) {
  context.fillStyle = `rgb(${colour.join(",")})`;
  context.beginPath();
  context.moveTo(x, 8);
  context.lineTo(x + way, 8 + BAR / 2);
  context.lineTo(x, 8 + BAR);
  context.fill();
}

/** Round numbers within a range, about six of them. */
export function ticks(low, high) {
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const decimals = Math.max(0, Math.min(10, 1 - Math.floor(Math.log10(step))));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    found.push({ value: i * step, text: String(Number((i * step).toFixed(decimals))).replace("-", "−") });
  }
  return found;
}

/** The range in words. */
export function rangeText(scale, unit) {
  return `${format(scale.low, scale)} to ${format(scale.high, scale)}${unit ? ` ${unit}` : ""}`;
}
