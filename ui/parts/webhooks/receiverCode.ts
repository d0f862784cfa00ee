/** A receiver that verifies what it gets, without a library. `docs/webhooks.md` has one with a library. */

const NODE = `import { createServer } from 'node:http';
import { createHmac, timingSafeEqual } from 'node:crypto';

const key = Buffer.from(process.env.WEBHOOK_SECRET.slice('whsec_'.length), 'base64');

function verify(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': sent = '' } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(time)) < 300)) return false;
  const expected = createHmac('sha256', key).update(\`\${id}.\${time}.\${body}\`).digest();
  return sent.split(' ').some((each) => {
    const [version, signature = ''] = each.split(',');
    const given = Buffer.from(signature, 'base64');
    return version === 'v1' && given.length === 32 && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const isGenuine = verify(request.headers, body);
  if (isGenuine) console.log(request.headers['webhook-id'], JSON.parse(body).type);
  response.writeHead(isGenuine ? 204 : 400).end();
}).listen(Number(process.env.PORT ?? 9000));
`;

const PYTHON = `import base64, hashlib, hmac, http.server, json, os, time

key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))

def verify(headers, body):
    sent_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) >= 300:
        return False
    content = f"{sent_id}.{sent_at}.".encode() + body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    sent = [each.partition(",") for each in headers.get("webhook-signature", "").split(" ")]
    return any(v == "v1" and hmac.compare_digest(s.encode(), expected) for v, _, s in sent)

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        is_genuine = verify(self.headers, body)
        if is_genuine:
            print(self.headers["webhook-id"], json.loads(body)["type"], flush=True)
        self.send_response(204 if is_genuine else 400)
        self.end_headers()

address = ("127.0.0.1", int(os.environ.get("PORT", 9000)))
http.server.ThreadingHTTPServer(address, Receiver).serve_forever()
`;

export const RECEIVERS = [
  { language: 'Node', file: 'receiver.mjs', code: NODE, run: 'node receiver.mjs' },
  { language: 'Python', file: 'receiver.py', code: PYTHON, run: 'python3 receiver.py' },
] as const;
