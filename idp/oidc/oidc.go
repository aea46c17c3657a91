// Package oidc implements OpenID Connect and OAuth 2 over HTTP for the identity provider: it reads
// requests, shows pages, and responds with tokens and errors. The rules are in package idp.
//
// # What zitadel/oidc serves
//
// Three things use op.Server from zitadel/oidc: POST /oauth/device_authorization, POST
// /oauth/revoke, and the error for unsupported grants at POST /oauth/token. server.strict first
// reads the form of these requests, more strictly than the library does. The library also writes
// OAuth errors and defines the types of the discovery document. This package implements everything
// else itself: authorization, the pages, the supported grants, introspection, userinfo, discovery
// and logout. In these, the library deviates from the standards or is noticeably slower.
//
// # Authorization
//
// Authorization requests, device codes and visits to the account page all follow the same steps, in
// flow.proceed:
//
//	/login/oauth/authorize, /device, /account
//	      |
//	      v
//	prompt=create? ---- yes -----------------> /register, email, /welcome --+
//	      | no                                                              |
//	      v                                                                 |
//	login that answers? no, one can be chosen -> /accounts -----------------+
//	      |             no ------------------> /login, /login/factor -------+
//	      | yes                                                             |
//	      v    <------------------------------------------------------------+
//	second factor? ---- needed, set up ------> /login/factor --> back here
//	      |             needed, missing -----> /login/enrol ---> back here
//	      | enough
//	      v
//	consent? ---------- missing -------------> /consent -- denied --> access_denied
//	      |                                       | allowed
//	      v                                       v
//	code or ID token to the redirect URI, device signed in, or /account
//
// Before a page is shown, flow.suspend stores the request for this browser. After the page,
// flow.afterLogin takes the remaining steps, and flow.drop ensures that the request is answered
// only once. With prompt=none no page is shown, and the client gets account_selection_required,
// login_required or consent_required instead. A login without an acr that the request requires needs a
// second factor or another login.
package oidc

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/rp"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
)

// Config holds the dependencies and settings of an API.
type Config struct {
	Provider *idp.Provider
	Proofs   *dpop.Verifier
	Sessions session.Store   // stores browser sessions
	Browsers web.BrowserRows // stores what must not be lost if Sessions is emptied
	Mailbox  bool            // whether emails are kept at /dev/mail instead of being sent; pages mention it
	HTTP     *http.Client    // sends requests to upstream providers; nil means that no requests are sent
	Log      *slog.Logger    // nil means slog.Default()

	// AuthURL is {auth_url}, the URL that browsers use. MTLSURL is the URL for connections with a
	// certificate, or "" if it equals AuthURL. Both are without the final slash.
	AuthURL string
	MTLSURL string
	// Certificates reports whether requests may contain a certificate of the client.
	Certificates bool
}

// An API serves the protocol. Each field serves a group of endpoints.
type API struct {
	pages        *pages
	flow         *flow
	signIn       *signIn
	factors      *factorPages
	consents     *consentPages
	devices      *devicePages
	links        *linkPages
	registration *registrationPages
	account      *account
	logout       *logout
	server       *server
	userinfo     *userinfo
	discovery    *discovery
	registrar    *registrar
}

// core holds what all parts of an API share.
type core struct {
	*idp.Provider
	log     *slog.Logger
	authURL string
	proofs  *dpop.Verifier
	rp      *rp.Client

	certificates bool   // see Config
	mtlsURL      string // see Config
}

// New returns an API with configuration c.
func New(c Config) (*API, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	authURL, err := url.Parse(c.AuthURL)
	if err != nil {
		return nil, err
	}

	shared := &core{
		Provider:     c.Provider,
		proofs:       c.Proofs,
		log:          c.Log,
		authURL:      strings.TrimSuffix(c.AuthURL, "/"),
		certificates: c.Certificates,
		mtlsURL:      c.MTLSURL,
	}
	shared.rp = rp.New(rp.Config{
		HTTP:     c.HTTP,
		Provider: c.Provider,
		AuthURL:  shared.authURL,
		Logout:   shared.authURL + upstreamLogoutPath,
	})
	d, err := newDiscovery(shared)
	if err != nil {
		return nil, err
	}

	pg := newPages(shared, c, authURL)
	logins := &browserLogins{pages: pg}
	f := &flow{pages: pg, logins: logins}
	links := newLinkPages(pg, logins, c.Sessions)
	lo := &logout{pages: pg, logins: logins}
	return &API{
		pages:        pg,
		flow:         f,
		signIn:       &signIn{pages: pg, flow: f, logins: logins},
		factors:      &factorPages{pages: pg, flow: f, logins: logins},
		consents:     &consentPages{pages: pg, flow: f, logins: logins},
		devices:      &devicePages{pages: pg, flow: f},
		links:        links,
		registration: &registrationPages{pages: pg, flow: f, logins: logins, links: links},
		account:      newAccount(pg, f, logins, lo, c.Sessions),
		logout:       lo,
		server:       &server{core: shared},
		userinfo:     &userinfo{core: shared},
		discovery:    d,
		registrar:    &registrar{core: shared},
	}, nil
}

// Handler serves:
//
//	GET       /.well-known/oauth-authorization-server
//	GET       /.well-known/openid-configuration
//	GET       /account
//	POST      /account/apps/revoke
//	POST      /account/app
//	POST      /account/app/confirm
//	POST      /account/codes
//	POST      /account/data
//	POST      /account/display
//	POST      /account/email
//	POST      /account/email/verify
//	POST      /account/factors/remove
//	POST      /account/passkeys
//	POST      /account/passkeys/rename
//	POST      /account/password
//	POST      /account/profile
//	POST      /account/sessions/end
//	POST      /account/sessions/end-all
//	POST      /account/sign-in
//	GET, POST /accounts
//	GET, POST /change-address
//	GET       /brand/{file}
//	GET       /brand/logo/{file}
//	GET, POST /consent
//	GET, POST /device
//	GET, POST /forgot
//	GET, POST /invite
//	GET       /invite/accepted
//	POST      /language
//	GET, POST /login
//	POST      /login/continue
//	GET, POST /login/enrol
//	POST      /login/enrol/passkey
//	GET, POST /login/factor
//	GET, POST /login/link
//	GET, POST /login/oauth/authorize
//	POST      /login/passkey
//	POST      /login/upstream
//	GET       /login/upstream/callback/{issuer...}
//	GET, POST /logout
//	GET       /logout/upstream
//	GET       /oauth/check-session
//	POST      /oauth/device_authorization
//	POST      /oauth/introspect
//	GET       /oauth/jwks
//	GET, POST /oauth/logout
//	POST      /oauth/par
//	POST      /oauth/register
//	GET, PUT  /oauth/register/{client_id}
//	DELETE    /oauth/register/{client_id}
//	POST      /oauth/revoke
//	POST      /oauth/token
//	GET, POST /oauth/userinfo
//	GET, POST /register
//	GET, POST /reset
//	GET, POST /verify
//	GET, POST /welcome
func (a *API) Handler() http.Handler { return web.Mount(a.mount) }

// Routes returns the patterns that Handler serves.
func (a *API) Routes() []string { return web.Routes(a.mount) }

// mount registers all patterns. The functions in it differ in who may send the requests. page accepts
// forms from any site. own and click accept them only from pages of this server. anyOrigin serves scripts
// of any site. click is for forms that a double click must not send twice.
func (a *API) mount(mux web.Mux) {
	pg, s, d := a.pages, a.server, a.discovery
	library := op.RegisterServer(s, op.Endpoints{
		Token:               op.NewEndpoint(tokenPath),
		Revocation:          op.NewEndpoint(revokePath),
		DeviceAuthorization: op.NewEndpoint(devicePath),
	}, op.WithServerCORSOptions(nil))

	page := func(pattern string, h web.Handler) {
		mux.Handle(pattern, withPresentation(web.Handle(h, pg.writePage)))
	}
	own := func(pattern string, h web.Handler) {
		mux.Handle(pattern, withPresentation(pg.sameOrigin(web.Handle(h, pg.writePage))))
	}
	click := func(pattern string, h web.Handler) { own(pattern, pg.clickedOnce(h)) }
	anyOrigin := func(path string, h http.Handler, methods ...string) {
		mux.Handle(path, web.AnyOrigin(h, methods...))
	}

	anyOrigin("/.well-known/oauth-authorization-server", d.document(d.serveMetadata), http.MethodGet)
	anyOrigin("/.well-known/openid-configuration", d.document(d.serveMetadata), http.MethodGet)

	own("GET /account", a.account.showAccount)
	own("POST /account/apps/revoke", a.account.form(a.account.revokeApp))
	own("POST /account/app", a.account.sensitive(a.account.beginApp))
	own("POST /account/app/confirm", a.account.sensitive(a.account.once(a.account.confirmApp)))
	own("POST /account/codes", a.account.sensitive(a.account.newCodes))
	own("POST /account/data", a.account.sensitive(a.account.downloadData))
	own("POST /account/display", a.account.form(a.account.changeDisplay))
	own("POST /account/email", a.account.sensitive(a.account.once(a.account.changeAddress)))
	own("POST /account/email/verify", a.account.form(a.account.verifyAddress))
	own("POST /account/factors/remove", a.account.sensitive(a.account.removeFactor))
	own("POST /account/passkeys", a.account.sensitive(a.account.once(a.account.addPasskey)))
	own("POST /account/passkeys/rename", a.account.form(a.account.renamePasskey))
	own("POST /account/password", a.account.sensitive(a.account.once(a.account.changePassword)))
	own("POST /account/profile", a.account.form(a.account.changeProfile))
	click("POST /account/sessions/end", a.account.form(a.account.endLogin))
	click("POST /account/sessions/end-all", a.account.form(a.account.endAllLogins))
	own("POST /account/sign-in", a.account.form(a.account.signInAgain))
	own("GET /accounts", a.signIn.showAccounts)
	click("POST /accounts", a.signIn.chooseAccount)
	own("GET /change-address", a.links.showChange)
	click("POST /change-address", a.links.change)

	mux.Handle("GET /brand/{file}", web.Handle(pg.showColor, writeNoColor))
	mux.Handle("GET /brand/logo/{file}", web.Handle(pg.showLogo, writeNoColor))
	own("GET /consent", a.consents.showConsent)
	click("POST /consent", a.consents.answerConsent)
	own("GET /device", a.devices.showDevice)
	own("POST /device", a.devices.enterUserCode)
	own("GET /forgot", a.links.showForgot)
	own("POST /forgot", a.links.askReset)
	own("GET /invite", a.links.showInvitation)
	click("POST /invite", a.links.acceptInvitation)
	own("GET /invite/accepted", a.links.showAccepted)
	own("POST /language", pg.changeLanguage)

	own("GET /login", a.signIn.showLogin)
	click("POST /login", a.signIn.logIn)
	click("POST /login/continue", a.factors.continueLogin)
	own("GET /login/enrol", a.factors.showEnrol)
	click("POST /login/enrol", a.factors.enrolApp)
	click("POST /login/enrol/passkey", a.factors.enrolPasskey)
	own("GET /login/factor", a.factors.showFactor)
	click("POST /login/factor", a.factors.proveFactor)
	own("GET /login/link", a.signIn.showLink)
	click("POST /login/link", a.signIn.answerLink)
	click("POST /login/passkey", a.signIn.logInByPasskey)
	own("POST "+upstreamPath, a.signIn.beginUpstream)
	page("GET "+idp.CallbackPath+"{issuer...}", a.signIn.finishUpstream)
	page("GET "+upstreamLogoutPath, a.logout.finishUpstream)
	page("GET /login/oauth/authorize", a.flow.authorize)
	page("POST /login/oauth/authorize", a.flow.authorizeByPost)
	own("GET /logout", a.logout.showLogout)
	click("POST /logout", a.logout.logOut)

	anyOrigin(devicePath, s.strict(byLibrary(library)), http.MethodPost)
	anyOrigin(introspectPath, s.strict(s.introspect), http.MethodPost)
	anyOrigin("/oauth/jwks", d.document(d.serveJWKS), http.MethodGet)
	page("GET "+sessionPath, pg.showCheckSession)
	page("GET /oauth/logout", a.logout.endSession)
	page("POST /oauth/logout", a.logout.endSessionByPost)
	anyOrigin(parPath, s.strict(s.push), http.MethodPost)
	rg := a.registrar
	anyOrigin(registerPath, web.Handle(rg.register, rg.writeError), http.MethodPost)
	anyOrigin(registerPath+"/{client_id}", web.Handle(rg.manage, rg.writeError),
		http.MethodGet, http.MethodPut, http.MethodDelete)
	anyOrigin(revokePath, s.strict(byLibrary(library)), http.MethodPost)
	anyOrigin(tokenPath, s.strict(s.token(library)), http.MethodPost)

	own("GET /register", a.registration.showRegister)
	own("POST /register", a.registration.register)
	own("GET /reset", a.links.showReset)
	click("POST /reset", a.links.reset)
	own("GET /verify", a.links.showVerify)
	click("POST /verify", a.links.verify)
	own("GET /welcome", a.registration.showWelcome)
	click("POST /welcome", a.registration.welcome)
	anyOrigin("/oauth/userinfo", web.Handle(a.userinfo.serve, a.userinfo.writeError), http.MethodGet, http.MethodPost)
}

// These are the paths of the endpoints whose requests server.strict reads.
const (
	devicePath     = "/oauth/device_authorization"
	tokenPath      = "/oauth/token"
	introspectPath = "/oauth/introspect"
	parPath        = "/oauth/par"
	revokePath     = "/oauth/revoke"
)
