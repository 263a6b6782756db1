// The result as points in space, drawn on the processor: it works on every machine, and needs no library.

import { colourIndex } from "./layers.js";

const find = (id) => document.getElementById(id);
const MOST_WHILE_TURNING = 250000; // points

export class Cloud {
  constructor() {
    this.canvas = find("cloud");
    this.view = null;
    this.turning = false;
    for (const id of ["cloud-colours", "cloud-mode", "cloud-height"]) {
      find(id).addEventListener("input", () => {
        if (id === "cloud-mode") this.reset();
        this.build();
        this.draw();
      });
    }
    find("cloud-fit").addEventListener("click", () => {
      this.reset();
      this.draw();
    });
    this.canvas.addEventListener("dblclick", () => {
      this.reset();
      this.draw();
    });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.distance *= 1.001 ** event.deltaY;
        this.later();
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
      if (!turn) return;
      event.preventDefault();
      this.turn(...turn);
    });
    new ResizeObserver(() => {
      if (this.view && this.canvas.clientWidth) this.draw();
    }).observe(this.canvas.parentElement);
  }

  show(view) {
    this.view = view;
    const metric = view.per_metre !== null;
    const mode = find("cloud-mode");
    mode.options[0].disabled = !metric;
    mode.value = metric && view.cell === null ? "camera" : "relief";
    find("cloud-height").value = this.trueHeight() ?? 15;
    this.reset();
    this.build();
    if (this.canvas.clientWidth) this.draw();
  }

  trueHeight() {
    // the range of values in hundredths of the width, where both are metres
    const { cell, per_metre: perMetre, scale, columns } = this.view;
    if (cell === null || perMetre === null) return null;
    return Math.max(1, Math.min(100, (100 * (scale.high - scale.low)) / perMetre / (cell * columns)));
  }

  reset() {
    const relief = find("cloud-mode").value === "relief";
    [this.yaw, this.pitch, this.distance, this.panX, this.panY] = relief
      ? [0.3, 0.8, 2.15, 0, 0]
      : [0.3, -0.14, 1.7, 0, 0];
  }

  build() {
    const layer = this.view.layers.get("result");
    const guide = this.view.layers.get("guide");
    const relief = find("cloud-mode").value === "relief";
    const byGuide = find("cloud-colours").value === "guide";
    find("cloud-height-label").hidden = !relief;
    const { rows, columns, data } = layer;
    const places = new Float32Array(3 * rows * columns);
    const colours = new Uint32Array(rows * columns);
    const { scale, camera } = this.view;
    const height = (0.01 * find("cloud-height").value * columns) / (scale.high - scale.low);
    let count = 0;
    for (let row = 0; row < rows; row++) {
      const v = ((row + 0.5) * this.view.rows) / rows - 0.5;
      for (let column = 0; column < columns; column++) {
        const i = row * columns + column;
        const value = data[i];
        if (!Number.isFinite(value)) continue;
        const u = ((column + 0.5) * this.view.columns) / columns - 0.5;
        if (relief) {
          places[3 * count] = column - columns / 2;
          places[3 * count + 1] = row - rows / 2;
          places[3 * count + 2] = -height * (value - scale.low);
        } else {
          const z = value / this.view.per_metre;
          places[3 * count] = ((u - camera.cx) / camera.fx) * z;
          places[3 * count + 1] = ((v - camera.cy) / camera.fy) * z;
          places[3 * count + 2] = z;
        }
        let colour = scale.colours[colourIndex(scale, value)];
        if (byGuide) {
          const at =
            3 *
            (Math.floor(((row + 0.5) * guide.rows) / rows) * guide.columns +
              Math.floor(((column + 0.5) * guide.columns) / columns));
          colour = [guide.data[at], guide.data[at + 1], guide.data[at + 2]];
        }
        colours[count++] = (255 << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0];
      }
    }
    this.apart = relief ? null : this.view.columns / columns / Math.min(camera.fx, camera.fy); // points, in depths
    this.places = places.subarray(0, 3 * count);
    this.colours = colours.subarray(0, count);
    this.frame();
    this.words(relief, count);
  }

  frame() {
    // the middle of the points, and how far they reach: robust against a few far ones
    const count = this.colours.length;
    const step = Math.max(1, Math.floor(count / 20000));
    this.centre = [0, 1, 2].map((axis) => {
      const sample = [];
      for (let i = 0; i < count; i += step) sample.push(this.places[3 * i + axis]);
      sample.sort((a, b) => a - b);
      return sample.length
        ? (sample[Math.floor(0.02 * sample.length)] + sample[Math.floor(0.98 * (sample.length - 1))]) / 2
        : 0;
    });
    const reach = [];
    for (let i = 0; i < count; i += step) {
      reach.push(Math.hypot(...[0, 1, 2].map((axis) => this.places[3 * i + axis] - this.centre[axis])));
    }
    reach.sort((a, b) => a - b);
    this.radius = reach[Math.floor(0.95 * (reach.length - 1))] || 1;
  }

  words(relief, count) {
    const { camera, stated } = this.view;
    const told = [
      `${count.toLocaleString("en")} points. Drag or use the arrow keys to turn, the wheel to come nearer,`,
      "Shift and drag to move.",
    ].join(" ");
    if (relief) {
      find("cloud-words").textContent = `${told} Values are drawn as heights; the slider sets how high.`;
    } else if (stated) {
      find("cloud-words").textContent =
        `${told} Camera as stated: fx ${camera.fx}, fy ${camera.fy}, cx ${camera.cx}, cy ${camera.cy}.`;
    } else {
      const { field_of_view: angle, assumed } = this.view;
      find("cloud-words").textContent = assumed
        ? `${told} The camera is unknown: a field of view of ${angle} degrees is taken. State yours under Camera.`
        : `${told} A field of view of ${angle} degrees, as stated.`;
    }
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    let last = [event.clientX, event.clientY];
    const moves = event.shiftKey || event.button === 2;
    const drag = (now) => {
      const [dx, dy] = [now.clientX - last[0], now.clientY - last[1]];
      last = [now.clientX, now.clientY];
      this.turning = true;
      if (moves) {
        this.panX += dx;
        this.panY += dy;
        this.later();
      } else this.turn(dx * 0.008, dy * 0.008);
    };
    this.canvas.addEventListener("pointermove", drag);
    const release = () => {
      this.canvas.removeEventListener("pointermove", drag);
      this.turning = false;
      this.later();
    };
    this.canvas.addEventListener("pointerup", release, { once: true });
    this.canvas.addEventListener("pointercancel", release, { once: true });
  }

  turn(yaw, pitch) {
    this.yaw += yaw;
    this.pitch = Math.max(-1.55, Math.min(1.55, this.pitch - pitch));
    this.later();
  }

  later() {
    if (this.waits) return;
    this.waits = requestAnimationFrame(() => {
      this.waits = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.view) return;
    const density = Math.min(2, window.devicePixelRatio || 1);
    const height = Math.min(window.innerHeight * 0.66, this.canvas.clientWidth * 0.72);
    this.canvas.style.height = `${height}px`;
    const [W, H] = [Math.round(this.canvas.clientWidth * density), Math.round(height * density)];
    if (!W || !H) return;
    this.canvas.width = W;
    this.canvas.height = H;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(W, H);
    this.project(new Uint32Array(image.data.buffer), W, H, density);
    context.putImageData(image, 0, 0);
  }

  project(pixels, W, H, density) {
    pixels.fill(0xff1c1815);
    const depths = new Float32Array(W * H).fill(Infinity);
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const [x0, y0, z0] = this.centre;
    const size = 1 / this.radius;
    const focal = 1.1 * Math.min(W, H);
    const [midX, midY] = [W / 2 + this.panX * density, H / 2 + this.panY * density];
    const count = this.colours.length;
    const step = this.turning && count > MOST_WHILE_TURNING ? Math.ceil(count / MOST_WHILE_TURNING) : 1;
    const { places, colours, distance, apart } = this;
    const spread = 1.6 * Math.sqrt(step) * focal * size; // of neighbours that are 1 apart, at depth 1
    for (let i = 0; i < count; i += step) {
      const x = (places[3 * i] - x0) * size;
      const y = (places[3 * i + 1] - y0) * size;
      const z = (places[3 * i + 2] - z0) * size;
      const turned = cy * x + sy * z;
      const ahead = cy * z - sy * x;
      const down = cp * y + sp * ahead;
      const depth = cp * ahead - sp * y + distance;
      if (depth < 0.05) continue;
      const px = midX + (focal * turned) / depth;
      const py = midY + (focal * down) / depth;
      const splat = Math.max(
        1,
        Math.min(12, Math.round((spread * (apart === null ? 1 : apart * places[3 * i + 2])) / depth)),
      );
      const left = Math.max(0, Math.floor(px - splat / 2));
      const top = Math.max(0, Math.floor(py - splat / 2));
      const right = Math.min(W, left + splat);
      const bottom = Math.min(H, top + splat);
      for (let row = top; row < bottom; row++) {
        for (let at = row * W + left; at < row * W + right; at++) {
          if (depth < depths[at]) {
            depths[at] = depth;
            pixels[at] = colours[i];
          }
        }
      }
    }
  }
}
