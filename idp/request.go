package idp

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/keys"
)

// An AuthRequest is an authorization request whose client, redirect URI and parameters have been
// checked (OpenID Connect Core, section 3.1.2.1).
type AuthRequest struct {
	ID           string       `json:"id,omitempty"`
	ClientID     string       `json:"client_id"`
	ResponseType string       `json:"response_type,omitempty"` // "" means ResponseCode
	RedirectURI  string       `json:"redirect_uri"`
	Mode         ResponseMode `json:"response_mode,omitempty"` // "" means Query
	Signed       bool         `json:"signed,omitempty"`        // whether the response is a signed JWT (JARM)
	Pushed       string       `json:"pushed,omitempty"`        // ID of the pushed request, if it was pushed
	PushedUntil  time.Time    `json:"pushed_until,omitzero"`   // time from which no browser can open the pushed request
	Device       string       `json:"device,omitempty"`        // waiting device, instead of a redirect URI
	Account      string       `json:"account,omitempty"`       // for an account page: its project, instead of a client
	State        string       `json:"state,omitempty"`
	Nonce        string       `json:"nonce,omitempty"`
	Challenge    string       `json:"code_challenge,omitempty"` // S256 (RFC 7636); "" if the client may omit it
	JKT          string       `json:"dpop_jkt,omitempty"`       // thumbprint of the key to which its code is bound
	Scope        []string     `json:"scope,omitempty"`
	Prompt       []string     `json:"prompt,omitempty"`
	MaxAge       *int64       `json:"max_age,omitempty"` // in seconds
	LoginHint    string       `json:"login_hint,omitempty"`
	Meant        []string     `json:"meant,omitzero"`        // ids of subscribers who may answer it; nil means any
	Want         Want         `json:"want,omitempty"`        // class of login that it asks for; "" means any
	NeedsClass   bool         `json:"needs_class,omitempty"` // whether its login must have an acr
	Proof        *Proof       `json:"proof,omitempty"`       // first part of a login that needs a second factor
	Pending      *Pending     `json:"pending,omitempty"`     // account that a person is creating during the request
	Link         *Identity    `json:"link,omitempty"`        // identity to link with the account of the login
	Claims       Claims       `json:"claims,omitzero"`
	Resources    []string     `json:"resources,omitempty"`  // possible audiences (RFC 8707); empty means the issuer
	UILocales    string       `json:"ui_locales,omitempty"` // languages of pages, the preferred one first
	Chosen       string       `json:"chosen,omitempty"`     // login that a person chose for the request
	Created      time.Time    `json:"created,omitzero"`
	Browser      string       `json:"browser,omitempty"` // digest of the cookie in the browser that began the request
}

// Has reports whether the request's prompt parameter contains prompt.
func (a AuthRequest) Has(prompt string) bool { return slices.Contains(a.Prompt, prompt) }

// Satisfied reports whether a login can answer the request. Means must return true, and the login
// must be recent enough for prompt and max_age. With prompt=select_account, an older login is
// accepted if the person chose it. If a silent login is older than the request, its age is the time
// since the sign-in to the upstream provider. If that time is unknown, the login is not recent
// enough for any max_age.
func (a AuthRequest) Satisfied(s Login, now time.Time) bool {
	if !a.Means(s) {
		return false
	}
	old := s.AuthTime.Before(a.Created)
	if old && (a.Has("login") || a.Has("select_account") && a.Chosen != s.ID) {
		return false
	}
	if a.MaxAge == nil || !old {
		return true
	}
	signedIn := s.AuthTime
	if s.Silent {
		signedIn = s.SignedIn
	}
	return now.Sub(signedIn) <= time.Duration(*a.MaxAge)*time.Second
}

// Means reports whether a login belongs to a subscriber whom the request asks for by an
// id_token_hint or the claim sub. A request that names nobody accepts every subscriber.
func (a AuthRequest) Means(s Login) bool {
	return a.Meant == nil || slices.Contains(a.Meant, s.SubscriberID)
}

// Requests manages the authorization requests in progress, which the session store holds.
type Requests struct {
	*core
	clients  *Clients
	subjects *Subjects
	tokens   *Tokens
	signers  *Assertions // verifies the signatures of clients
	sealer   *keys.Sealer
}

func requestKey(id string) session.Key { return session.Key{Kind: "request", ID: session.Digest(id)} }

// Suspend stores a request while a person signs in, for at most the lifetime of a request.
func (rs *Requests) Suspend(ctx context.Context, a AuthRequest) error {
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing authorization request: %w", err)
	}
	return rs.Sessions.Put(ctx, requestKey(a.ID), value, rs.Lifetimes().Request)
}

// Resume returns a suspended request. browser must be the cookie of the browser that began the
// request. Otherwise Resume returns problem.Forbidden. If the request is unknown or has ended, or
// browser is "", it returns problem.NotFound.
func (rs *Requests) Resume(ctx context.Context, id, browser string) (a AuthRequest, c Client, err error) {
	if len(id) > 64 || browser == "" {
		return a, c, problem.NoSuch("authorization request")
	}

	value, err := rs.Sessions.Get(ctx, requestKey(id))
	if err != nil {
		return a, c, err
	}
	if err := json.Unmarshal(value, &a); err != nil {
		return a, c, fmt.Errorf("reading authorization request: %w", err)
	}

	if subtle.ConstantTimeCompare([]byte(a.Browser), []byte(session.Digest(browser))) != 1 {
		return AuthRequest{}, c, problem.New(
			problem.Forbidden, "another_browser", "the authorization request was started in another browser")
	}

	if a.Account != "" {
		return a, ownClient(a.Account), nil
	}
	if c, err = rs.clients.Find(ctx, a.ClientID); err != nil {
		return a, c, err
	}
	if !c.mayEnd(a) { // the client's registration has changed
		return AuthRequest{}, c, problem.NoSuch("authorization request")
	}
	return a, c, nil
}

// Drop deletes a suspended request. Of several concurrent calls for a request, only one succeeds.
func (rs *Requests) Drop(ctx context.Context, a AuthRequest) error {
	_, err := rs.Sessions.Take(ctx, requestKey(a.ID))
	return err
}

// mayEnd reports whether the client may still receive a response to the request, at its redirect
// URI or on its device.
func (c Client) mayEnd(a AuthRequest) bool {
	if a.Device != "" {
		return c.May(GrantDevice)
	}
	return c.AllowsRedirect(a.RedirectURI)
}
