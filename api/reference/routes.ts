import { createReadStream } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import swagger from 'swagger-ui-dist';
import { Type } from 'typebox';
import { ok, streamed } from '../kit/answer.ts';
import { openApi } from '../http/openapi.ts';
import { route, type Route } from '../kit/route.ts';

const ASSETS = swagger.getAbsoluteFSPath();

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Holdfast API</title>
<link rel="stylesheet" href="/api/docs/assets/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="/api/docs/assets/swagger-ui-bundle.js"></script>
<script src="/api/docs/assets/start.js"></script>
</body>
</html>
`;

const start = `SwaggerUIBundle({ url: '/api/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null });\n`;

const FILES = {
  'swagger-ui.css': () =>
    streamed('text/css', createReadStream(path.join(ASSETS, 'swagger-ui.css'))),
  'swagger-ui-bundle.js': () =>
    streamed('text/javascript', createReadStream(path.join(ASSETS, 'swagger-ui-bundle.js'))),
  'start.js': () => streamed('text/javascript', Readable.from([start])),
} as const;

const FileName = Type.Enum(Object.keys(FILES) as (keyof typeof FILES)[]);

/** The API's own description, for programs and for people. */
export function referenceRoutes(routes: readonly Route[], version: string): Route[] {
  const described: Route[] = [
    ...routes,
    route({
      method: 'GET',
      path: '/api/openapi.json',
      area: 'Reference',
      public: 'it describes what everybody may know',
      summary: 'This API as an OpenAPI 3.1 document',
      answers: { 200: Type.Object({ openapi: Type.String() }) },
      handle: () => Promise.resolve(ok(document)),
    }),
  ];
  const document = openApi(described, version);
  return [
    ...described.slice(routes.length),
    route({
      method: 'GET',
      path: '/api/docs',
      area: 'Reference',
      public: 'it shows the public description',
      summary: 'This API as a page',
      answers: { 200: null },
      handle: () => Promise.resolve(streamed('text/html', Readable.from([page]))),
    }),
    route({
      method: 'GET',
      path: '/api/docs/assets/{file}',
      area: 'Reference',
      public: 'parts of the page',
      summary: 'Parts of the page',
      params: Type.Object({ file: FileName }, { additionalProperties: false }),
      answers: { 200: null },
      handle: ({ params }) => Promise.resolve(FILES[params.file]()),
    }),
  ];
}
