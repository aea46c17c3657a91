// A browser app as in the vendor's documentation: oidc-client-ts with explicit metadata, without a
// scope and without discovery. outcome holds the result of a callback.
const settings = await (await fetch('/settings.json')).json()

const manager = new oidc.UserManager({
  authority: 'x',
  metadata: {
    issuer: settings.issuer,
    authorization_endpoint: `${settings.issuer}login/oauth/authorize`,
    token_endpoint: `${settings.issuer}oauth/token`,
    check_session_iframe: `${settings.issuer}oauth/check-session`,
  },
  client_id: settings.client_id,
  redirect_uri: `${location.origin}/`,
  response_type: 'code',
  monitorSession: settings.monitor,
  checkSessionIntervalInSeconds: 1,
  silentRequestTimeoutInSeconds: 60,
  userStore: new oidc.WebStorageStateStore({ store: localStorage }),
  ...(settings.dpop && { dpop: { bind_authorization_code: true, store: new oidc.IndexedDbDPoPStore() } }),
})

/**
 * Collects the messages from the provider's frame about the login, and whether the app was notified of
 * a logout.
 */
const session = { said: [], signedOut: false }
addEventListener('message', ({ data }) => session.said.push(data))
manager.events.addUserSignedOut(() => (session.signedOut = true))

/** Calls the fabric as the signed-in subscriber. */
async function subscriberInfo() {
  const url = `${settings.issuer}subscriber/info`
  const user = await manager.getUser()
  const headers = { authorization: `Bearer ${user.access_token}` }
  if (settings.dpop) Object.assign(headers, { authorization: `DPoP ${user.access_token}`, dpop: await manager.dpopProof(url, user, 'GET') })
  const answer = await fetch(url, { headers })
  return { status: answer.status, body: await answer.json() }
}

/** Renews tokens in a hidden frame, with only the login and no refresh token. */
async function renewInFrame() {
  const user = await manager.getUser()
  delete user.refresh_token
  await manager.storeUser(user)
  return manager.signinSilent()
}

/** Opens the provider's logout page. */
async function signOut() {
  const { id_token } = await manager.getUser()
  await manager.removeUser()
  const query = new URLSearchParams({ id_token_hint: id_token, post_logout_redirect_uri: `${location.origin}/`, state: 'bye' })
  location = `${settings.issuer}oauth/logout?${query}`
}

/** Signs in by a pushed request (RFC 9126), which is bound to the app's key. */
async function signinPushed() {
  const dpopJkt = await manager.generateDPoPJkt(manager.settings.dpop)
  const { url } = await new oidc.OidcClient(manager.settings).createSigninRequest({ request_type: 'si:r', dpopJkt })
  const answer = await fetch(`${settings.issuer}oauth/par`, { method: 'POST', body: new URL(url).searchParams })
  const { request_uri } = await answer.json()
  const query = new URLSearchParams({ client_id: settings.client_id, request_uri })
  location = `${settings.issuer}login/oauth/authorize?${query}`
}

async function finish() {
  const query = new URLSearchParams(location.search)
  if (!query.has('code') && !query.has('error')) return { user: await manager.getUser(), state: query.get('state') }
  try {
    await manager.signinCallback()
  } catch (err) {
    return { error: err.error ?? String(err) }
  } finally {
    history.replaceState(null, '', '/')
  }
  return { user: await manager.getUser() }
}

Object.assign(window, { manager, session, subscriberInfo, renewInFrame, signinPushed, signOut, outcome: await finish() })
