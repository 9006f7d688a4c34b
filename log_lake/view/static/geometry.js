// The geometry of a pool: bars or bins over the keys, stacked by age, with tombstones as the white-out they are; and a
// slider through the versions.

import { colour, count, counted, el, moment, read, size, tip } from "./dom.js";

const HEIGHT = 380;
const STRIP = 16; // the tombstones, above the bars
const SLIDE_MS = 120;

const mix = (part) => colour(`color-mix(in oklch, var(--old), var(--new) ${Math.round(100 * part)}%)`);

/** The tombstones that hide records of the versions from `first` to `last` between two ranks. */
const covering = (marks, { low, high, first, last, applied }) => marks.filter((mark) => (
  mark.low < high && mark.high > low && mark.since <= last && mark.until >= first && mark.version > applied
));

/** How much a tombstone hides of a box: all of it, records of some versions, or those that fulfil a condition. */
const extent = (mark, { first, last }) => (mark.condition ? "some" : mark.since > first || mark.until < last ? "part" : "all");

/** What a tombstone hides of a box.  Only what it hides whole is whitened: a condition may hold for no record. */
const covered = (mark, box, x) => {
  const from = x(Math.max(box.low, mark.low));
  return { x: from, width: x(Math.min(box.high, mark.high)) - from, extent: extent(mark, box) };
};

function describe(mark) {
  const what = mark.replaces ? "replace" : "delete";
  return `${what} of version ${count(mark.version)}${mark.condition ? ` where ${mark.condition}` : ""}${mark.reason ? `: ${mark.reason}` : ""}`;
}

function hatch(pen, x, y, width, height) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.stroke();
  pen.restore();
}

/** Dots: some records are hidden here, those that fulfil a condition. */
function dots(pen, x, y, width, height) {
  const step = 5;
  for (let row = y + Math.min(2.5, height / 2); row < y + height; row += step) {
    for (let at = x + 2.5; at < x + width; at += step) {
      pen.beginPath();
      pen.arc(at, row, 1.1, 0, 7);
      pen.fill();
    }
  }
}

/** What is drawn, in pixels; `hit` says what is below the pointer. */
function scene(answer, width) {
  const { geometry } = answer;
  const marks = geometry.tombstones;
  const ranks = Math.max(1, geometry.edges.length - 1);
  const x = (rank) => (rank / ranks) * width;
  const room = HEIGHT - STRIP - 8;
  const hasKey = answer.fields.length > 0; // what is ordered by arrival has keys that say nothing
  return (geometry.kind === "bars" ? barsScene : binsScene)(geometry, marks, x, room, hasKey);
}

function barsScene(geometry, marks, x, room, hasKey) {
  const step = Math.min(26, room / Math.max(1, geometry.layers));
  const thick = Math.max(1, step - (step > 4 ? 2 : 0));
  const versions = [...new Set(geometry.bars.map((bar) => bar[3]))].sort((a, b) => a - b);
  const age = new Map(versions.map((version, index) => [version, versions.length < 2 ? 1 : index / (versions.length - 1)]));
  return geometry.bars.map(([low, high, layer, last, first, records, bytes, object, applied]) => {
    const what = { low, high, first, last, applied };
    const over = covering(marks, what);
    return {
      x: x(low), y: HEIGHT - (layer + 1) * step, width: Math.max(1, x(high) - x(low) - 1), height: thick, age: age.get(last),
      hidden: over.map((mark) => covered(mark, what, x)),
      text: [
        ...(hasKey ? [`${geometry.edges[low]} to ${geometry.edges[high]}`] : []),
        `${counted(records, "record")}, ${size(bytes)}`,
        first === last ? `version ${count(last)}` : `versions ${count(first)} to ${count(last)}`,
        object,
        ...over.map(describe),
      ].join("\n"),
    };
  });
}

function binsScene(geometry, marks, x, room, hasKey) {
  const deepest = Math.max(1, ...geometry.begins.map((_, bin) => geometry.cover.reduce((sum, age) => sum + age[bin], 0)));
  const boxes = [];
  geometry.begins.forEach((begins, bin) => {
    let top = HEIGHT;
    const text = [
      ...(hasKey ? [`${geometry.edges[bin]} to ${geometry.edges[bin + 1]}`] : []),
      `${counted(begins, "reference")} begin here: ${counted(geometry.records[bin], "record")}, ${size(geometry.size[bin])}`,
      `at most ${count(geometry.depth[bin])} overlap`,
    ];
    geometry.cover.forEach((age, index) => {
      const height = (age[bin] / deepest) * room;
      const [first, last] = geometry.ages[index];
      const what = { low: bin, high: bin + 1, first, last, applied: 0 };
      const over = covering(marks, what);
      top -= height;
      if (height < 0.2) return;
      boxes.push({
        x: x(bin), y: top, width: x(bin + 1) - x(bin), height, age: geometry.cover.length < 2 ? 1 : index / (geometry.cover.length - 1),
        hidden: over.map((mark) => covered(mark, what, x)),
        text: [...text, `on average ${age[bin]} of versions ${count(first)} to ${count(last)}`, ...over.map(describe)].join("\n"),
      });
    });
  });
  return boxes;
}

function draw(canvas, answer) {
  const width = canvas.clientWidth || 900;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = HEIGHT * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const ground = colour("var(--ground)");
  const quiet = colour("var(--quiet)");
  const bad = colour("var(--bad)");
  const boxes = scene(answer, width);
  const colours = new Map();
  for (const box of boxes) {
    if (!colours.has(box.age)) colours.set(box.age, mix(box.age));
    pen.fillStyle = colours.get(box.age);
    pen.fillRect(box.x, box.y, box.width, box.height);
    for (const out of box.hidden) {
      pen.fillStyle = ground;
      if (out.extent === "some") {
        dots(pen, out.x, box.y, out.width, box.height);
        continue;
      }
      pen.globalAlpha = out.extent === "part" ? 0.45 : 0.85;
      pen.fillRect(out.x, box.y, out.width, box.height);
      pen.globalAlpha = 1;
      pen.strokeStyle = quiet;
      pen.lineWidth = 0.6;
      if (box.height > 4 && out.width > 3) hatch(pen, out.x, box.y, out.width, box.height);
    }
  }
  const ranks = Math.max(1, answer.geometry.edges.length - 1);
  const strips = answer.geometry.tombstones.map((mark) => {
    const x = (mark.low / ranks) * width;
    const strip = { x, y: 2, width: Math.max(2, ((mark.high - mark.low) / ranks) * width), height: STRIP - 6, text: describe(mark) };
    pen.strokeStyle = bad;
    pen.lineWidth = 1;
    pen.fillStyle = bad;
    pen.setLineDash(mark.condition ? [3, 3] : []);
    pen.strokeRect(strip.x + 0.5, strip.y + 0.5, Math.max(1, strip.width - 1), strip.height);
    pen.setLineDash([]);
    (mark.condition ? dots : hatch)(pen, strip.x, strip.y, strip.width, strip.height);
    return strip;
  });
  return [...strips.reverse(), ...boxes];
}

/** A frame around the box that the arrow keys chose. */
function outline(canvas, box) {
  const pen = canvas.getContext("2d");
  pen.strokeStyle = colour("var(--text)");
  pen.lineWidth = 2;
  pen.strokeRect(box.x + 1, box.y + 1, Math.max(2, box.width - 2), Math.max(2, box.height - 2));
}

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

const hit = (boxes, x, y) => boxes.find((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);

export async function showGeometry(lake, name, go, at) {
  const asked = { lake, pool: name, branch: at.branch, version: at.version };
  let answer = await read("geometry", asked);
  let boxes = [];
  let timer = 0;
  let turn = 0;
  let chosen = -1; // the box that the arrow keys chose
  const canvas = el("canvas", {
    id: "geometry", height: HEIGHT, tabIndex: 0,
    mousemove: (event) => {
      const frame = canvas.getBoundingClientRect();
      tip(hit(boxes, event.clientX - frame.left, event.clientY - frame.top)?.text, event.clientX, event.clientY);
    },
    mouseleave: () => tip(""),
    keydown: (event) => {
      const step = STEPS[event.key];
      if (event.key === "Escape") tip("");
      if (!step || !boxes.length) return;
      event.preventDefault();
      chosen = (Math.max(chosen, step < 0 ? 0 : -1) + step + boxes.length) % boxes.length;
      redraw();
      outline(canvas, boxes[chosen]);
      const at = canvas.getBoundingClientRect();
      tip(boxes[chosen].text, at.left + boxes[chosen].x, at.top + boxes[chosen].y + boxes[chosen].height);
    },
    blur: () => { chosen = -1; tip(""); redraw(); },
  });
  canvas.style.height = `${HEIGHT}px`;
  const keys = el("div", { class: "keys" });
  const said = el("span", { id: "said" });
  const slider = el("input", {
    type: "range", id: "version", "aria-label": "Version",
    input: () => {
      clearTimeout(timer);
      timer = setTimeout(() => { asked.version = Number(slider.value); load(); }, SLIDE_MS);
    },
  });
  const branch = el("select", { "aria-label": "Branch", change: () => { asked.branch = branch.value; load(); } });
  const failed = el("p", { class: "bad" });
  const legend = el("div", { class: "legend" });
  const nothing = el("p", { class: "quiet nothing", hidden: true }, "No records in this version.");
  const base = name.split(".$")[0];

  async function load() {
    const mine = ++turn;
    try {
      const next = await read("geometry", asked);
      if (mine !== turn) return;
      answer = next;
      failed.textContent = "";
      fill();
    } catch (error) {
      if (mine === turn) failed.textContent = error.message;
    }
  }

  function fill() {
    const { geometry } = answer;
    slider.min = answer.oldest;
    slider.max = answer.newest;
    slider.value = answer.version;
    slider.disabled = answer.oldest >= answer.newest;
    said.textContent = `version ${count(answer.version)} of ${count(answer.newest)}${answer.time ? `, ${moment(answer.time)}` : ""}`;
    branch.replaceChildren(...answer.branches.map((each) => el("option", { value: each, selected: each === answer.branch }, each)));
    branch.hidden = answer.branches.length < 2;
    const about = `${counted(answer.references, "reference")} with ${counted(answer.records, "record")}, ${size(answer.size)}, ${counted(answer.tombstones, "tombstone")}`;
    figures.textContent = about + (geometry.kind === "bins" ? `; drawn in ${count(geometry.begins.length)} bins` : "");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${name}: ${about}`);
    const last = geometry.edges.length - 1;
    const labelled = last < 1 || !answer.fields.length ? [] : [...new Set([0, Math.floor(last / 2), last])];
    keys.replaceChildren(...labelled.map((at) => el("span", {}, geometry.edges[at])));
    nothing.hidden = answer.references > 0;
    const kinds = [["hatched", "deleted", (mark) => !mark.condition], ["dotted", "deleted where a condition holds", (mark) => Boolean(mark.condition)]];
    legend.replaceChildren(
      `key: ${answer.fields.join(", ") || "arrival"} · `, "old", el("span", { class: "ramp" }), "new",
      ...kinds.filter(([, , is]) => geometry.tombstones.some(is)).map(([name, text]) => el("span", { class: "entry" }, el("span", { class: `swatch ${name}` }), text)),
    );
    chosen = -1;
    boxes = draw(canvas, answer);
    canvas.dataset.boxes = boxes.length;
  }

  const figures = el("span", { class: "quiet", id: "figures" });
  const parts = [base, ...answer.sub_pools.map((sub) => `${base}.${sub}`)];
  function redraw() {
    if (canvas.isConnected) boxes = draw(canvas, answer);
    else removeEventListener("resize", redraw);
  }
  addEventListener("resize", redraw);
  requestAnimationFrame(() => fill());
  return [
    el(
      "div", { class: "bar" }, el("h2", {}, name), branch,
      ...(parts.length < 2 ? [] : parts.map((part) => el("button", { type: "button", "aria-pressed": String(part === name), click: () => go("geometry", part) }, part))),
      figures,
    ),
    el("div", { class: "bar" }, slider, said),
    el("div", { class: "picture" }, canvas, nothing), keys,
    legend,
    failed,
  ];
}
