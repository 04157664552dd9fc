// Everything is set up here: each section with its charts, then what a reader explores of a run.

const sections = [];

function drawEverything() {
  for (const section of sections) for (const view of section.views) view.resize();
}

// Map, timeline, outcomes and lives of the clients of a run; resolves when all of them are drawn.
async function explore(section) {
  const { element, data } = section, run = data.run, cells = new Cells(run);
  const figure = (name) => document.getElementById(`${element.id}-${name}`);
  await cells.load();
  if (!cells.clients) return;
  const messages = new Messages(run.messages, run.asynchronous);
  const life = new Life(section, figure("life"), cells, messages), pick = (client) => life.open(client);
  const map = new ClientMap(section, figure("map"), cells, run.map, pick);
  life.onOpen = (client) => { map.picked = client; map.draw(); };
  for (const view of [new StatusChart(section, figure("clients"), cells, pick), new Timeline(section, figure("timeline"), cells, messages, pick), map, life]) {
    section.add(view);
  }
  const search = section.bar.querySelector(".client");
  const find = () => {
    const words = search.value.trim(), place = /^\d+$/.test(words) ? cells.placeOf(Number(words)) : -1;
    search.setCustomValidity(place < 0 && words ? "The page has no client of this number." : "");
    search.reportValidity();
    if (place >= 0 && place !== life.client) pick(place);
  };
  search.addEventListener("change", find);
  // The number is as it was where its life has been closed.
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") find(); });
  search.addEventListener("input", () => search.setCustomValidity(""));
  const { count, seen } = run.clients;
  const fewer = count < seen ? `${count.toLocaleString("en")} of ${seen.toLocaleString("en")} clients, evenly spaced. ` : "";
  figure("clients").querySelector(".hint").textContent = `${fewer}Numbers of single clients are rounded to ${numberText(100 * run.cells.precision)} %.`;
  await map.load();
  for (const view of section.views) view.resize();
}

async function start() {
  performance.mark("report-start");
  document.querySelectorAll("table.sortable").forEach(sortableTable);
  for (const element of document.querySelectorAll("section[data-explorer]")) {
    const data = JSON.parse(document.getElementById(`${element.id}-data`).textContent), section = new Section(element, data);
    sections.push(section);
    for (const chart of data.charts) section.add(new CurveChart(section, document.getElementById(`${element.id}-${chart.name}`), chart));
    if (section.rounds.length) section.setPosition(section.rounds.length - 1);
  }
  drawEverything();
  performance.mark("report-drawn");
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; drawEverything(); } });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawEverything);
  // Paper is white whatever the screen is, and its columns are narrower.
  window.matchMedia("print").addEventListener("change", drawEverything);
  for (const event of ["beforeprint", "afterprint"]) window.addEventListener(event, drawEverything);
  for (const section of sections) if (section.data.run) await explore(section);
  performance.measure("report-opened", { start: 0, end: performance.mark("report-ready").startTime });
  document.documentElement.dataset.state = "ready";
}

start();
