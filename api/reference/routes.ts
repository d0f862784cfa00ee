import { createReadStream } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import swaggerFolder from 'swagger-ui-dist/absolute-path.js';
import { Type } from 'typebox';
import { etagOfText } from '../http/etag.ts';
import { once } from '../../platform/once.ts';
import { pageResponse, streamResponse, type HttpResponse } from '../http/response.ts';
import { sharedContentOf } from '../http/sharedContent.ts';
import { buildOpenApi } from '../http/openapi.ts';
import { route, type Route } from '../http/route.ts';
import { DOCUMENT, STATIC } from '../http/strangerLimits.ts';

const ASSETS = swaggerFolder();

const swaggerPage = `<!doctype html>
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

const swaggerScript = `SwaggerUIBundle({ url: '/api/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null });\n`;

const ASSET_FILES = {
  'swagger-ui.css': () =>
    streamResponse('text/css', createReadStream(path.join(ASSETS, 'swagger-ui.css'))),
  'swagger-ui-bundle.js': () =>
    streamResponse('text/javascript', createReadStream(path.join(ASSETS, 'swagger-ui-bundle.js'))),
  'start.js': () => streamResponse('text/javascript', Readable.from([swaggerScript])),
} as const;

const FileName = Type.Enum(Object.keys(ASSET_FILES) as (keyof typeof ASSET_FILES)[]);

/** The API reference: an OpenAPI document and a page that shows it. */
export function referenceRoutes(routes: readonly Route[], version: string): Route[] {
  const documentedRoutes: Route[] = [
    ...routes,
    route({
      method: 'GET',
      path: '/api/openapi.json',
      tag: 'Reference',
      public: 'the API description has no secrets',
      strangers: DOCUMENT,
      operationId: 'getOpenApiDocument',
      summary: 'Get the OpenAPI 3.1 document of this API',
      headers: ['If-None-Match'],
      responses: { 200: Type.Object({ openapi: Type.String() }, { title: 'OpenApiDocument' }) },
      handle: () => documentResponse(),
    }),
  ];
  // Made when it is first asked for: most processes never are.
  const documentResponse = once(async (): Promise<HttpResponse> => {
    const json = JSON.stringify(buildOpenApi(documentedRoutes, version));
    return {
      status: 200,
      headers: { etag: etagOfText(json) },
      document: await sharedContentOf(json),
    };
  });
  return [
    ...documentedRoutes.slice(routes.length),
    route({
      method: 'GET',
      path: '/api/docs',
      tag: 'Reference',
      public: 'the API description has no secrets',
      strangers: STATIC,
      operationId: 'showApiReference',
      summary: 'Get the API reference',
      responses: { 200: null },
      produces: ['text/html'],
      handle: () => Promise.resolve(pageResponse(swaggerPage)),
    }),
    route({
      method: 'GET',
      path: '/api/docs/assets/{file}',
      tag: 'Reference',
      public: 'the API description has no secrets',
      strangers: STATIC,
      operationId: 'getApiReferenceAsset',
      summary: 'Get a script or style sheet of the API reference',
      params: Type.Object({ file: FileName }, { additionalProperties: false }),
      responses: { 200: null },
      produces: ['text/css', 'text/javascript'],
      handle: ({ params }) => Promise.resolve(ASSET_FILES[params.file]()),
    }),
  ];
}
