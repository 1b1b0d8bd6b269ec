// Models inside a report: ONNX files, run in the page by onnxruntime-web, which the report brings along.

// Load the runtime and a model once; `models` are the names in the order of the parts.
export function createModels(pack, names) {
  const sessions = new Map();

  async function opened(name) {
    const ort = /** @type {any} */ (globalThis).ort;
    const [binary, model] = await Promise.all(
      ["runtime", `model/${names.indexOf(name)}`].map(async (part) => (await pack.take(part)).arrays.content.data),
    );
    ort.env.wasm.numThreads = 1; // a page from a file has no threads that share memory
    ort.env.wasm.wasmBinary ??= binary.slice().buffer;
    return ort.InferenceSession.create(model.slice(), { executionProviders: ["wasm"] });
  }

  return {
    has: (name) => names.includes(name),
    /** The first output of a model for one input, numbers [C]. */
    async run(name, { data, shape }) {
      if (!sessions.has(name)) sessions.set(name, opened(name));
      const session = await sessions.get(name);
      const { Tensor } = /** @type {any} */ (globalThis).ort;
      const given = new Tensor("float32", Float32Array.from(data), [1, ...shape]);
      const found = await session.run({ [session.inputNames[0]]: given });
      return Float32Array.from(found[session.outputNames[0]].data);
    },
  };
}

// Class probabilities of what a model gives.
export function probabilitiesOf(outputs, kind) {
  if (kind !== "logits") return outputs;
  const most = outputs.reduce((a, b) => Math.max(a, b));
  const powers = outputs.map((value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((value) => value / sum);
}

// What a scan of classes says of one answer.
export function classified(probabilities, truth, consensus) {
  const predicted = probabilities.indexOf(probabilities.reduce((a, b) => Math.max(a, b)));
  const known = truth !== null;
  return {
    predicted,
    confidence: probabilities[predicted],
    score: known ? probabilities[truth] : NaN,
    correct: known ? Number(predicted === truth) : NaN,
    score_vs_consensus: consensus === null ? NaN : probabilities[consensus],
  };
}
