for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], rows = [...body.rows]
  const value = (row, k) => {
    const cell = row.cells[k], number = cell.dataset.v
    return number === undefined ? cell.textContent.trim().toLowerCase() : Number(number)
  }
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))
  ;[...table.tHead.rows[0].cells].forEach((head, k) => {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = head.textContent
    head.replaceChildren(button)
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort")
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending")
      body.append(...rows.toSorted((a, b) => sign * compare(value(a, k), value(b, k))))
    })
  })
  if (rows.length < 8) continue
  const tools = document.createElement("p")
  tools.className = "tools"
  const add = (type, text) => {
    const label = document.createElement("label"), input = document.createElement("input")
    input.type = type
    if (type === "checkbox") label.append(input, " " + text)
    else label.append(text, input)
    input.addEventListener("input", filter)
    tools.append(label)
    return input
  }
  const search = add("search", "Show rows with")
  const only = rows.some(row => row.dataset.found) ? add("checkbox", "findings only") : null
  const count = document.createElement("span")
  count.className = "soft"
  count.setAttribute("role", "status")
  tools.append(count)
  function filter() {
    const wanted = search.value.toLowerCase()
    let shown = 0
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted) || (only?.checked && !row.dataset.found) || false
      shown += !row.hidden
    }
    count.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : ""
  }
  table.parentElement.before(tools)
}
