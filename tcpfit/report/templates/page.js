"use strict";
// The page works without this script, but for figures, sorting, filtering and copying. It loads nothing.
(() => {
  const themes = THEMES;
  const MANY = 1500; // rows of data from which a figure is drawn on a canvas: quicker; SVG is sharper in print
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // What was said last, for everyone: shown for some seconds, read by screen readers.
  let silence;
  function say(text) {
    clearTimeout(silence);
    byId("live").textContent = text;
    silence = setTimeout(() => { byId("live").textContent = ""; }, 6000);
  }

  // --- theme: that of the system unless chosen here ---
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const CHOICES = { "": "as the system", light: "light", dark: "dark" };
  let chosen = "";
  try { chosen = localStorage.getItem("tcpfit-theme") ?? ""; } catch { /* no storage for this file */ }
  const theme = () => chosen || (dark.matches ? "dark" : "light");
  function showTheme() {
    if (chosen in CHOICES && chosen) root.dataset.theme = chosen; else delete root.dataset.theme;
    byId("theme").textContent = `Theme: ${CHOICES[chosen] ?? CHOICES[""]}`;
  }
  byId("theme").addEventListener("click", () => {
    const names = Object.keys(CHOICES);
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    try { localStorage.setItem("tcpfit-theme", chosen); } catch { /* it holds until the page is closed */ }
    showTheme();
    redraw();
  });
  dark.addEventListener("change", () => { if (!chosen) redraw(); });
  showTheme();

  // --- Wireshark filters ---
  async function copy(filter) {
    let done = false;
    try {
      await navigator.clipboard.writeText(filter);
      done = true;
    } catch {
      const field = document.createElement("textarea");
      field.value = filter;
      field.setAttribute("aria-hidden", "true");
      field.style.position = "fixed";
      const focused = document.activeElement;
      document.body.append(field);
      field.select();
      done = document.execCommand("copy");
      field.remove();
      focused?.focus({ preventScroll: true });
    }
    say(done ? `Copied the Wireshark filter ${filter}` : `The browser does not let this page copy; the filter is ${filter}`);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.copy");
    if (button) copy(button.dataset.filter);
  });

  // --- the table of flows ---
  const table = document.querySelector("table.flows");
  if (table && table.tBodies[0].rows.length > 1) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({
      row, place, text: row.textContent.toLowerCase(), values: [...row.cells].map((cell) => cell.dataset.value),
    }));
    const form = document.querySelector(".filters");
    const narrow = () => {
      const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const [cause, state] = [byId("cause").value, byId("state").value];
      let shown = 0;
      for (const { row, text } of rows) {
        const fits = words.every((word) => text.includes(word))
          && (!cause || row.dataset.cause === cause) && (!state || row.dataset.state === state);
        row.hidden = !fits;
        shown += fits;
      }
      byId("shown").textContent = shown === rows.length
        ? `Showing ${rows.length} flows.` : `Showing ${shown} of ${rows.length} flows.`;
    };
    form.hidden = false;
    form.addEventListener("input", narrow);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(narrow));

    const compare = (a, b, column) => {
      const [x, y] = [a.values[column], b.values[column]];
      if (x === "" || y === "") return (x === "") - (y === ""); // what is not known stands last, whatever the order
      const [i, j] = [Number(x), Number(y)];
      return Number.isNaN(i) || Number.isNaN(j) ? x.localeCompare(y, "en", { numeric: true }) : i - j;
    };
    for (const button of all("button.sort", table)) {
      const heading = button.closest("th");
      const column = heading.cellIndex;
      button.disabled = false;
      button.addEventListener("click", () => {
        const before = heading.getAttribute("aria-sort");
        const first = heading.classList.contains("number") ? "descending" : "ascending";
        const order = before === null ? first : before === "ascending" ? "descending" : "ascending";
        for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => {
          const unknown = (a.values[column] === "") - (b.values[column] === "");
          return unknown || sign * compare(a, b, column) || a.place - b.place;
        });
        body.append(...rows.map(({ row }) => row));
        say(`Sorted by ${button.textContent}, ${order}`);
      });
    }
  }

  // --- figures: unpacked and drawn when they come into sight ---
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  let library;
  const vega = () => (library ??= unpack(byId("library").textContent).then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  }));
  const specs = new Map(); // of a flow's section: its specifications by name
  const drawn = new Map(); // of a chart's element: { view, width }
  const under = new Map(); // of a chart's element: the drawing under way
  window.tcpfit = { drawn }; // for a look from the console

  function specsOf(flow) {
    if (!specs.has(flow)) specs.set(flow, unpack(flow.querySelector("script.figures").textContent).then(JSON.parse));
    return specs.get(flow);
  }

  const height = (set) => Object.values(set)[0]?.length ?? 0;
  const rowsOf = (spec) => Object.values(spec.datasets).reduce((sum, set) => sum + height(set), 0);

  const AXES = 70; // pixels beside a chart
  const ENTRY = 165; // of the longest entry of a legend, which begins where the chart does

  // A specification of this width, its tables as rows; they are packed by column.
  function fitted(spec, width) {
    const copied = structuredClone(spec);
    for (const [name, set] of Object.entries(spec.datasets)) {
      const names = Object.keys(set);
      copied.datasets[name] = Array.from({ length: height(set) },
        (_, row) => Object.fromEntries(names.map((column) => [column, set[column][row]])));
    }
    if (typeof copied.width === "number") {
      copied.width = Math.max(width, 280);
      copied.autosize = { type: "fit-x", contains: "padding" };
    } else if (copied.hconcat) {
      beside(copied, width);
    }
    narrowed(copied, Math.max(1, Math.floor((width - AXES) / ENTRY)));
    return copied;
  }

  // Charts beside each other share the width; where it is narrow they stand below each other.
  function beside(spec, width) {
    const parts = spec.hconcat;
    const sum = parts.reduce((total, part) => total + (part.width ?? 0), 0);
    const narrow = width < 600;
    for (const part of parts) {
      if (typeof part.width !== "number") continue;
      part.width = Math.round(narrow ? width - AXES : (part.width / sum) * (width - AXES * parts.length));
    }
    if (narrow) {
      for (const part of parts) for (const each of [part, ...(part.layer ?? [])]) {
        if (each.encoding?.y?.axis?.labels === false) each.encoding.y.axis = { title: null }; // its neighbour had labels
      }
      spec.vconcat = parts;
      delete spec.hconcat;
    }
  }

  // Legends of no more columns than fit.
  function narrowed(part, most) {
    if (part === null || typeof part !== "object") return;
    if (part.legend?.columns) part.legend.columns = Math.min(part.legend.columns, most);
    for (const [key, inner] of Object.entries(part)) if (key !== "datasets") narrowed(inner, most);
  }

  async function draw(chart) {
    const flow = chart.closest(".flow, #corpus");
    const [found] = await Promise.all([specsOf(flow), vega()]);
    const spec = found[chart.closest(".figure").dataset.kind];
    const width = chart.clientWidth;
    drawn.get(chart)?.view.finalize();
    const { view } = await window.vegaEmbed(chart, fitted(spec, width), {
      actions: false,
      ast: true, // Vega's interpreter of expressions: the page's policy allows no eval
      config: themes[theme()],
      defaultStyle: false,
      logLevel: 1, // of Vega: errors
      renderer: rowsOf(spec) > MANY ? "canvas" : "svg",
      tooltip: { disableDefaultStyle: true },
    });
    for (const surface of all("canvas, svg", chart)) surface.setAttribute("aria-hidden", "true"); // the text says it
    view.addEventListener("click", (event, item) => { if (item?.datum?.filter) copy(item.datum.filter); });
    view.addEventListener("mouseover", (event, item) => { chart.style.cursor = item?.datum?.filter ? "pointer" : ""; });
    const again = drawn.has(chart);
    drawn.set(chart, { view, width });
    if (!again) controls(chart);
  }
  function drawOnce(chart) {
    if (!under.has(chart)) {
      under.set(chart, draw(chart).catch((error) => {
        chart.textContent = "This figure could not be drawn; its text says what it shows.";
        console.error(error);
      }));
    }
    return under.get(chart);
  }
  function redraw(which = () => true) {
    for (const chart of [...drawn.keys()].filter(which)) {
      under.delete(chart);
      drawOnce(chart);
    }
  }

  // Heights of what stands between the chart's left and right edge, in pixels; of lines only where there is nothing else.
  function heights(view) {
    const found = { other: [], line: [] };
    const walk = (part) => {
      if (!part.items) return;
      for (const item of part.items) {
        if (part.marktype === "group") { walk(item); continue; }
        if (part.marktype && part.role === "mark" && item.datum && item.x >= 0 && item.x <= view.width()) {
          const which = part.marktype === "line" ? found.line : found.other;
          for (const y of [item.y, item.y2]) if (Number.isFinite(y)) which.push(y);
        } else if (!part.marktype) walk(item);
      }
    };
    walk(view.scenegraph().root);
    return found.other.length ? found.other : found.line;
  }

  // The time from low to high, and vertically what there is of it. Vega-Lite takes both axes or none.
  async function zoom(view, [low, high]) {
    const fields = Object.fromEntries(view.signal("zoom_tuple_fields").map(({ channel, field }) => [channel, field]));
    const set = (domains) => {
      for (const [channel, field] of Object.entries(fields)) view.signal(`zoom_${field}`, domains[channel]);
      return view.runAsync();
    };
    const y = fields.y && view.scale("y").domain();
    await set({ x: [low, high], y });
    const there = fields.y ? heights(view).map((pixel) => view.scale("y").invert(pixel)) : [];
    const [least, most] = there.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
    if (least < most) await set({ x: [low, high], y: [least - 0.05 * (most - least), most + 0.05 * (most - least)] });
  }

  // Wheel without a key scrolls the page as everywhere; with Ctrl or Shift it zooms. The buttons do it by keyboard.
  const STEPS = [["Zoom in", 0.5, 0], ["Zoom out", 2, 0], ["Left", 1, -0.5], ["Right", 1, 0.5]];
  function controls(chart) {
    const place = chart.parentElement.querySelector(".controls");
    let zooms = false;
    try {
      zooms = drawn.get(chart).view.signal("zoom_tuple_fields").some(({ channel }) => channel === "x");
    } catch { /* a figure without this selection */ }
    const hint = document.createElement("span");
    chart.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && !event.metaKey) event.stopImmediatePropagation();
    }, { capture: true });
    if (zooms) {
      const name = chart.getAttribute("aria-label");
      const add = (text, act) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.setAttribute("aria-label", `${text}: ${name}`);
        button.addEventListener("click", act);
        place.append(button);
      };
      for (const [text, factor, shift] of STEPS) {
        add(text, async () => {
          const { view } = drawn.get(chart);
          const [low, high] = view.scale("x").domain().map(Number);
          const middle = (low + high) / 2 + shift * (high - low);
          const half = (factor * (high - low)) / 2;
          await zoom(view, [middle - half, middle + half]);
          const [from, to] = view.scale("x").domain();
          say(`Shown from ${from.toPrecision(4)} to ${to.toPrecision(4)}`);
        });
      }
      add("Whole", () => { redraw((other) => other === chart); say("The whole is shown"); });
      hint.textContent = "Drag to move, Ctrl and wheel to zoom, hover for details, click a mark to copy its Wireshark filter.";
    } else {
      hint.textContent = "Hover for details.";
    }
    place.append(hint);
    place.hidden = false;
  }

  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      drawOnce(target);
    }
  }, { rootMargin: "300px" });
  const flows = all("details.flow");
  const look = (flow) => { if (flow.open) all(".chart:empty", flow).forEach((chart) => sight.observe(chart)); };
  for (const flow of flows) {
    flow.addEventListener("toggle", () => look(flow));
    look(flow);
  }
  all("#corpus .chart").forEach((chart) => sight.observe(chart));
  // what is open and out of sight is drawn when there is nothing else to do: the browser's own print does not wait
  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 300));
  const ahead = () => idle(async () => {
    const chart = all("details.flow[open] .chart:empty, #corpus .chart:empty").find((each) => !under.has(each));
    if (chart) { await drawOnce(chart); ahead(); }
  });
  ahead();

  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => redraw((chart) => chart.clientWidth && chart.clientWidth !== drawn.get(chart).width), 250);
  });

  // --- flows that a link leads to are opened ---
  function follow() {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details")) {
      target.open = true;
      target.querySelector("summary").focus({ preventScroll: true });
      target.scrollIntoView();
    }
  }
  addEventListener("hashchange", follow);
  for (const link of all('a[href^="#flow-"]')) link.addEventListener("click", () => setTimeout(follow));
  follow();
  for (const button of all("[data-all]")) {
    button.hidden = false;
    button.addEventListener("click", () => { for (const flow of flows) flow.open = button.dataset.all === "open"; });
  }

  // --- print: what is open, drawn whole ---
  byId("print").addEventListener("click", async () => {
    await Promise.all(all("details.flow[open] .chart, #corpus .chart").map(drawOnce));
    print();
  });
  byId("theme").hidden = byId("print").hidden = false;
})();
