// Two layers with a slider between them, enlarged and moved together.

import { isError, scaleOf, valueAt, valueText } from "./layers.js";
import { drawLegends, rangeText } from "./legend.js";

const GRIP = 22; // pixels from the slider within which a press takes it
const MOST = 64; // screen pixels of an image pixel, at most

const find = (id) => document.getElementById(id);

export class Viewer {
  constructor() {
    this.view = null;
    this.share = 0.5; // of the slider, from 0 to 1 of the stage
    this.pointer = null; // in the image, from 0 to 1
    this.canvas = find("canvas");
    this.stage = find("stage");
    for (const id of ["left", "right", "edges"]) find(id).addEventListener("change", () => this.draw());
    find("divider").addEventListener("input", (event) => this.slide(event.target.value / 1000));
    find("zoom-in").addEventListener("click", () => this.zoom(1.6));
    find("zoom-out").addEventListener("click", () => this.zoom(1 / 1.6));
    find("zoom-fit").addEventListener("click", () => this.fit());
    this.canvas.addEventListener("dblclick", () => this.fit());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.tell();
    });
    let room = 0;
    new ResizeObserver(([{ contentRect }]) => {
      if (!this.view || !contentRect.width || contentRect.width === room) return;
      room = contentRect.width;
      this.fit();
    }).observe(find("images"));
  }

  show(view) {
    const keep = this.view && [find("left").value, find("right").value];
    this.view = view;
    const names = [...view.layers.values()].filter((layer) => layer.kind !== "edges").map((layer) => layer.name);
    [
      ["left", "source"],
      ["right", "result"],
    ].forEach(([id, usual], number) => {
      const chosen = keep && names.includes(keep[number]) ? keep[number] : usual;
      find(id).replaceChildren(...names.map((name) => new Option(name, name, name === chosen, name === chosen)));
    });
    find("edges").disabled = !view.layers.has("edges");
    find("edges").checked = find("edges").checked && view.layers.has("edges");
    this.fit();
  }

  sides() {
    return ["left", "right"].map((id) => this.view.layers.get(find(id).value));
  }

  fit() {
    if (!this.view) return;
    const { rows, columns } = this.view;
    const room = find("images").clientWidth;
    const most = Math.max(240, window.innerHeight * 0.68);
    const width = Math.min(room, Math.max(360, most * (columns / rows))); // no wider than the image
    const height = Math.min(most, width * (rows / columns));
    find("frame").style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const density = window.devicePixelRatio || 1;
    this.canvas.width = width * density;
    this.canvas.height = height * density;
    this.scale = this.least = Math.min(width / this.view.columns, height / this.view.rows);
    this.x = (width - this.view.columns * this.scale) / 2;
    this.y = (height - this.view.rows * this.scale) / 2;
    this.draw();
  }

  zoom(factor, at = null) {
    if (!this.view) return;
    const centre = at ?? [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const scale = Math.max(this.least, Math.min(MOST, this.scale * factor));
    this.x = centre[0] - ((centre[0] - this.x) * scale) / this.scale;
    this.y = centre[1] - ((centre[1] - this.y) * scale) / this.scale;
    this.scale = scale;
    this.keep();
    this.draw();
  }

  keep() {
    // no side of the image leaves the stage further than it must
    for (const [name, size, room] of [
      ["x", this.view.columns * this.scale, this.canvas.clientWidth],
      ["y", this.view.rows * this.scale, this.canvas.clientHeight],
    ]) {
      if (size <= room) this[name] = (room - size) / 2;
      else this[name] = Math.min(0, Math.max(room - size, this[name]));
    }
  }

  slide(share) {
    this.share = Math.max(0, Math.min(1, share));
    find("divider").value = Math.round(1000 * this.share);
    this.draw();
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(1.0015 ** -event.deltaY, [event.offsetX, event.offsetY]);
    this.move(event);
  }

  press(event) {
    if (!this.view) return;
    this.canvas.setPointerCapture(event.pointerId);
    const width = this.canvas.clientWidth;
    const slides = Math.abs(event.offsetX - this.share * width) < GRIP || this.scale <= this.least * 1.001;
    let last = [event.offsetX, event.offsetY];
    const drag = (now) => {
      if (slides) {
        this.slide(now.offsetX / width);
        return;
      }
      this.x += now.offsetX - last[0];
      this.y += now.offsetY - last[1];
      last = [now.offsetX, now.offsetY];
      this.keep();
      this.draw();
    };
    if (slides) drag(event);
    this.canvas.addEventListener("pointermove", drag);
    const release = () => this.canvas.removeEventListener("pointermove", drag);
    this.canvas.addEventListener("pointerup", release, { once: true });
    this.canvas.addEventListener("pointercancel", release, { once: true });
  }

  move(event) {
    if (!this.view) return;
    const x = (event.offsetX - this.x) / this.scale / this.view.columns;
    const y = (event.offsetY - this.y) / this.scale / this.view.rows;
    this.pointer = x >= 0 && y >= 0 && x < 1 && y < 1 ? [x, y] : null;
    this.tell();
  }

  draw() {
    if (!this.view) return;
    const context = this.canvas.getContext("2d");
    const density = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    const place = [this.x, this.y, this.view.columns * this.scale, this.view.rows * this.scale];
    const cut = this.share * width;
    this.sides().forEach((layer, side) => {
      context.save();
      context.beginPath();
      if (side) context.rect(cut, 0, width - cut, height);
      else context.rect(0, 0, cut, height);
      context.clip();
      context.imageSmoothingEnabled = this.scale < 1 && layer.rows === this.view.rows;
      context.drawImage(layer.picture, ...place);
      context.restore();
    });
    if (find("edges").checked) {
      context.imageSmoothingEnabled = false;
      context.drawImage(this.view.layers.get("edges").picture, ...place);
    }
    find("handle").style.left = `${100 * this.share}%`;
    this.sides().forEach((layer, side) => {
      find(side ? "right-name" : "left-name").textContent = layer.name;
    });
    this.tell();
  }

  tell() {
    // the value under the pointer, and where it is on the colour bar
    const sides = this.sides();
    const used = new Map();
    for (const layer of sides) {
      const scale = scaleOf(this.view, layer);
      if (!scale) continue;
      const title = isError(layer) ? "error" : "value";
      if (!used.has(scale))
        used.set(scale, { title: title + (this.view.unit ? ` in ${this.view.unit}` : ""), scale, marks: [] });
      const value = this.pointer && valueAt(layer, ...this.pointer);
      if (value !== null && value !== undefined) used.get(scale).marks.push(value);
    }
    drawLegends(find("legends"), [...used.values()]);
    const readout = find("readout");
    if (!this.pointer) {
      const ranges = [...used.values()].map(({ scale }) => `Colours from ${rangeText(scale, this.view.unit)}. `);
      const help = "Point at the image to read values; the wheel enlarges, a double click fits.";
      readout.textContent = ranges.join("") + help;
      return;
    }
    const column = Math.floor(this.pointer[0] * this.view.columns);
    const row = Math.floor(this.pointer[1] * this.view.rows);
    readout.replaceChildren(`column ${column}, row ${row}`);
    for (const layer of new Set(sides)) {
      const strong = document.createElement("b");
      strong.textContent = valueText(this.view, layer, ...this.pointer);
      readout.append(` · ${layer.name} `, strong);
    }
  }
}
