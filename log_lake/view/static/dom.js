// Elements, requests and figures as text.  Text from the lake becomes text nodes and never HTML: nothing in these
// modules parses a string as HTML.

/** What serves the page, as `about` says: `airflow` starts agents and has pages of runs; "" does not. */
export const host = { server: "" };

/** Milliseconds that an answer may take; the server itself gives up after 30 s. */
const MAX_MS = 60_000;

export const $ = (id) => document.getElementById(id);

/** An element; properties whose value is a function are event listeners, `class` and `aria-*` are attributes. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "class" || name.includes("-") || name === "for") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** The JSON of an answer of this app; throws an Error with one line if there is none. */
export async function read(path, parameters = {}) {
  const url = new URL(`data/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, value);
  }
  return answer(await asked(url, { credentials: "same-origin" }));
}

/** As `read`, with what must not stand in an address, because servers log addresses: values of records. */
export async function post(path, body) {
  return answer(await asked(new URL(`data/${path}`, document.baseURI), sending("POST", body)));
}

/** The request with this body as JSON; undefined: without a body. */
function sending(method, body) {
  const request = { method, headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (body === undefined) return request;
  return { ...request, headers: { ...request.headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

async function asked(url, request) {
  try {
    return await fetch(url, { ...request, signal: AbortSignal.timeout(MAX_MS) });
  } catch (error) {
    throw new Error(error.name === "TimeoutError" ? "the server did not answer within a minute; load the page again" : "the server cannot be reached; is it still running?");
  }
}

/** As `read`, of Airflow's own API, with the rights of the user who is logged in. */
export async function airflow(method, path, body) {
  const url = new URL(`../api/v2/${path}`, document.baseURI);
  return answer(await asked(url, sending(method, body)));
}

async function answer(response) {
  if (response.ok) {
    try {
      return await response.json();
    } catch {
      throw new Error("the answer cannot be read; load the page again");
    }
  }
  let detail = "";
  try {
    const said = (await response.json()).detail;
    detail = typeof said === "string" ? said : JSON.stringify(said);
  } catch { /* no JSON: the status says what there is to say */ }
  if (response.status === 401 && host.server === "airflow") detail = "you are not logged in: log in to Airflow, and load this page again";
  if (response.status === 403) detail = `you do not have the right to do this (${detail})`;
  throw new Error(detail || `${response.status} ${response.statusText}`);
}

export function note(text, bad = false) {
  const line = $("note");
  line.textContent = text;
  line.className = bad ? "bad" : "";
}

const WHOLE = new Intl.NumberFormat("en");
export const count = (value) => (value === null || value === undefined ? "" : WHOLE.format(value));

/** `1 object`, `1,000 objects`. */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** The records that readers see; `≤` if deletes, ages or equal keys may hide some of them. */
export const seen = ({ records, is_exact: exact }) => (exact ? count(records) : `≤ ${count(records)}`);

/** Why that is another number than the records in objects; null if it is the same. */
export const hidden = ({ records, is_exact: exact, stored }) => (
  exact && records === stored ? null : `${exact ? "" : "at most; "}objects hold ${counted(stored, "record")}`
);

/** A link to the page of Airflow of a run; null if there is none here. */
export function runLink({ dag, run, task }) {
  if (host.server !== "airflow" || !dag || !run) return null;
  const path = ["dags", dag, "runs", run].map(encodeURIComponent).join("/");
  return el("a", { href: new URL(`../${path}`, document.baseURI).href, target: "_top" }, [dag, run, task].filter(Boolean).join(" / "));
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  let unit = 0;
  while (bytes >= 1000 && unit < 5) { bytes /= 1000; unit += 1; }
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
}

/** How long ago, in one unit. */
export function ago(seconds, now) {
  if (seconds === null || seconds === undefined) return "";
  let rest = Math.max(0, now - seconds);
  for (const [step, unit] of [[60, "s"], [60, "min"], [24, "h"], [Infinity, "d"]]) {
    if (rest < step || step === Infinity) return `${Math.floor(rest)} ${unit} ago`;
    rest /= step;
  }
  return "";
}

export const moment = (seconds) => (seconds ? `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC` : "");

let probe = null;

/** A colour of the palette, or a mix of two, as canvas understands it. */
export function colour(expression) {
  probe ??= document.body.appendChild(el("span", { id: "probe" }));
  probe.style.color = expression;
  return getComputedStyle(probe).color;
}

export function tip(text, x, y) {
  const box = $("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.offsetHeight - 8))}px`;
}
