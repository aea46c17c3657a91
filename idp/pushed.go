package idp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A client may push its authorization request to selvage, and then redirect the browser to selvage
// with a reference to the request (RFC 9126). Until the request expires, a browser may open it more than
// once, because people reload pages. Only one response is sent.
//
// The reference contains the request, sealed in the same way as an authorization code but with a
// key of its own. Therefore pushing a request writes nothing. If the sealed request would be too
// long for a URL, the session store holds it instead, under the digest of a random reference. A row
// marks a request as answered.

// pushedPrefix is the prefix of the request_uri of a pushed request (RFC 9126, section 2.2).
const pushedPrefix = "urn:ietf:params:oauth:request_uri:"

// maxSealedRequest is the maximum length of a sealed request. It keeps the URL of an authorization
// request short enough for a browser to start a login again from it.
const maxSealedRequest = 1 << 10

// A pushedRequest is a pushed authorization request that Push has checked. It has only the parameters
// in requestParams.
type pushedRequest struct {
	ID       string     `json:"id"`
	Expires  time.Time  `json:"exp"`
	ClientID string     `json:"client_id"`
	Params   url.Values `json:"params"`
	Signed   bool       `json:"signed,omitempty"` // whether the parameters come from a signed request object
}

func pushedKey(ref string) session.Key { return session.Key{Kind: "pushed", ID: session.Digest(ref)} }

// answered returns the identifier under which the use of a pushed request is stored.
func answered(id string) string { return "pushed:" + id }

// Push checks and stores an authorization request that the client sends directly. It returns the
// request_uri of the request and how long it is valid. If the client proved possession of a key,
// jkt is the thumbprint of that key. The code will then be bound to the key (RFC 9449, section
// 10.1).
func (rs *Requests) Push(ctx context.Context, c Client, v url.Values,
	jkt string) (uri string, life time.Duration, err error) {
	if v.Get("request_uri") != "" {
		return "", 0, oauth("invalid_request", "a request_uri cannot be pushed")
	}
	v, src, err := rs.Resolve(ctx, c, v)
	if err != nil {
		return "", 0, err
	}

	for name, values := range v { // a claim in a request object may be a list
		if len(values) > 1 && name != "resource" {
			return "", 0, oauth("invalid_request", "a parameter is repeated")
		}
	}

	if asked := v.Get("dpop_jkt"); jkt != "" && asked != "" && asked != jkt {
		return "", 0, oauth("invalid_dpop_proof", "dpop_jkt is not the thumbprint of the proven key")
	}
	if jkt != "" {
		v.Set("dpop_jkt", jkt)
	}

	if !c.AllowsRedirect(v.Get("redirect_uri")) {
		return "", 0, oauth("invalid_request", "redirect_uri is not one of those registered for the client")
	}
	src.pushed = rand.Text()
	req, err := rs.Parse(c, v, src)
	if err != nil {
		return "", 0, err
	}
	if err := rs.CheckCreate(ctx, c, req); err != nil {
		return "", 0, err
	}

	// The parameters are parsed again when the browser opens the request, because the client may
	// have changed by then. Credentials and unknown parameters are not stored.
	maps.DeleteFunc(v, func(name string, _ []string) bool { return !slices.Contains(requestParams, name) })
	life = rs.Lifetimes().Pushed
	if c.Profile == FAPI2 {
		life = min(life, maxFAPIPushed)
	}
	ref, err := rs.keepPushed(ctx, pushedRequest{
		ID:       src.pushed,
		Expires:  rs.Now().Add(life),
		ClientID: c.ID,
		Params:   v,
		Signed:   src.signed,
	}, life)
	if err != nil {
		return "", 0, err
	}
	return pushedPrefix + ref, life, nil
}

// keepPushed returns the reference to a pushed request. If the sealed request is too long, it
// stores the request in the session store.
func (rs *Requests) keepPushed(ctx context.Context, p pushedRequest, life time.Duration) (ref string, err error) {
	sealed, err := rs.sealer.Seal(&p)
	if err == nil && len(sealed) <= maxSealedRequest {
		return sealed, nil
	}
	value, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("writing pushed request: %w", err)
	}
	ref = randomToken()
	return ref, rs.Sessions.Put(ctx, pushedKey(ref), value, life)
}

// findPushed returns the parameters of a pushed request of this client.
func (rs *Requests) findPushed(ctx context.Context, c Client, uri string) (url.Values, Source, error) {
	unknown := oauth("invalid_request_uri", "the pushed request is unknown, has expired or was answered before")
	p, err := rs.openPushed(ctx, strings.TrimPrefix(uri, pushedPrefix))
	if errors.Is(err, problem.NotFound) {
		return nil, Source{}, unknown
	}
	if err != nil {
		return nil, Source{}, fmt.Errorf("reading pushed request: %w", err)
	}
	if p.ClientID != c.ID || !rs.Now().Before(p.Expires) {
		return nil, Source{}, unknown
	}

	used, err := rs.wasAnswered(ctx, p)
	if err != nil {
		return nil, Source{}, fmt.Errorf("reading pushed request: %w", err)
	}
	if used {
		return nil, Source{}, unknown
	}
	return p.Params, Source{pushed: p.ID, until: p.Expires, signed: p.Signed}, nil
}

// wasAnswered reports whether a pushed request was answered.
func (rs *Requests) wasAnswered(ctx context.Context, p pushedRequest) (bool, error) {
	if log := rs.Store.Used; log != nil {
		return log.Has(answered(p.ID), rs.pushedAt(p.Expires)), nil
	}
	return rs.Store.Uses.WasUsed(ctx, answered(p.ID))
}

// pushedAt returns the earliest time at which a request may have been pushed. until is when the
// request expires. Requests of FAPI 2.0 may live for a shorter time than others, so they may have
// been pushed later.
func (rs *Requests) pushedAt(until time.Time) time.Time { return until.Add(-rs.Lifetimes().Pushed) }

// openPushed returns the request for a reference. It does not check whether the request has
// expired.
func (rs *Requests) openPushed(ctx context.Context, ref string) (p pushedRequest, err error) {
	if strings.Contains(ref, "..") {
		if !rs.sealer.Open(ref, &p) {
			return p, problem.NoSuch("pushed request")
		}
		return p, nil
	}
	if len(ref) != tokenLength {
		return p, problem.NoSuch("pushed request")
	}
	value, err := rs.Sessions.Get(ctx, pushedKey(ref))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(value, &p)
}

// EndPushed ends the pushed request from which the authorization request comes, if any. Callers
// send the response only if EndPushed succeeds. If the request was answered before, EndPushed
// returns problem.NotFound.
func (rs *Requests) EndPushed(ctx context.Context, a AuthRequest) error {
	if a.Pushed == "" {
		return nil
	}
	// A browser that has already opened the request may answer it as long as its pages are valid.
	// Each page extends that time, so PushedUntil may be long ago.
	until := a.PushedUntil
	if now := rs.Now(); now.After(until) {
		until = now
	}

	uses := Uses{store: rs.Store.Uses, log: rs.Store.Used}
	uses.Add(Use{
		Hash:    answered(a.Pushed),
		Refusal: problem.NoSuch("pushed request"),
		Made:    rs.pushedAt(a.PushedUntil),
		Expires: until.Add(2 * rs.Lifetimes().Request),
	})
	err := uses.Store(ctx)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return fmt.Errorf("ending pushed request: %w", err)
	}
	return err
}
