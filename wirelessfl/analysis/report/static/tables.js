// A click on a column's name sorts by it; a second one turns the order round. What has no number comes last.
function sortableTable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value.replace(/^(-?)inf$/, "$1Infinity");
    const rows = [...table.tBodies[0].rows];
    const words = rows.some((row) => row.cells[column].classList.contains("words"));
    const compare = (a, b) => {
      if (words) return (up ? 1 : -1) * key(a).localeCompare(key(b), undefined, { numeric: true });
      const [x, y] = [Number(key(a)), Number(key(b))];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return x === y ? 0 : (x < y) === up ? -1 : 1;
    };
    table.tBodies[0].append(...rows.sort(compare));
  }));
}
