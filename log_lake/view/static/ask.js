// The questions before an agent starts.  An agent that deletes begins with a dry run; without one, the person types
// the name of what it works on, after the form has said how much that is.

import { $, counted, el, moment, post, read, size } from "./dom.js";

/** The switch "Dry run", and what must be typed without it; `ready` says whether the run may start. */
function safeguard({ deletes, name, changed }) {
  const dry = el("input", { type: "checkbox", id: "dry", checked: deletes, change: () => shown() });
  const typed = el("input", { type: "text", id: "confirm", autocomplete: "off", spellcheck: false, input: () => changed() });
  const question = el(
    "p", { class: "confirm", hidden: true },
    el("label", { for: "confirm" }, "This cannot be undone. To start it, type ", el("b", {}, name)), typed,
  );
  function shown() {
    question.hidden = dry.checked || !deletes;
    changed();
  }
  return {
    parts: [el("p", {}, dry, " ", el("label", { for: "dry" }, "Dry run: log the plan, change nothing")), question],
    isDry: () => dry.checked,
    isConfirmed: () => dry.checked || !deletes || typed.value.trim() === name,
  };
}

function buttons(dialog, start) {
  return el("div", { class: "bar" }, start, el("button", { type: "button", click: () => dialog.close() }, "Cancel"));
}

const paused = (dag) => (dag.is_paused ? el("p", { class: "bad" }, "The DAG is paused: the run waits until it is switched on.") : null);

export function askAgent({ agent, dag, lake, pool, begin }) {
  const dialog = $("ask");
  const start = el("button", { type: "button", id: "start", click: () => { dialog.close(); begin({ dry_run: guard.isDry() }); } }, "Start");
  const guard = safeguard({ deletes: agent.deletes, name: pool || lake.label, changed: () => { start.disabled = !guard.isConfirmed(); } });
  const about = el("p", { class: "quiet", id: "about" });
  dialog.replaceChildren(
    el("h2", {}, `Start ${agent.dag}`),
    el("p", {}, `On ${pool ? `the pool ${pool}` : "all pools that have work"}, in the lake ${lake.label}.`),
    ...(agent.deletes ? [about] : []),
    paused(dag) ?? "",
    ...guard.parts,
    buttons(dialog, start),
  );
  dialog.showModal();
  if (agent.deletes) deletion(lake, pool).then((text) => { about.textContent = text; });
}

/** What the retention agent may delete for good. */
async function deletion(lake, pool) {
  if (!pool) return "It expires records and deletes removed objects in every pool, as the settings of each say. A dry run logs which.";
  try {
    const { removed, settings } = await read("pool", { lake: lake.key, pool });
    const age = settings.find((one) => one.name === "expire.age")?.text;
    return [
      removed.objects ? `${counted(removed.objects, "removed object")} (${size(removed.size)}) can be deleted for good, the first from ${moment(removed.until)} on.` : "No removed object waits to be deleted.",
      age ? `Records older than ${age} expire.` : "No record expires by its age.",
      "A dry run logs what is due now.",
    ].join(" ");
  } catch (error) {
    return `what is due is not known: ${error.message}`;
  }
}

const FIELDS = [
  ["where", "Where", "a condition, such as user_id = 4711"],
  ["key", "Key", "one key; of several fields a JSON list"],
  ["from", "From key", "inclusive"],
  ["to", "To key", "exclusive"],
];

export function askErasure({ agent, dag, lake, pool, begin }) {
  const dialog = $("ask");
  const inputs = Object.fromEntries(FIELDS.map(([name, label, hint]) => [name, el("input", { type: "text", id: `erase-${name}`, placeholder: hint, autocomplete: "off", spellcheck: false, "aria-label": label, input: () => { countedFor = ""; found.textContent = "Count the records before you start the run."; found.className = "quiet"; changed(); } })]));
  const said = () => Object.fromEntries(FIELDS.map(([name]) => [name, inputs[name].value.trim()]).filter(([, value]) => value));
  const found = el("p", { class: "quiet", id: "found" }, "Count the records before you start the run.");
  let countedFor = ""; // the fields that were counted last
  const start = el("button", { type: "button", id: "start", disabled: true, click: () => { dialog.close(); begin({ ...said(), dry_run: guard.isDry() }); } }, "Start");
  const guard = safeguard({ deletes: true, name: pool, changed: () => changed() });
  const tally = el("button", { type: "button", id: "count", disabled: true, click: () => look() }, "Count");

  function changed() {
    const asked = said();
    tally.disabled = !Object.keys(asked).length;
    start.disabled = countedFor !== JSON.stringify(asked) || tally.disabled || !guard.isConfirmed();
  }

  async function look() {
    const { from: low, to: high, ...asked } = said();
    const about = JSON.stringify(said());
    found.textContent = "Counting…";
    found.className = "quiet";
    try {
      const answer = await post("matching", { lake: lake.key, pool, ...asked, low, high });
      if (about !== JSON.stringify(said())) return;
      countedFor = about;
      found.textContent = `${answer.says}.`;
      found.className = answer.records ? "found" : "quiet";
    } catch (error) {
      found.textContent = error.message;
      found.className = "bad";
    }
    changed();
  }

  dialog.replaceChildren(
    el("h2", {}, `Erase records of ${pool}`),
    el("p", {}, `Removes them from every object of the pool, in the lake ${lake.label}, and writes a receipt.`),
    paused(dag) ?? "",
    el("div", { class: "form" }, ...FIELDS.flatMap(([name, label]) => [el("label", { for: `erase-${name}` }, label), inputs[name]])),
    el("div", { class: "bar" }, tally, found),
    ...guard.parts,
    el("p", { class: "quiet" }, "Airflow keeps what is written here with the run. If it may not be kept there, run lake erase instead."),
    buttons(dialog, start),
  );
  dialog.showModal();
  inputs.where.focus();
}
