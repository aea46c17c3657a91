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

/** Counts this page's requests to the token endpoint. */
let asked = 0
const fetched = window.fetch
window.fetch = (url, init) => ((asked += String(url).endsWith('/oauth/token')), fetched(url, init))

document.querySelector('#popup').onclick = () => {
  window.login = outcome(app.login({ popup: true }))
}
const opened = window.open
window.open = (...args) => (window.popup = opened.apply(window, args))

Object.assign(window, { app, outcome, events, settings, tokenRequests: () => asked, finished: await outcome(app.handleRedirect()) })
