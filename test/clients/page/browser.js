// An app with our SDK. The query of the first page contains the app's options. They are stored for the
// pages to which logins return.
if (location.search && !location.search.includes('state=')) sessionStorage.setItem('setup', location.search)
const setup = new URLSearchParams(sessionStorage.getItem('setup') ?? '')
if (setup.has('nolocks')) Object.defineProperty(navigator, 'locks', { value: undefined })

const settings = await (await fetch('/settings.json')).json()
const here = `${location.origin}/browser.html`
const app = Selvage.createClient({
  issuer: settings.issuer,
  clientId: settings.client_id,
  redirectUri: here,
  postLogoutRedirectUri: here,
  storage: setup.get('storage') ?? 'memory',
  projectId: settings.project_id,
})

const events = []
for (const name of ['signedin', 'signedout', 'tokenrefreshed']) app.on(name, () => events.push(name))
app.on('error', (err) => events.push(err.code))

/** Returns the outcome of a promise: its value, or the code and hint of its error. */
const outcome = (promise) => promise.then((value) => ({ value }), (err) => ({ code: err.code, hint: err.hint, status: err.status, name: err.name, message: err.message }))

/** Counts this page's requests to the token endpoint. After hold(), they wait for release(). */
let asked = 0
let released = Promise.resolve()
const hold = () => void (released = new Promise((resolve) => (window.release = resolve)))
const fetched = window.fetch
window.fetch = async (url, init) => {
  if (String(url).endsWith('/oauth/token')) {
    asked++
    await released
  }
  return fetched(url, init)
}

document.querySelector('#popup').onclick = () => {
  window.login = outcome(app.login({ popup: true }))
}
const opened = window.open
window.open = (...args) => (window.popup = opened.apply(window, args))

Object.assign(window, { app, outcome, events, settings, hold, tokenRequests: () => asked, finished: await outcome(app.handleRedirect()) })
