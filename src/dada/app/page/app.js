// The form, the queue and the report. Everything here is what the API offers to anyone (docs/how-to/page.md).

import { Cloud } from "./cloud.js";
import { fetchView } from "./layers.js";
import { ask, clearProblems, tellProblem, tellState } from "./messages.js";
import { showReport } from "./report.js";
import { Viewer } from "./viewer.js";

const find = (id) => document.getElementById(id);
const form = find("form");
const files = { source: null, guide: null, confidence: null };
const viewer = new Viewer();
const cloud = new Cloud();
let example = null; // its name, while the files are those of an example
let job = null; // the id of the one that is shown or under way
let shown = null; // the id of the one that is shown
let looks = 0; // counts looks at files, so that an old answer does not overwrite a new one

// ---- files

function setUpZone(zone) {
  const { field } = zone.dataset;
  const input = zone.querySelector("input");
  zone.addEventListener("click", (event) => {
    if (event.target !== input) input.click();
  });
  zone.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      input.click();
    }
  });
  input.addEventListener("change", () => {
    if (input.files.length) choose(field, input.files[0]);
  });
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) choose(field, event.dataTransfer.files[0]);
  });
}

function choose(field, file) {
  if (example) {
    forgetExample();
    form.reset();
    selfTest();
  }
  files[field] = file;
  look(field);
  ready();
}

function forgetExample() {
  example = null;
  for (const field of ["source", "guide"]) {
    files[field] = null;
    describe(field, null);
  }
  for (const button of find("examples").children) button.setAttribute("aria-pressed", "false");
}

/** Ask the server what a file holds, and show it beside the file. */
async function look(field) {
  const file = files[field];
  if (!file) return;
  const number = ++looks;
  file.look = number;
  clearProblems(field);
  describe(field, { name: file.name, words: "looking at it …" });
  const body = new FormData();
  body.append(field, file, file.name);
  for (const name of field === "source" ? ["unit", "invalid", "source_key"] : ["guide_key"]) {
    if (form.elements[name].value) body.append(name, form.elements[name].value);
  }
  try {
    const found = await ask("/api/inspect", { method: "POST", body });
    if (files[field] !== file || file.look !== number) return;
    describe(field, { ...found, words: fileWords(field, found) });
    for (const text of found.warnings) tellState(text);
  } catch (error) {
    if (files[field] !== file || file.look !== number) return;
    describe(field, { name: file.name, words: "" });
    tellProblem(error.message, error.field ?? field);
  }
}

function fileWords(field, found) {
  const bands = found.bands === 1 ? "" : `, ${found.bands} bands`;
  const words = [`${found.width} x ${found.height}, ${found.format}, ${found.dtype}${bands}`];
  if (field === "source") {
    const range = found.low === null ? "no valid value" : `${short(found.low)} to ${short(found.high)}`;
    words.push(`unit ${found.unit}, invalid ${found.invalid} (${found.invalid_pixels} pixels), ${range}`);
  }
  if (found.georeferenced) words.push("georeferenced");
  return words.join("; ");
}

const short = (value) => String(Number(value.toPrecision(5)));

function describe(field, found) {
  const zone = document.querySelector(`.zone[data-field="${field}"]`);
  const [thumbnail, what, details] = [".thumbnail", ".what", ".details"].map((name) => zone.querySelector(name));
  zone.classList.toggle("filled", Boolean(found));
  zone.usual ??= [what.textContent, details.textContent];
  what.textContent = found ? found.name : zone.usual[0];
  details.textContent = found ? found.words : zone.usual[1];
  thumbnail.hidden = !found?.thumbnail;
  if (found?.thumbnail) thumbnail.src = found.thumbnail;
  if (!found) zone.querySelector("input").value = "";
}

function ready() {
  find("run").disabled = !(example || (files.source && files.guide));
}

// ---- examples

function setUpExamples(examples) {
  for (const about of examples) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.example = about.name;
    button.title = about.words;
    button.setAttribute("aria-pressed", "false");
    const image = document.createElement("img");
    image.alt = "";
    image.src = `/api/examples/${about.name}/${about.guide}`;
    const title = document.createElement("span");
    title.textContent = `${about.title} x${about.factor}`;
    button.append(image, title);
    button.addEventListener("click", () => takeExample(about));
    find("examples").append(button);
  }
}

async function takeExample(about) {
  clearProblems();
  forgetExample();
  example = about.name;
  form.reset();
  selfTest();
  files.confidence = null;
  for (const [name, value] of Object.entries(about.fields)) form.elements[name].value = value;
  for (const button of find("examples").children)
    button.setAttribute("aria-pressed", String(button.dataset.example === example));
  ready();
  run();
  for (const field of ["source", "guide"]) {
    describe(field, { name: about[field], words: field === "source" ? about.words : "example" });
    const answer = await fetch(`/api/examples/${about.name}/${about[field]}`);
    if (!answer.ok || example !== about.name) return;
    files[field] = new File([await answer.blob()], about[field]);
    await look(field);
  }
}

// ---- the job

function body() {
  const content = new FormData();
  if (example) content.append("example", example);
  else for (const [field, file] of Object.entries(files)) if (file) content.append(field, file, file.name);
  for (const element of form.elements) {
    if (!element.name || element.disabled || (element.type === "checkbox" && !element.checked)) continue;
    if (element.value) content.append(element.name, element.value);
  }
  return content;
}

async function run() {
  clearProblems();
  const before = job;
  let mine = null;
  find("run").disabled = true;
  tellState("sending …");
  try {
    const status = await ask("/api/jobs", { method: "POST", body: body() });
    mine = job = status.id;
    if (before && before !== shown) forget(before);
    find("stop").hidden = false;
    const end = await follow(status);
    if (job !== mine) return;
    if (end.state !== "done") throw Object.assign(new Error(end.error.message), { field: end.error.file });
    tellState("fetching the pictures …");
    const view = await fetchView(mine);
    if (job !== mine) return;
    if (shown) forget(shown);
    shown = mine;
    show(view, end);
    tellState(`done in ${end.seconds.toFixed(2)} s`);
  } catch (error) {
    if (mine !== job && mine !== null) return;
    tellState("");
    tellProblem(error.message, error.field);
  } finally {
    if (mine === job || mine === null) find("stop").hidden = true;
    ready();
  }
}

async function follow(status) {
  let now = status;
  while (now.state === "waiting" || now.state === "running") {
    const place = now.position > 1 ? `number ${now.position} in the queue` : "next in the queue";
    if (now.state === "running") tellState(`${now.note || "starting"} …`);
    else tellState(now.note ? `${place}; the server is ${now.note} …` : place);
    now = await ask(`/api/jobs/${status.id}?wait=20`);
    if (job !== status.id) break;
  }
  return now;
}

function forget(id) {
  fetch(`/api/jobs/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

function show(view, end) {
  find("result").classList.remove("empty");
  find("welcome").hidden = true;
  find("tabs").hidden = find("below").hidden = false;
  if (find("points").hidden) find("images").hidden = false;
  viewer.show(view);
  cloud.show(view);
  showReport(end);
}

// ---- the rest of the page

function selfTest() {
  form.elements.factor.disabled = !find("selftest").checked;
}

function chooseTab(name) {
  for (const [tab, panel] of [
    ["tab-images", "images"],
    ["tab-cloud", "points"],
  ]) {
    find(tab).setAttribute("aria-selected", String(panel === name));
    find(panel).hidden = panel !== name;
  }
  if (name === "points") cloud.draw();
  else viewer.fit();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
find("stop").addEventListener("click", () => {
  const id = job;
  job = null;
  forget(id);
  find("stop").hidden = true;
  tellState("stopped");
  ready();
});
find("selftest").addEventListener("change", selfTest);
find("first").addEventListener("click", () => find("examples").firstChild?.click());
for (const name of ["unit", "invalid", "source_key"])
  form.elements[name].addEventListener("change", () => {
    clearProblems(name);
    look("source");
  });
form.elements.guide_key.addEventListener("change", () => {
  clearProblems("guide_key");
  look("guide");
});
find("confidence").addEventListener("change", (event) => {
  files.confidence = event.target.files[0] ?? null;
});
find("tab-images").addEventListener("click", () => chooseTab("images"));
find("tab-cloud").addEventListener("click", () => chooseTab("points"));
find("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(find("command").textContent);
  find("copy").textContent = "Copied";
  setTimeout(() => {
    find("copy").textContent = "Copy";
  }, 1500);
});
for (const zone of document.querySelectorAll(".zone")) setUpZone(zone);
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
window.addEventListener("pagehide", () => {
  for (const id of new Set([job, shown])) if (id) forget(id);
});

ask("/api")
  .then((about) => {
    find("version").textContent = `dada ${about.version}.`;
    const { limits } = about;
    find("limits").textContent = [
      `Guides of up to ${limits.megapixels} million pixels, requests of up to ${limits.megabytes} MB,`,
      `${limits.jobs_at_a_time} at a time; results are kept for ${limits.minutes} minutes.`,
    ].join(" ");
    if (!about.local) find("private").textContent = "This page runs on another machine: files are sent there.";
    setUpExamples(about.examples);
    document.body.dataset.ready = "yes";
  })
  .catch((error) => tellProblem(error.message, null));
