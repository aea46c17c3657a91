// Package oidc speaks OpenID Connect and OAuth 2 over HTTP for the identity
// provider: it reads requests, shows pages, answers with tokens and errors. The
// rules are in package idp.
//
// The device authorization and revocation endpoints, and what refuses grants that
// there are not, stand on zitadel/oidc's Server, with a stricter reading of requests in
// front of it; what the library does not do the way the standards ask, or at a cost
// that is felt, is served here: authorize, login, consent, token, introspection,
// userinfo, logout.
package oidc

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
)

// Config says what an API serves.
type Config struct {
	Provider *idp.Provider
	Sessions session.Store // for browsers' sessions
	Mailbox  bool          // mails are not sent, but kept at /dev/mail, and pages say so
	AuthURL  string        // {auth_url}, without the slash: where browsers find us; endpoints of the discovery document begin with it
	Log      *slog.Logger  // nil means slog.Default()
}

// An API serves the protocol.
type API struct {
	*idp.Provider
	log      *slog.Logger
	authURL  string
	origin   string // of authURL
	browsers *web.Browsers
	cookies  web.Cookies
	mailbox  bool
	metadata [2]metadata // the second where people may register
}

// New makes an API.
func New(c Config) (*API, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	public, err := url.Parse(c.AuthURL)
	if err != nil {
		return nil, err
	}
	cookies := web.Cookies{PublicURL: public}
	a := &API{
		Provider: c.Provider, log: c.Log, authURL: strings.TrimSuffix(c.AuthURL, "/"), cookies: cookies,
		mailbox: c.Mailbox,
		browsers: &web.Browsers{
			Store: c.Sessions, Rows: c.Provider.Store, Cookies: cookies, Now: c.Provider.Now,
			Idle: func() time.Duration { return c.Provider.Lifetimes().BrowserIdle },
		},
	}
	a.origin = public.Scheme + "://" + public.Host
	for i := range a.metadata {
		if a.metadata[i], err = a.newMetadata(i == 1); err != nil {
			return nil, err
		}
	}
	return a, nil
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
//	POST      /language
//	GET, POST /login
//	POST      /login/continue
//	GET, POST /login/enrol
//	POST      /login/enrol/passkey
//	GET, POST /login/factor
//	GET, POST /login/oauth/authorize
//	POST      /login/passkey
//	POST      /logout
//	POST      /oauth/device_authorization
//	POST      /oauth/introspect
//	GET       /oauth/jwks
//	GET, POST /oauth/logout
//	POST      /oauth/revoke
//	POST      /oauth/token
//	GET, POST /oauth/userinfo
//	GET, POST /register
//	GET, POST /reset
//	GET, POST /verify
//	GET, POST /welcome
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	a.mount(mux)
	return mux
}

// Routes lists the patterns that are served.
func (a *API) Routes() []string {
	var all web.Patterns
	a.mount(&all)
	return all
}

func (a *API) mount(mux web.Mux) {
	s := &server{API: a}
	library := op.RegisterServer(s, op.Endpoints{
		Token: op.NewEndpoint(tokenPath), Revocation: op.NewEndpoint(revokePath),
		DeviceAuthorization: op.NewEndpoint(devicePath),
	}, op.WithServerCORSOptions(nil))
	page := func(pattern string, h web.Handler) { mux.Handle(pattern, mannered(web.Handle(h, a.writePage))) }
	own := func(pattern string, h web.Handler) {
		mux.Handle(pattern, mannered(a.sameOrigin(web.Handle(h, a.writePage))))
	}
	anyOrigin := func(path string, h http.Handler, methods ...string) {
		mux.Handle(path, web.AnyOrigin(h, methods...))
	}
	anyOrigin("/.well-known/oauth-authorization-server", a.document(a.serveMetadata), http.MethodGet)
	anyOrigin("/.well-known/openid-configuration", a.document(a.serveMetadata), http.MethodGet)
	own("GET /account", a.showAccount)
	own("POST /account/apps/revoke", a.onAccount(a.revokeApp))
	own("POST /account/app", a.sensitive(a.beginApp))
	own("POST /account/app/confirm", a.sensitive(a.confirmApp))
	own("POST /account/codes", a.sensitive(a.newCodes))
	own("POST /account/display", a.onAccount(a.changeDisplay))
	own("POST /account/email", a.sensitive(a.changeAddress))
	own("POST /account/email/verify", a.onAccount(a.verifyOwn))
	own("POST /account/factors/remove", a.sensitive(a.removeFactor))
	own("POST /account/passkeys", a.sensitive(a.addPasskey))
	own("POST /account/passkeys/rename", a.onAccount(a.renamePasskey))
	own("POST /account/password", a.sensitive(a.changePassword))
	own("POST /account/profile", a.onAccount(a.changeProfile))
	own("POST /account/sessions/end", a.onAccount(a.endOneSession))
	own("POST /account/sessions/end-all", a.onAccount(a.endAllSessions))
	own("POST /account/sign-in", a.onAccount(a.signInAgain))
	own("GET /accounts", a.showAccounts)
	own("POST /accounts", a.chooseAccount)
	own("GET /change-address", a.showChange)
	own("POST /change-address", a.change)
	mux.Handle("GET /brand/{file}", web.Handle(a.showColor, writeNoColor))
	mux.Handle("GET /brand/logo/{file}", web.Handle(a.showLogo, writeNoColor))
	own("GET /consent", a.showConsent)
	own("POST /consent", a.answerConsent)
	own("GET /device", a.showDevice)
	own("POST /device", a.enterUserCode)
	own("GET /forgot", a.showForgot)
	own("POST /forgot", a.askReset)
	own("GET /invite", a.showInvitation)
	own("POST /invite", a.acceptInvitation)
	own("POST /language", a.changeLanguage)
	own("GET /login", a.showLogin)
	own("POST /login", a.logIn)
	own("POST /login/continue", a.goOn)
	own("GET /login/enrol", a.showEnrol)
	own("POST /login/enrol", a.enrolApp)
	own("POST /login/enrol/passkey", a.enrolPasskey)
	own("GET /login/factor", a.showFactor)
	own("POST /login/factor", a.proveFactor)
	own("POST /login/passkey", a.logInByPasskey)
	page("GET /login/oauth/authorize", a.authorize)
	page("POST /login/oauth/authorize", a.authorizeByPost)
	own("GET /logout", a.showLogout)
	own("POST /logout", a.logOut)
	anyOrigin(devicePath, a.strict(byLibrary(library)), http.MethodPost)
	anyOrigin(introspectPath, a.strict(s.introspect), http.MethodPost)
	anyOrigin("/oauth/jwks", a.document(a.serveJWKS), http.MethodGet)
	page("GET /oauth/logout", a.endSession)
	page("POST /oauth/logout", a.endSessionByPost)
	anyOrigin(revokePath, a.strict(byLibrary(library)), http.MethodPost)
	anyOrigin(tokenPath, a.strict(s.token(library)), http.MethodPost)
	own("GET /register", a.showRegister)
	own("POST /register", a.register)
	own("GET /reset", a.showReset)
	own("POST /reset", a.reset)
	own("GET /verify", a.showVerify)
	own("POST /verify", a.verify)
	own("GET /welcome", a.showWelcome)
	own("POST /welcome", a.welcome)
	anyOrigin("/oauth/userinfo", web.Handle(a.userinfo, a.writeBearerError), http.MethodGet, http.MethodPost)
}

// The paths whose requests are read strictly.
const (
	devicePath     = "/oauth/device_authorization"
	tokenPath      = "/oauth/token"
	introspectPath = "/oauth/introspect"
	revokePath     = "/oauth/revoke"
)
