// Provides the settings that a test passes to each script, and functions to report to the test.
import readline from 'node:readline'
import * as client from 'openid-client'

export const settings = JSON.parse(process.env.SETTINGS)

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** Asks the test's browser to open a URL and to sign in, and returns the final URL. */
export async function visit(url) {
  process.stdout.write(`${url}\n`)
  return new URL((await lines.next()).value)
}

// The client's private key, if it has one, for an algorithm of RFC 7518.
const algorithms = {
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  EdDSA: { name: 'Ed25519' },
}
const jwk = settings.key && JSON.parse(settings.key)
export const signingKey = jwk && { key: await crypto.subtle.importKey('jwk', { ...jwk, alg: undefined }, algorithms[jwk.alg], false, ['sign']), kid: jwk.kid }

/**
 * Discovers the provider as the client in the settings, or as a client with a wrong secret and
 * audience.
 */
export async function discover({ stranger, ...options } = {}) {
  const secret = stranger ? 'wrong' : settings.client_secret
  // RFC 9864 renames EdDSA with Ed25519. The metadata uses the name in RFC 8037.
  const modified = (header, payload) => {
    header.alg = jwk.alg
    if (stranger) payload.aud = 'https://elsewhere.example/'
  }
  const authentication = {
    none: () => client.None(),
    client_secret_basic: () => client.ClientSecretBasic(secret),
    client_secret_post: () => client.ClientSecretPost(secret),
    private_key_jwt: () => client.PrivateKeyJwt(signingKey, { [client.modifyAssertion]: modified }),
  }[settings.method]()
  const metadata = { id_token_signed_response_alg: settings.alg ?? 'RS256' }
  const execute = [client.allowInsecureRequests, client.enableNonRepudiationChecks]
  return client.discovery(new URL(settings.issuer), settings.client_id, metadata, authentication, { execute, ...options })
}

/** Returns a predicate for assert.rejects, which accepts an OAuth error with the given code. */
export const oauthError = (code) => (err) => err.error === code || `want ${code}, got ${err.error}: ${err.message}`
