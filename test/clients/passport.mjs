// Uses passport-openidconnect like an Express app: without discovery or challenge, with the secret
// in the form, and with state and nonce in the app's session.
import assert from 'node:assert/strict'
import Strategy from 'passport-openidconnect'
import { settings, visit } from './settings.mjs'

const strategy = new Strategy({
  issuer: settings.issuer,
  authorizationURL: `${settings.issuer}login/oauth/authorize`,
  tokenURL: `${settings.issuer}oauth/token`,
  userInfoURL: `${settings.issuer}oauth/userinfo`,
  clientID: settings.client_id,
  clientSecret: settings.client_secret,
  callbackURL: settings.redirect_uri,
  scope: 'profile email',
  nonce: true,
  maxAge: 600,
  skipUserProfile: false,
}, (issuer, profile, context, idToken, accessToken, refreshToken, done) => done(null, { issuer, profile, context }))

const session = {}

/** Runs the strategy for a request, as passport does. */
function authenticate(query) {
  return new Promise((resolve, reject) => {
    const run = Object.assign(Object.create(strategy), {
      redirect: (url) => resolve({ url }),
      success: (user) => resolve({ user }),
      fail: (why) => reject(new Error(`refused: ${JSON.stringify(why)}`)),
      error: reject,
    })
    run.authenticate({ query, session })
  })
}

const callback = await visit((await authenticate({})).url)
const { user } = await authenticate(Object.fromEntries(callback.searchParams))
assert.equal(user.issuer, settings.issuer)
assert.equal(user.profile.id, settings.sub)
assert.equal(user.profile.emails[0].value, settings.email)
assert.equal(user.profile.name.givenName, 'Ada')
await assert.rejects(authenticate(Object.fromEntries(callback.searchParams)), 'the state is used up')
await assert.rejects(authenticate({ error: 'server_error' }), { code: 'server_error' })
process.exit(0)
