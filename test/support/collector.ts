import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import protobuf from 'protobufjs';
import { freePort } from '../../dev/freePort.ts';
import { eventually } from './eventually.ts';

/** A span as tests see it. Ids are hexadecimal digits. */
export type ReceivedSpan = {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  attributes: Record<string, string | number | boolean>;
  service: string;
};

/** The part of opentelemetry/proto/trace/v1/trace.proto that tests read. */
const PROTO = `
  syntax = "proto3";
  message Value { oneof value { string stringValue = 1; bool boolValue = 2; int64 intValue = 3; double doubleValue = 4; } }
  message Attribute { string key = 1; Value value = 2; }
  message Resource { repeated Attribute attributes = 1; }
  message Span { bytes traceId = 1; bytes spanId = 2; bytes parentSpanId = 4; string name = 5; repeated Attribute attributes = 9; }
  message ScopeSpans { repeated Span spans = 2; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scopeSpans = 2; }
  message Request { repeated ResourceSpans resourceSpans = 1; }`;
const Request = protobuf.parse(PROTO).root.lookupType('Request');

type Attribute = { key: string; value: Record<string, string | number | boolean> };
type Spans = {
  resourceSpans?: {
    resource?: { attributes?: Attribute[] };
    scopeSpans?: { spans?: (Omit<ReceivedSpan, 'attributes'> & { attributes?: Attribute[] })[] }[];
  }[];
};

/** The JSON of OTLP has integers as texts. */
const valueOf = ({ intValue, ...value }: Attribute['value']) =>
  intValue === undefined ? (Object.values(value)[0] ?? '') : Number(intValue);

const attributesOf = (attributes: readonly Attribute[] = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

const hex = (bytes = '') => Buffer.from(bytes, 'base64').toString('hex');

/** Of protobuf, ids are bytes; of JSON, the collector has them as hexadecimal digits. */
function spansOf({ resourceSpans = [] }: Spans, idOf: (id?: string) => string): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, attributes }) => ({
        traceId: idOf(traceId),
        spanId: idOf(spanId),
        parentSpanId: idOf(parentSpanId),
        name,
        attributes: attributesOf(attributes),
        service: String(attributesOf(resource?.attributes)['service.name']),
      })),
    ),
  );
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A server that takes spans as OTLP over HTTP: protobuf of the product, JSON of a collector. */
async function startReceiver() {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const isJson = request.headers['content-type'] === 'application/json';
      const decoded = isJson
        ? (JSON.parse(body.toString()) as Spans)
        : (Request.toObject(Request.decode(body), { bytes: String, longs: Number }) as Spans);
      spans.push(...spansOf(decoded, isJson ? (id = '') => id : hex));
      response.setHeader('content-type', request.headers['content-type'] ?? '');
      response.end(isJson ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, spans, stop: () => new Promise((resolve) => server.close(resolve)) };
}

/** The collector of OpenTelemetry that .ci/ops-check builds. */
export const OTELCOL = path.join(
  process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'),
  'holdfast/otelcol-0.165.0',
);

/** Starts the collector itself, which sends what it receives to `target` as JSON. */
async function startOtelcol(target: string) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-otelcol-'));
  const port = await freePort(0);
  const url = `http://127.0.0.1:${port}`;
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlphttp: {
        endpoint: target,
        encoding: 'json',
        compression: 'none',
        tls: { insecure: true },
      },
    },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['otlphttp'] } },
    },
  };
  const file = path.join(folder, 'config.yaml');
  await writeFile(file, JSON.stringify(config));
  const child = spawn(OTELCOL, ['--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await eventually(
    () => output,
    (text) => text.includes('Everything is ready'),
  );
  return {
    url,
    async stop() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

/**
 * Receives spans: through the real collector where .ci/ops-check has built it, otherwise directly, decoding
 * the protobuf of the exporter.
 */
export async function startCollector() {
  const receiver = await startReceiver();
  const otelcol = existsSync(OTELCOL) ? await startOtelcol(receiver.url) : undefined;
  return {
    endpoint: otelcol?.url ?? receiver.url,
    spans: receiver.spans,
    async stop(): Promise<void> {
      await otelcol?.stop();
      await receiver.stop();
    },
  };
}
