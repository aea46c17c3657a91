// Serves node-oidc-provider, which keeps everything in memory, for the comparison of `make bench-peers`:
// with ES256, rotated refresh tokens, and a login that asks nothing. It prints "ready" and runs until it
// is killed.
import { generateKeyPairSync } from 'node:crypto'
import Provider from 'oidc-provider'

// Keeps everything in one map. The provider's own adapter would drop all but the latest thousand entries, the
// session of the benchmark among them.
const entries = new Map()
class Adapter {
  constructor(kind) { this.kind = kind }
  key(id) { return `${this.kind}:${id}` }
  async upsert(id, payload) {
    entries.set(this.key(id), payload)
    if (payload.uid) entries.set(this.key(`uid:${payload.uid}`), payload)
  }
  async find(id) { return entries.get(this.key(id)) }
  async findByUid(uid) { return entries.get(this.key(`uid:${uid}`)) }
  async consume(id) { entries.get(this.key(id)).consumed = Math.floor(Date.now() / 1000) }
  async destroy(id) { entries.delete(this.key(id)) }
  async revokeByGrantId() {}
}

const [hostname, port] = process.argv[2].split(':')
const redirect_uris = ['http://localhost/callback']
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
const es256 = { id_token_signed_response_alg: 'ES256' }
const service = { client_secret: 'verysecret', grant_types: ['client_credentials'], redirect_uris: [],
  response_types: [], ...es256 }

const provider = new Provider(`http://${hostname}:${port}`, {
  adapter: Adapter,
  jwks: { keys: [{ ...key, use: 'sig', alg: 'ES256', kid: 'bench' }] },
  cookies: { keys: ['bench'] },
  clients: [
    { client_id: 'native', token_endpoint_auth_method: 'none', redirect_uris,
      grant_types: ['authorization_code', 'refresh_token'], ...es256 },
    { client_id: 'web', client_secret: 'secret', redirect_uris, ...es256 },
    { client_id: 'sid1', ...service },
    { client_id: 'sid1-jwt', ...service },
  ],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_, client) => (client.clientId === 'sid1-jwt' ? 'urn:bench' : undefined),
      getResourceServerInfo: () => ({ scope: '', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
})

// The pages of login and consent: they answer themselves.
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next()
  const { prompt, params, session } = await provider.interactionDetails(ctx.req, ctx.res)
  if (prompt.name === 'login') {
    return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: 'bench' } })
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addOIDCScope('openid offline_access')
  await provider.interactionFinished(ctx.req, ctx.res, { consent: { grantId: await grant.save() } })
})
provider.on('server_error', (_, err) => console.error(err))
provider.listen(Number(port), hostname, () => process.stdout.write('ready\n'))
