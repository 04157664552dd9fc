// Everything is set up here: sections and their views are drawn when they come near to what is seen.

const sections = [];

function whenNear(element, draw) {
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    draw();
  }, { rootMargin: "600px" });
  watch.observe(element);
}

function drawEverything() {
  for (const section of sections) {
    for (const view of section.views) view.resize();
  }
}

function start() {
  performance.mark("report-start");
  document.querySelectorAll("table.sortable").forEach(sortableTable);
  for (const element of document.querySelectorAll("section[data-explorer]")) {
    const data = JSON.parse(document.getElementById(`${element.id}-data`).textContent);
    const section = new Section(element, data);
    sections.push(section);
    for (const chart of data.charts) {
      section.add(new CurveChart(section, document.getElementById(`${element.id}-${chart.name}`), chart));
    }
  }
  drawEverything();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; drawEverything(); } });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawEverything);
  // Paper is white whatever the screen is, and its columns are narrower.
  window.matchMedia("print").addEventListener("change", drawEverything);
  window.addEventListener("beforeprint", drawEverything);
  window.addEventListener("afterprint", drawEverything);
  performance.mark("report-drawn");
  performance.measure("report-opened", { start: 0, end: "report-drawn" });
  document.documentElement.dataset.state = "drawn";
}

start();
