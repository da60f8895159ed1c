// graphile-worker, whose handlers note when they were called: `install`, or `work JSON`, where JSON is options of `run`.
import { createInterface } from "node:readline";
import { Logger, run, runMigrations } from "graphile-worker";

const MARKS = 20;
const connectionString = process.env.HYBRID_RUNNER_DSN;
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});
const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

class Stopwatch {
  at = [];
  latencies = [];
  expected = Infinity;
  reached = () => {};

  note(sent) {
    const now = process.hrtime.bigint();
    this.at.push(now);
    if (sent !== undefined) this.latencies.push(Number(now - BigInt(sent)) / 1000);
    if (this.at.length === this.expected) this.reached();
  }

  async expect(count, seconds) {
    if (this.at.length < count) {
      await new Promise((resolve) => {
        this.expected = count;
        this.reached = resolve;
        setTimeout(resolve, seconds * 1000).unref();
      });
    }
    const last = this.at.length - 1;
    const marks = last < 0 ? [] : Array.from({ length: MARKS + 1 }, (_, part) => Number(this.at[Math.floor((last * part) / MARKS)]));
    return { handled: last + 1, marks, latencies: this.latencies };
  }

  clear() {
    this.at = [];
    this.latencies = [];
  }
}

async function work(options) {
  const watches = { noop: new Stopwatch(), stamp: new Stopwatch() };
  const runner = await run({
    connectionString,
    logger,
    noHandleSignals: true,
    taskList: {
      noop: async () => watches.noop.note(),
      stamp: async (payload) => watches.stamp.note(payload.sent),
    },
    ...options.legacy,
    preset: { worker: options.preset },
  });
  say({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, kind, count, seconds] = line.split(" ");
    if (name === "expect") say(await watches[kind].expect(Number(count), Number(seconds)));
    else Object.values(watches).forEach((watch) => watch.clear());
  }
  await runner.stop();
}

if (process.argv[2] === "install") {
  await runMigrations({ connectionString, logger });
  say({ installed: true });
} else {
  await work(JSON.parse(process.argv[3]));
}
process.exit(0);
