/** What the site's modules need of a page: the data of a small made-up run, where the page keeps it. */

export const RUN = {
  name: "made up",
  headline: "NDCG@10",
  metrics: ["NDCG@10", "macro_F1"],
  levels: [0, 20],
  seeds: [7],
  budgets: [{ text: "5", words: "5 labels" }, { text: "all", words: "all labels" }],
  origins: [["real", ""], ["simulated", "†"], ["simulated by us", "‡"]],
  marks: [],
  datasets: [
    { name: "tanks", title: "Tanks (simulated)", origin: "simulated by us", marks: "‡" },
    { name: "hai", title: "HAI", origin: "real", marks: "§" },
  ],
  methods: [
    { text: "random", title: "Random", family: "trivial", budgets: ["all"] },
    { text: "dtw-i", title: "DTW-I", family: "distance", budgets: ["all"] },
    { text: "charm+nr", title: "CHARM+NR", family: "shape", budgets: ["5", "all"] },
  ],
  // [dataset][level][budget][method]
  values: {
    "NDCG@10": [
      [[[0.1, 0.5, 0.6], [0.1, 0.5, 0.8]], [[0.1, 0.4, 0.4], [0.1, 0.4, 0.6]]],
      [[[0.2, 0.7, 0.6], [0.2, 0.7, null]], [[0.2, 0.6, 0.5], [0.2, 0.6, 0.5]]],
    ],
    macro_F1: [
      [[[0, 1, 0], [0, 1, 0]], [[0, 1, 0], [0, 1, 0]]],
      [[[0, 1, 0], [0, 1, 0]], [[0, 1, 0], [0, 1, 0]]],
    ],
  },
  errors: {
    "NDCG@10": [
      [[[0.03, 0.03, 0.03], [0.03, 0.03, 0.03]], [[0.03, 0.03, 0.03], [0.03, 0.03, 0.03]]],
      [[[0.04, 0.04, 0.04], [0.04, 0.04, null]], [[0.04, 0.04, 0.04], [0.04, 0.04, 0.04]]],
    ],
  },
  // [stage][dataset][method]
  seconds: [[[1, 2, 3], [3, 4, null]], [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]],
  cases: [{ dataset: "tanks", seed: 7, id: "cases-0" }, { dataset: "hai", seed: 7, id: "cases-1" }],
  joint: true,
  figures: [],
  failures: [],
};

globalThis.document = {
  getElementById: (id) => {
    if (id !== "data") throw new Error(`no element ${id}`);
    return { textContent: JSON.stringify(RUN) };
  },
};
