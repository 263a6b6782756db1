// The report, the downloads and the command of a job that is done.

const find = (id) => document.getElementById(id);

/** Show what the server tells of a job. */
export function showReport(end) {
  find("facts").replaceChildren(...end.facts.flatMap(([name, words]) => [text("dt", name), text("dd", words)]));
  showErrors(end);
  find("warnings").replaceChildren(...end.warnings.map((words) => text("li", words)));
  find("files").replaceChildren(
    ...end.files.map((file) => {
      const link = text("a", `Download ${file.what}`);
      link.href = `/api/jobs/${end.id}/files/${encodeURIComponent(file.name)}`;
      link.download = file.name;
      link.dataset.what = file.what;
      link.append(text("small", file.name));
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  find("command").textContent = end.command;
}

function showErrors({ errors, unit }) {
  const table = find("errors");
  table.hidden = !Object.keys(errors).length;
  const rows = [["error against the truth", "mean absolute", "root mean square"]];
  for (const [name, error] of Object.entries(errors))
    rows.push([name, ...[error.mae, error.rmse].map((value) => `${Number(value.toPrecision(3))} ${unit}`)]);
  table.replaceChildren(
    ...rows.map((cells, row) => {
      const line = document.createElement("tr");
      line.append(...cells.map((cell, column) => text(row && column ? "td" : "th", cell)));
      return line;
    }),
  );
}

function text(kind, words) {
  const element = document.createElement(kind);
  element.textContent = words;
  return element;
}
