// The page: which lake, which tab, and Airflow's theme.  The address after # says what is shown, so that a link, or
// the browser's way back, shows it again: #pools/LAKE, #health/LAKE, #jobs/LAKE, #transactions/LAKE, #pool/LAKE/POOL, and coverage, geometry, log and jobs alike.
// Links from tasks add what they committed: #geometry/LAKE/POOL/VERSION/BRANCH, #log/LAKE/POOL/VERSION/BRANCH.

import { $, el, host, note, read } from "./dom.js";
import { showPools } from "./pools.js";
import { showHealth } from "./health.js";
import { showPool } from "./pool.js";
import { showCoverage } from "./coverage.js";
import { showGeometry } from "./geometry.js";
import { showLog } from "./log.js";
import { showJobs } from "./jobs.js";
import { showTransactions } from "./transactions.js";
import { showAgents } from "./agents.js";

const PAGES = { pools: showPools, health: showHealth, pool: showPool, coverage: showCoverage, geometry: showGeometry, log: showLog, jobs: showJobs, transactions: showTransactions };
const LABELS = { pools: "Pools", health: "Health", pool: "Pool", coverage: "Coverage", geometry: "Geometry", log: "Log", jobs: "Jobs", transactions: "Transactions" };
const WITHOUT_POOL = ["pools", "health", "jobs", "transactions"];

const PATIENCE_MS = 200; // a store that answers sooner makes the page not flicker

let shown = 0;
let offered = new Map(); // by key: what is shown of a lake, and what a run is told

function place() {
  const [page, lake, pool, version, branch] = location.hash.slice(1).split("/").map(decoded);
  const shows = Object.hasOwn(PAGES, page) && (pool || WITHOUT_POOL.includes(page));
  const at = { version: /^\d+$/.test(version ?? "") ? Number(version) : null, branch: branch || "main" };
  return { page: shows ? page : "pools", lake, pool: pool ?? "", at };
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return ""; } // an address that somebody typed
}

const go = (page, pool) => {
  const before = location.hash;
  location.hash = [page, $("lake").value, ...(pool ? [pool] : [])].map(encodeURIComponent).join("/");
  if (location.hash === before) show(); // the same place again: as it is now
};

function showTabs(page, pool) {
  const tab = (name) => el(
    "button",
    { type: "button", click: () => go(name, ["pools", "health", "transactions"].includes(name) ? "" : pool), "aria-current": name === page ? "page" : null },
    LABELS[name],
  );
  $("tabs").replaceChildren(...Object.keys(PAGES).filter((name) => WITHOUT_POOL.includes(name) || pool).map(tab));
}

async function show() {
  const { page, lake: named, pool, at } = place();
  if (named && $("lake").options.length && ![...$("lake").options].some((option) => option.value === named)) {
    shown += 1;
    $("page").replaceChildren(el("p", { class: "bad" }, host.server === "airflow" ? `the lake ${named} is not shown here; LAKE_VIEW_LAKES of the API server names those that are` : `the lake ${named} is not shown here`));
    return;
  }
  if ([...$("lake").options].some((option) => option.value === named)) $("lake").value = named;
  const lake = $("lake").value;
  const turn = ++shown;
  showTabs(page, pool);
  note("");
  showAgents($("agents"), offered.get(lake), pool.split(".$")[0]);
  const heading = pool ? [el("h2", {}, pool)] : [];
  const put = (...content) => { if (turn === shown) $("page").replaceChildren(...content); };
  $("page").setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => put(...heading, el("p", { class: "quiet" }, `Reading the lake ${offered.get(lake)?.label ?? lake}…`)), PATIENCE_MS);
  try {
    const content = await PAGES[page](lake, pool, go, at, offered.get(lake));
    clearTimeout(waiting);
    put(...content);
    performance.mark(`shown ${page}`);
  } catch (error) {
    clearTimeout(waiting);
    put(...heading, failure(error));
  } finally {
    if (turn === shown) $("page").removeAttribute("aria-busy");
  }
}

/** What is shown in place of a page: why, and a way to try again, so that no pane stays blank. */
const failure = (error) => el(
  "div", { class: "failed" },
  el("p", { class: "bad" }, error.message || String(error)),
  el("button", { type: "button", click: () => location.reload() }, "Try again"),
);

/** Airflow keeps the theme that its user chose as `theme`; any other value leaves it to the system. */
function follow() {
  let theme = null;
  try { theme = localStorage.getItem("theme"); } catch { /* storage is switched off */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

follow();
// a fault of the page itself must not leave a blank pane
addEventListener("error", (event) => note(`the page has a fault: ${event.message}`, true));
addEventListener("unhandledrejection", (event) => note(event.reason?.message ?? String(event.reason), true));
addEventListener("storage", () => { follow(); dispatchEvent(new Event("resize")); });
addEventListener("hashchange", show);
$("lake").addEventListener("change", () => go("pools"));

try {
  const { server, lakes } = await read("about");
  host.server = server;
  offered = new Map(lakes.map((one) => [one.key, one]));
  $("lake").append(...lakes.map((one) => el("option", { value: one.key }, one.label)));
  $("lake").disabled = lakes.length < 2;
  await show();
} catch (error) {
  $("page").replaceChildren(failure(error));
}
