// Streams an answer under a schema and a call of a tool; prints what came as JSON.
import OpenAI from "openai";

const [address, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey });
const messages = [{ role: "user", content: "Tell me something about France, in JSON." }];

const schema = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, population: { type: "integer" } },
  required: ["name", "population"],
  additionalProperties: false,
};
const answer = client.chat.completions.stream({
  model,
  messages,
  seed: 1,
  response_format: { type: "json_schema", json_schema: { name: "country", schema, strict: true } },
});
let pieces = 0;
answer.on("content", () => (pieces += 1));
const content = await answer.finalContent();

const call = client.chat.completions.stream({
  model,
  messages,
  seed: 1,
  tools: [
    {
      type: "function",
      function: {
        name: "add",
        parameters: {
          type: "object",
          properties: { a: { type: "integer", maximum: 99, minimum: 0 }, b: { type: "integer", maximum: 99, minimum: 0 } },
          required: ["a", "b"],
        },
      },
    },
  ],
  tool_choice: "required",
  parallel_tool_calls: false,
});
const { arguments: given } = await call.finalFunctionToolCall();
console.log(JSON.stringify({ content, pieces, arguments: given }));
