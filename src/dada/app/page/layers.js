// Layers of a result: numbers from the server, painted with the one colour scale of all of them.

const NO_VALUE = [158, 158, 158];

/** Fetch the view of a job with all its layers. */
export async function fetchView(job) {
  const view = await (await fetch(`/api/jobs/${job}/view`)).json();
  const layers = await Promise.all(
    view.layers.map(async (about) => {
      const answer = await fetch(`/api/jobs/${job}/layers/${encodeURIComponent(about.name)}`);
      const data = await answer.arrayBuffer();
      return { ...about, data: about.kind === "values" ? new Float32Array(data) : new Uint8Array(data) };
    }),
  );
  view.layers = new Map(layers.map((layer) => [layer.name, layer]));
  for (const layer of layers) layer.picture = paint(layer, scaleOf(view, layer));
  return view;
}

/** The colour scale of a layer; null: it has none. */
export function scaleOf(view, layer) {
  if (layer.kind !== "values") return null;
  return isError(layer) ? view.error_scale : view.scale;
}

export function isError(layer) {
  return layer.name.startsWith("error of ");
}

/** Index of the colour of a value, 0 to 255. */
export function colourIndex(scale, value) {
  const share = (value - scale.low) / (scale.high - scale.low);
  return Math.max(0, Math.min(scale.colours.length - 1, Math.floor(share * scale.colours.length)));
}

function paint(layer, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = layer.columns;
  canvas.height = layer.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(layer.columns, layer.rows);
  const { data } = layer;
  const pixels = image.data;
  for (let i = 0, o = 0; i < layer.rows * layer.columns; i++, o += 4) {
    if (layer.kind === "edges") {
      pixels[o] = 255;
      pixels[o + 1] = 0;
      pixels[o + 2] = 190;
      pixels[o + 3] = data[i];
      continue;
    }
    let colour;
    if (layer.kind === "rgb") colour = [data[3 * i], data[3 * i + 1], data[3 * i + 2]];
    else colour = Number.isFinite(data[i]) ? scale.colours[colourIndex(scale, data[i])] : NO_VALUE;
    pixels[o] = colour[0];
    pixels[o + 1] = colour[1];
    pixels[o + 2] = colour[2];
    pixels[o + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** What a layer holds at a point, x and y from 0 to 1, in words. */
export function valueText(view, layer, x, y) {
  const row = Math.min(layer.rows - 1, Math.floor(y * layer.rows));
  const column = Math.min(layer.columns - 1, Math.floor(x * layer.columns));
  const at = row * layer.columns + column;
  if (layer.kind === "rgb") return `${layer.data[3 * at]}, ${layer.data[3 * at + 1]}, ${layer.data[3 * at + 2]}`;
  const value = layer.data[at];
  if (!Number.isFinite(value)) return "no value";
  return `${format(value, scaleOf(view, layer))}${view.unit ? ` ${view.unit}` : ""}`;
}

/** The value of a layer at a point, or null. */
export function valueAt(layer, x, y) {
  if (layer.kind !== "values") return null;
  const row = Math.min(layer.rows - 1, Math.floor(y * layer.rows));
  const column = Math.min(layer.columns - 1, Math.floor(x * layer.columns));
  const value = layer.data[row * layer.columns + column];
  return Number.isFinite(value) ? value : null;
}

/** A number with as many decimals as its scale makes worth reading. */
export function format(value, scale) {
  const decimals = Math.max(0, Math.min(8, 3 - Math.floor(Math.log10(Math.max(scale.high - scale.low, 1e-12)))));
  return value.toFixed(Number.isInteger(value) && Math.abs(value) >= 100 ? 0 : decimals).replace("-", "−");
}
