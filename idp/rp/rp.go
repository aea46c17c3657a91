// Package rp implements the relying party of OpenID Connect. It signs people in with upstream
// providers, using the authorization code flow with PKCE.
//
// It checks the issuer of the provider's response. Of the ID token, it checks the signature, issuer,
// audience and nonce, and of userinfo, the subject. Package idp decides what an identity may do.
package rp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// These are the limits of requests to a provider.
const (
	timeout      = 10 * time.Second
	maxBody      = 1 << 20
	discoverFor  = 10 * time.Minute // how long a discovery document is used
	maxProviders = 1000             // maximum number of cached documents; beyond it, all are dropped
)

// Config holds the dependencies of a Client.
type Config struct {
	HTTP     *http.Client // client for all requests; nil means that no requests are possible
	Provider *idp.Provider
	AuthURL  string // URL of this server, without a final slash
	Logout   string // URL to which providers redirect after a logout
}

// A Client signs people in with upstream providers. Its methods may be called concurrently.
type Client struct {
	Config

	mu        sync.Mutex
	providers map[string]*provider // by issuer
}

// A provider holds the discovery document of a provider (OpenID Connect Discovery, section 3).
type provider struct {
	*oidc.Provider
	read time.Time

	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	ResponseIss bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	EndSession  string   `json:"end_session_endpoint"`
}

// New returns a Client.
func New(c Config) *Client {
	var own http.Client
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.Timeout, own.Transport = timeout, limited{own.Transport}
	c.HTTP = &own
	return &Client{Config: c, providers: make(map[string]*provider)}
}

// limited is a transport that limits the size of responses. Without a RoundTripper, it refuses all
// requests.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.RoundTripper == nil {
		return nil, errors.New("requests are not configured")
	}
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return response, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxBody), response.Body}
	return response, nil
}

// unusable returns the error for a provider that does not respond correctly. Its message is for the
// log.
func unusable(doing string, err error) error {
	return fmt.Errorf("%w: %w", problem.New(problem.Invalid, "upstream_failed", "%s", doing), err)
}

// discover returns the discovery document of an issuer, from a cache.
func (c *Client) discover(ctx context.Context, issuer string) (*provider, error) {
	c.mu.Lock()
	known := c.providers[issuer]
	c.mu.Unlock()
	now := c.Provider.Now()
	if known != nil && now.Sub(known.read) < discoverFor {
		return known, nil
	}

	found, err := oidc.NewProvider(c.with(ctx), issuer)
	if err != nil {
		return nil, unusable("reading the discovery document", err)
	}

	p := &provider{Provider: found, read: now}
	if err := found.Claims(p); err != nil {
		return nil, unusable("reading the discovery document", err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.providers) >= maxProviders {
		clear(c.providers)
	}
	c.providers[issuer] = p
	return p, nil
}

// with returns ctx with the HTTP client that the libraries are to use.
func (c *Client) with(ctx context.Context) context.Context { return oidc.ClientContext(ctx, c.HTTP) }

// config returns the OAuth configuration for u.
func (c *Client) config(p *provider, u idp.Upstream) (oauth2.Config, error) {
	secret, err := c.Provider.Upstreams.OpenSecret(u)
	if err != nil {
		return oauth2.Config{}, err
	}

	endpoint := p.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	// Without a list, the method is client_secret_basic (OpenID Connect Discovery, section 3).
	if secret == "" || len(p.AuthMethods) > 0 && !slices.Contains(p.AuthMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return oauth2.Config{
		ClientID:     u.ClientID,
		ClientSecret: secret,
		Endpoint:     endpoint,
		RedirectURL:  c.AuthURL + u.Callback(),
		Scopes:       u.AllScopes(),
	}, nil
}

// Begin begins an attempt to sign in with u, in order to answer req. It returns the URL at which
// the person signs in.
func (c *Client) Begin(ctx context.Context, u idp.Upstream, req idp.AuthRequest) (string, error) {
	p, err := c.discover(ctx, u.Issuer)
	if err != nil {
		return "", err
	}

	config, err := c.config(p, u)
	if err != nil {
		return "", err
	}

	a, err := c.Provider.Upstreams.Begin(ctx, u, req)
	if err != nil {
		return "", err
	}

	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if req.LoginHint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", req.LoginHint))
	}
	if a.MaxAge != nil {
		options = append(options, oauth2.SetAuthURLParam("max_age", strconv.FormatInt(*a.MaxAge, 10)))
	}
	if req.Has("login") {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	return config.AuthCodeURL(a.State, options...), nil
}

// Finish redeems the provider's response to attempt a. It returns the person's identity and the ID
// token. answer holds the parameters of the response.
func (c *Client) Finish(ctx context.Context, u idp.Upstream, a idp.UpstreamAttempt,
	answer url.Values) (id idp.Identity, idToken string, err error) {
	p, err := c.discover(ctx, u.Issuer)
	if err != nil {
		return id, "", err
	}
	// The issuer in the response proves that no other provider sent it (RFC 9207, section 2.4).
	if iss := answer.Get("iss"); (iss != "" || p.ResponseIss) && iss != u.Issuer {
		return id, "", problem.New(problem.Invalid, "upstream_failed", "the response is from a different issuer")
	}
	if code := answer.Get("error"); code != "" {
		return id, "", problem.New(problem.Invalid, "upstream_refused", "the provider answered %.100q", code)
	}

	config, err := c.config(p, u)
	if err != nil {
		return id, "", err
	}

	tokens, err := config.Exchange(c.with(ctx), answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return id, "", unusable("redeeming the code", err)
	}

	idToken, _ = tokens.Extra("id_token").(string)
	claims, err := c.verify(ctx, p, u, a, tokens, idToken)
	if err != nil {
		return id, "", err
	}

	id = u.IdentityOf(claims.subject, claims.all)
	id.Fresh, id.SignedIn = claims.fresh, claims.signedIn
	return id, idToken, nil
}

// claims are the claims of an ID token and of userinfo.
type claims struct {
	subject  string
	all      map[string]any
	fresh    bool      // see [idp.Identity]
	signedIn time.Time // see [idp.Identity]
}

// verify verifies an ID token and returns its claims. If the token lacks the email, verify adds the
// claims of userinfo.
func (c *Client) verify(ctx context.Context, p *provider, u idp.Upstream, a idp.UpstreamAttempt,
	tokens *oauth2.Token, idToken string) (claims, error) {
	token, err := p.Verifier(&oidc.Config{ClientID: u.ClientID, Now: c.Provider.Now}).Verify(c.with(ctx), idToken)
	if err != nil {
		return claims{}, unusable("verifying the ID token", err)
	}

	got := claims{subject: token.Subject, all: make(map[string]any)}
	if err := token.Claims(&got.all); err != nil {
		return claims{}, unusable("reading the ID token", err)
	}

	var signedIn time.Time
	if seconds, dated := got.all["auth_time"].(float64); dated { // some providers never send it
		signedIn = time.Unix(int64(seconds), 0)
	}
	got.fresh, got.signedIn = a.IsFresh(signedIn), signedIn

	azp, _ := got.all["azp"].(string)
	if err := checkIDToken(token, azp, signedIn, u, a, tokens.AccessToken); err != nil {
		return claims{}, unusable("verifying the ID token", err)
	}

	if got.all[u.Claim("email")] != nil || p.UserInfoEndpoint() == "" {
		return got, nil
	}
	if err := c.addUserInfo(ctx, p, tokens, &got); err != nil {
		return claims{}, unusable("reading userinfo", err)
	}
	return got, nil
}

// checkIDToken checks the claims that package oidc does not check. azp is the authorized party, or
// "". signedIn is when the person signed in to the provider, or zero if that is unknown.
func checkIDToken(token *oidc.IDToken, azp string, signedIn time.Time, u idp.Upstream, a idp.UpstreamAttempt,
	accessToken string) error {
	switch {
	case token.Subject == "" || len(token.Subject) > 255:
		return fmt.Errorf("the subject %.20q is invalid", token.Subject)
	case token.Nonce != a.Nonce:
		return errors.New("the nonce does not match the request")
	case azp == "" && len(token.Audience) > 1:
		return errors.New("the ID token has several audiences but no authorized party")
	case azp != "" && azp != u.ClientID:
		return fmt.Errorf("the authorized party %.100q is a different client", azp)
	case !signedIn.IsZero() && !a.Accepts(signedIn):
		return errors.New("the person signed in to the provider too long ago")
	case token.AccessTokenHash != "":
		return token.VerifyAccessToken(accessToken)
	}
	return nil
}

// addUserInfo adds the claims of userinfo to got.
func (c *Client) addUserInfo(ctx context.Context, p *provider, tokens *oauth2.Token, got *claims) error {
	info, err := p.UserInfo(c.with(ctx), oauth2.StaticTokenSource(tokens))
	if err != nil {
		return err
	}
	if info.Subject != got.subject {
		return errors.New("the subject differs from the ID token's")
	}
	return info.Claims(&got.all)
}

// LogoutURL returns the URL at which a person signs out of u (RP-Initiated Logout, section 2), or
// "" if u does not support this. The provider then redirects the person back with state.
func (c *Client) LogoutURL(ctx context.Context, u idp.Upstream, idToken, state string) (string, error) {
	p, err := c.discover(ctx, u.Issuer)
	if err != nil {
		return "", err
	}
	if p.EndSession == "" {
		return "", nil
	}

	to, err := url.Parse(p.EndSession)
	if err != nil {
		return "", unusable("reading the discovery document", err)
	}
	if to.Scheme != "https" && to.Scheme != "http" {
		err := fmt.Errorf("end_session_endpoint has the scheme %q", to.Scheme)
		return "", unusable("reading the discovery document", err)
	}

	q := to.Query()
	q.Set("id_token_hint", idToken)
	q.Set("client_id", u.ClientID)
	q.Set("post_logout_redirect_uri", c.Logout)
	q.Set("state", state)
	to.RawQuery = q.Encode()
	return to.String(), nil
}
