// The page of html_report.h: style, places for the data, and the script that draws them.

#include "framework/plan/html_report.h"

namespace zg::plan {

const char kHtmlPage[] = R"PAGE(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Memory plan</title>
<style>
  body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }
  h1 { font-size: 1.2em; }
  pre { font-size: 12px; overflow-x: auto; }
  .legend span { margin-right: 1.2em; white-space: nowrap; }
  .legend i { display: inline-block; width: 0.9em; height: 0.9em; margin-right: 0.3em; }
  #picture { width: 100%; height: 380px; cursor: crosshair; }
  #lanes { width: 100%; height: 84px; cursor: crosshair; }
  svg text { font-size: 11px; fill: #555; }
  #columns { display: flex; gap: 2em; align-items: flex-start; }
  #columns > div { flex: 1; min-width: 0; }
  .rows { height: 420px; overflow: auto; border: 1px solid #ccc; }
  table { border-collapse: collapse; font-size: 12px; width: 100%; }
  td, th { text-align: left; padding: 1px 8px; white-space: nowrap; }
  th { position: sticky; top: 0; background: #eee; }
  td.bytes, th.bytes { text-align: right; }
  tr.here { background: #ffe9a8; }
  #schedule tbody tr { cursor: pointer; }
</style>
</head>
<body>
<h1 id="title"></h1>
<div id="categories" class="legend"></div>
<svg id="picture" role="img" aria-label="Bytes alive at each node of the step, by category"></svg>
<div id="sections" class="legend"></div>
<svg id="lanes" role="img" aria-label="When nodes compute and send, in the last micro-batch and the update">
</svg>
<p id="moment"></p>
<p id="under">The pictures name what is under the pointer: memory at each node of the step; below, by the
times of the plan, when each computes or sends in the last micro-batch of a step and its update.</p>
<div id="columns">
  <div><b>Alive at this node</b>
    <div class="rows"><table id="alive"><thead><tr><th>buffer</th><th>category</th>
      <th class="bytes">bytes</th></tr></thead><tbody></tbody></table></div></div>
  <div><b>Schedule</b>
    <div class="rows" id="scroll"><table id="schedule"><thead><tr><th>#</th><th>section</th>
      <th>op</th><th>value</th><th>module</th><th class="bytes">alive</th></tr></thead>
      <tbody></tbody></table></div></div>
</div>
<pre id="text"></pre>
<script type="application/json" id="data">%DATA%</script>
<script>
"use strict";
const plan = JSON.parse(document.getElementById("data").textContent);
const colors = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f"];
const [SECTION, OP, VALUE, MODULE, ALIVE] = [0, 1, 2, 3, 4];
const byId = id => document.getElementById(id);
const sum = numbers => numbers.reduce((a, b) => a + b, 0);

function formatBytes(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 999.95 && unit + 1 < units.length) { bytes /= 1000; ++unit; }
  return (unit === 0 ? bytes : bytes.toFixed(1)) + " " + units[unit];
}

function formatMs(ms) { return (ms < 100 ? ms.toPrecision(3) : ms.toFixed(0)) + " ms"; }

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function row(cells, bytesColumn) {
  const made = document.createElement("tr");
  cells.forEach((cell, i) => {
    const td = document.createElement("td");
    td.textContent = cell;
    if (i === bytesColumn) td.className = "bytes";
    made.appendChild(td);
  });
  return made;
}

// --- The picture: x is the node, y the bytes --------------------------------------------------
const picture = byId("picture");
const left = 70, bottom = 24, topMargin = 12;
const most = Math.max(plan.arena_bytes, 1);
let width = 0, height = 0;
const x = node => left + (width - left) * node / plan.nodes.length;
const y = bytes => height - bottom - (height - bottom - topMargin) * bytes / most;

function draw() {
  width = picture.clientWidth;
  height = picture.clientHeight;
  picture.replaceChildren();
  const base = new Array(plan.nodes.length).fill(0);
  plan.categories.forEach((name, category) => {
    const upper = [], lower = [];
    plan.nodes.forEach((node, i) => {
      const from = x(i).toFixed(1), to = x(i + 1).toFixed(1);
      const below = y(base[i]).toFixed(1);
      base[i] += node[ALIVE][category];
      const above = y(base[i]).toFixed(1);
      upper.push(from + "," + above, to + "," + above);
      lower.push(from + "," + below, to + "," + below);
    });
    const points = upper.concat(lower.reverse()).join(" ");
    picture.appendChild(element("polygon", {points, fill: colors[category]}));
  });
  for (let tick = 0; tick <= 4; ++tick) {
    const bytes = most * tick / 4;
    picture.appendChild(element("line", {x1: left, x2: width, y1: y(bytes), y2: y(bytes),
                                         stroke: "#0002"}));
    picture.appendChild(element("text", {x: 0, y: y(bytes) + 4}, formatBytes(Math.round(bytes))));
  }
  plan.nodes.forEach((node, i) => {
    if (i > 0 && node[SECTION] === plan.nodes[i - 1][SECTION]) return;
    picture.appendChild(element("line", {x1: x(i), x2: x(i), y1: topMargin, y2: height - bottom,
                                         stroke: "#000", "stroke-dasharray": "3 3"}));
    picture.appendChild(element("text", {x: x(i) + 4, y: height - 8}, node[SECTION]));
  });
  picture.appendChild(element("line", {id: "pointer", y1: topMargin, y2: height - bottom,
                                       stroke: "#000"}));
}

// --- The lanes: x is time ----------------------------------------------------------------------
const lanes = byId("lanes");
const laneHeight = 26, laneGap = 4;
const [NODE, BEGIN, END] = [0, 1, 2];
const laneSlices = [plan.computing, plan.sending];
const laneNames = ["computing", "sending"];
const sectionColors = {forward: "#76b7b2", backward: "#edc948", update: "#ff9da7"};
const endMs = laneSlices.flat().reduce((most, slice) => Math.max(most, slice[END]), 1e-9);
const xOfMs = ms => left + (width - left) * ms / endMs;
const yOfLane = lane => lane * (laneHeight + laneGap);

function drawLanes() {
  lanes.replaceChildren();
  laneSlices.forEach((slices, lane) => {
    lanes.appendChild(element("text", {x: 0, y: yOfLane(lane) + 17}, laneNames[lane]));
    for (const slice of slices) {
      lanes.appendChild(element("rect", {
        x: xOfMs(slice[BEGIN]).toFixed(2), y: yOfLane(lane), height: laneHeight,
        width: Math.max(xOfMs(slice[END]) - xOfMs(slice[BEGIN]), 0.05).toFixed(2),
        fill: sectionColors[plan.nodes[slice[NODE]][SECTION]]}));
    }
  });
  for (let tick = 0; tick <= 4; ++tick) {
    const ms = endMs * tick / 4;
    lanes.appendChild(element("text", {
      x: xOfMs(ms), y: yOfLane(2) + 14,
      "text-anchor": ["start", "middle", "middle", "middle", "end"][tick]},
      formatMs(ms)));
  }
}

function nameSliceUnder(lane, ms) {
  const slice = (laneSlices[lane] || []).find(s => s[BEGIN] <= ms && ms < s[END]);
  if (slice === undefined) {
    byId("under").textContent = lane in laneNames ? `not ${laneNames[lane]} then` : "";
    return;
  }
  show(slice[NODE], true);
  const node = plan.nodes[slice[NODE]];
  byId("under").textContent = `${laneNames[lane]}: ${node[OP]} %${node[VALUE]}, ` +
      `${formatMs(slice[END] - slice[BEGIN])}, from ${formatMs(slice[BEGIN])} to ` +
      formatMs(slice[END]);
}

// --- What is alive at a node, and where it stands in the schedule ------------------------------
let here = -1;
const scheduleRows = [];

function show(index, scrolls) {
  if (index === here) return;
  if (here >= 0) scheduleRows[here].className = "";
  here = index;
  const node = plan.nodes[index];
  scheduleRows[index].className = "here";
  if (scrolls) byId("scroll").scrollTop = scheduleRows[index].offsetTop - 200;
  const pointer = byId("pointer");
  pointer.setAttribute("x1", x(index + 0.5));
  pointer.setAttribute("x2", x(index + 0.5));
  byId("moment").textContent = `node ${index + 1} of ${plan.nodes.length}, ${node[SECTION]}: ` +
      `${node[OP]} %${node[VALUE]}${node[MODULE] ? " of " + node[MODULE] : ""}: ` +
      `${formatBytes(sum(node[ALIVE]))} alive` + (index === plan.peak_node ? ", the most" : "");
  const alive = plan.buffers.filter(b => b[3] <= index && index <= b[4]);
  alive.sort((a, b) => b[2] - a[2]);
  const shown = alive.slice(0, 200).map(
      b => row(["%" + b[0], plan.categories[b[1]], formatBytes(b[2])], 2));
  if (alive.length > shown.length) {
    shown.push(row([`and ${alive.length - shown.length} smaller ones`, "", ""], 2));
  }
  byId("alive").tBodies[0].replaceChildren(...shown);
}

// Buffers of one category lie on one another in the order of their births.
function bufferAt(index, bytes) {
  const alive = plan.nodes[index][ALIVE];
  const category = alive.findIndex((_, c) => bytes < sum(alive.slice(0, c + 1)));
  if (bytes < 0 || category < 0) return undefined;
  let rest = bytes - sum(alive.slice(0, category));
  return plan.buffers
      .filter(b => b[1] === category && b[3] <= index && index <= b[4])
      .sort((a, b) => a[3] - b[3])
      .find(b => (rest -= b[2]) < 0);
}

function nameUnder(index, bytes) {
  const buffer = bufferAt(index, bytes);
  byId("under").textContent = buffer === undefined ? "nothing is alive here" :
      `%${buffer[0]}: ${plan.categories[buffer[1]]}, ${formatBytes(buffer[2])}, alive from node ` +
      `${buffer[3] + 1} to ${buffer[4] + 1}`;
}

byId("title").textContent = plan.title;
document.title = plan.title;
byId("text").textContent = plan.text;

function addToLegend(legend, name, color) {
  const entry = document.createElement("span");
  const patch = document.createElement("i");
  patch.style.background = color;
  entry.append(patch, name);
  byId(legend).appendChild(entry);
}
plan.categories.forEach((name, category) => addToLegend("categories", name, colors[category]));
for (const section in sectionColors) addToLegend("sections", section, sectionColors[section]);
plan.nodes.forEach((node, i) => {
  const made = row([i + 1, node[SECTION], node[OP], "%" + node[VALUE], node[MODULE],
                    formatBytes(sum(node[ALIVE]))], 5);
  made.addEventListener("click", () => show(i, false));
  scheduleRows.push(made);
});
byId("schedule").tBodies[0].append(...scheduleRows);
draw();
drawLanes();
show(plan.peak_node, true);
picture.addEventListener("mousemove", event => {
  const corner = picture.getBoundingClientRect();
  const across = (event.clientX - corner.left - left) / (width - left);
  const up = (height - bottom - (event.clientY - corner.top)) / (height - bottom - topMargin);
  const node = Math.floor(across * plan.nodes.length);
  const index = Math.min(Math.max(node, 0), plan.nodes.length - 1);
  show(index, true);
  nameUnder(index, up * most);
});
lanes.addEventListener("mousemove", event => {
  const corner = lanes.getBoundingClientRect();
  const across = (event.clientX - corner.left - left) / (width - left);
  const lane = Math.floor((event.clientY - corner.top) / (laneHeight + laneGap));
  nameSliceUnder(lane, across * endMs);
});
window.addEventListener("resize", () => {
  const index = here;
  draw();
  drawLanes();
  here = -1;
  show(index, false);
});
</script>
</body>
</html>
)PAGE";

}  // namespace zg::plan
