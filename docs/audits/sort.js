// Sort the rows of a table by the column whose heading is pressed; pressed again, the other way.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => key(a, column).localeCompare(key(b, column), "en", { numeric: true });
      const rows = [...body.rows].sort(order);
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}
