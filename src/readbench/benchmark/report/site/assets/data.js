/** What the page holds: one table of results, read at once, and packs of bytes, read when they are needed. */

export const data = JSON.parse(document.getElementById("data").textContent);

const NOTHING = 0xffff;
const DEPTH = 10;
const opened = new Map();

/** The bytes of a pack. */
function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function once(id, open) {
  if (!opened.has(id)) opened.set(id, unpacked(id).then(open));
  return opened.get(id);
}

/** Covariances between the means of all methods, or null: float32 (dataset, level, budget, method, method). */
export const joint = () => (data.joint ? once("joint", (buffer) => new Float32Array(buffer)) : Promise.resolve(null));

/** The cases of a dataset and a split seed, or null where the run kept none. */
export function cases(dataset, seed) {
  const task = data.cases.find((own) => own.dataset === dataset && own.seed === seed);
  return task ? once(task.id, (buffer) => new Cases(buffer)) : Promise.resolve(null);
}

/** The position of a dataset or a method by its text; -1 where there is none. */
export const datasetAt = (name) => data.datasets.findIndex((own) => own.name === name);
export const methodAt = (text) => data.methods.findIndex((own) => own.text === text);

/** One task: queries, lists of windows, and the windows as they are drawn. `readbench.benchmark.report.site` packs it. */
export class Cases {
  constructor(buffer) {
    const size = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    this.queries = header.queries;
    this.windows = header.windows;
    this.columns = new Map(header.columns.map(([level, budget, method], i) => [`${level} ${budget} ${method}`, i]));
    const [cells, lists] = [header.columns.length * this.queries.length, 4 + size];
    this.values = new Float32Array(buffer.slice(lists, lists + 4 * cells));
    this.lists = new Uint16Array(buffer.slice(lists + 4 * cells, lists + (4 + 2 * DEPTH) * cells));
    this.codes = new Uint8Array(buffer, lists + (4 + 2 * DEPTH) * cells);
  }

  /** Number of the column of a method at a level under a budget of the page; undefined where it has none. */
  column(level, budget, method) {
    const own = data.methods[method].budgets;
    return this.columns.get(`${level} ${own[budget] ?? own[0]} ${method}`);
  }

  /** Headline metric of a query, by its number among the queries. */
  value(column, query) {
    return this.values[column * this.queries.length + query];
  }

  /** Windows of a list, best first. */
  list(column, query) {
    const start = (column * this.queries.length + query) * DEPTH;
    return Array.from(this.lists.subarray(start, start + DEPTH)).filter((window) => window !== NOTHING);
  }

  label(window) {
    return this.windows.labels[this.windows.label[window]];
  }

  channels(window) {
    return this.windows.channels[window].map((channel) => this.windows.channel_names[channel]);
  }

  /**
   * Points of one channel of a window with its least and greatest value, and which share of the window is faulty
   * (`partly`: neither none nor all of it); null where it is not drawn.
   */
  series(window, name) {
    const [place, points] = [this.channels(window).indexOf(name), this.windows.points[window]];
    if (place < 0 || !points) return null;
    const start = this.windows.at[window] + place * points;
    const [low, high] = [this.windows.low[window][place], this.windows.high[window][place]];
    const values = Float32Array.from(
      this.codes.subarray(start, start + points),
      (code) => low + (code / 255) * (high - low),
    );
    const [from, to] = this.windows.span[window].map((step) => step / this.windows.length[window]);
    const partly = to > from && (from > 0 || to < 1);
    return { values, low, high, from, to, partly, length: this.windows.length[window] };
  }
}
