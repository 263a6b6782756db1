// What the user is told beside a file, a field or the button; and questions to the server.

const find = (id) => document.getElementById(id);

export function clearProblems(field = null) {
  const selector = field ? `[data-field="${field}"] .problem` : ".problem";
  for (const place of document.querySelectorAll(selector)) {
    place.hidden = true;
    place.textContent = "";
    place.closest(".zone")?.classList.remove("wrong");
  }
}

export function tellProblem(message, field) {
  const place = (field && document.querySelector(`[data-field="${field}"] .problem`)) || find("problem");
  place.textContent = message;
  place.hidden = false;
  place.closest(".zone")?.classList.add("wrong");
  place.closest("details")?.setAttribute("open", "");
}

export function tellState(text) {
  find("state").textContent = text;
}

export async function ask(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw Object.assign(new Error("The server does not answer. Is dada app still running?"), { field: null });
  }
  const content = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(content.error.message), { field: content.error.file });
  return content;
}
