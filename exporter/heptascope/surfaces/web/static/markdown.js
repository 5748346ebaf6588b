// The little Markdown that runbooks use, as elements: headings, paragraphs, lists, code, quotes, tables. HTML stays text.

import { h } from "./dom.js";

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (/^`.+`$/.test(part)) return h("code", null, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return h("b", null, part.slice(2, -2));
    const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
    return link ? link[1] : part;
  });
}

export function markdown(text) {
  // the facts that are generated into a runbook stand beside it already, and so does its title
  const told = text.replace(/\r/g, "").replace(/<!-- generated: facts -->[^]*?<!-- end: facts -->/, "").replace(/^<!--[^]*?-->$/gm, "").replace(/^# .*$/m, "");
  const out = [], lines = told.split("\n");
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    if (/^```/.test(line)) {
      const end = lines.findIndex((other, j) => j > i && /^```/.test(other)), stop = end < 0 ? lines.length : end;
      out.push(h("pre", { tabindex: "0" }, h("code", null, lines.slice(i + 1, stop).join("\n"))));
      i = stop + 1;
    } else if (/^#+ /.test(line)) {
      out.push(h("h5", null, inline(line.replace(/^#+ /, ""))));
      i += 1;
    } else if (/^\s*([-*]|\d+\.) /.test(line)) {
      const ordered = /^\s*\d/.test(line), items = [];
      while (i < lines.length && (/^\s*([-*]|\d+\.) /.test(lines[i]) || /^\s{2,}\S/.test(lines[i]))) {
        if (/^\s*([-*]|\d+\.) /.test(lines[i])) items.push(lines[i].replace(/^\s*([-*]|\d+\.) /, ""));
        else items[items.length - 1] += " " + lines[i].trim();
        i += 1;
      }
      out.push(h(ordered ? "ol" : "ul", null, items.map((item) => h("li", null, inline(item)))));
    } else if (/^> ?/.test(line)) {
      out.push(h("blockquote", null, inline(line.replace(/^> ?/, ""))));
      i += 1;
    } else if (/^\|/.test(line)) {
      const rows = [];
      while (i < lines.length && /^\|/.test(lines[i])) rows.push(lines[i++]);
      const cells = (row) => row.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim());
      out.push(h("div", { class: "scroll", tabindex: "0" }, h("table", null, rows.filter((row) => !/^\|[\s:|-]+$/.test(row)).map((row, n) =>
        h("tr", null, cells(row).map((cell) => h(n ? "td" : "th", null, inline(cell))))))));
    } else if (line.trim() === "") i += 1;
    else {
      const start = i;
      while (i < lines.length && lines[i].trim() !== "" && !/^(#+ |```|> |\||\s*([-*]|\d+\.) )/.test(lines[i])) i += 1;
      if (i === start) i += 1;
      out.push(h("p", null, inline(lines.slice(start, i).join(" "))));
    }
  }
  return out;
}
