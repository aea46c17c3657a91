package idp

import (
	"context"
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

// A client may push its authorization request to selvage, and then send the browser with a
// reference to the request (RFC 9126). The session store holds the request until it expires or is
// answered. A browser may open it more than once, since people reload pages, but only one response
// is sent.

// pushedPrefix is the prefix of the request_uri of a pushed request (RFC 9126, section 2.2).
const pushedPrefix = "urn:ietf:params:oauth:request_uri:"

// A pushedRequest is an authorization request as its client pushed it.
type pushedRequest struct {
	ClientID string     `json:"client_id"`
	Params   url.Values `json:"params"`
	Signed   bool       `json:"signed,omitempty"` // the parameters come from a signed request object
}

func pushedKey(ref string) session.Key { return session.Key{Kind: "pushed", ID: session.Digest(ref)} }
func answeredKey(ref string) session.Key {
	return session.Key{Kind: "answered", ID: session.Digest(ref)}
}

// Push checks and stores an authorization request that the client sends directly. It returns the
// request_uri of the request and how long it is valid. If the client proved to have a key, jkt is
// the key's thumbprint, and the code will be bound to the key (RFC 9449, section 10.1).
func (rs *Requests) Push(ctx context.Context, c Client, v url.Values,
	jkt string) (uri string, life time.Duration, err error) {
	if v.Has("request_uri") {
		return "", 0, oauth("invalid_request", "a request_uri cannot be pushed")
	}
	v, src, err := rs.Resolve(ctx, c, v)
	if err != nil {
		return "", 0, err
	}

	if asked := v.Get("dpop_jkt"); jkt != "" && asked != "" && asked != jkt {
		return "", 0, oauth("invalid_dpop_proof", "dpop_jkt is not the thumbprint of the proven key")
	}
	if jkt != "" {
		v.Set("dpop_jkt", jkt)
	}

	src.pushed = randomToken()
	if !c.AllowsRedirect(v.Get("redirect_uri")) {
		return "", 0, oauth("invalid_request", "redirect_uri is not one of those registered for the client")
	}
	if _, err := rs.Parse(c, v, src); err != nil {
		return "", 0, err
	}

	// The parameters are parsed again when the browser opens the request, since the client may have
	// changed by then. Credentials and unknown parameters are not stored.
	maps.DeleteFunc(v, func(name string, _ []string) bool { return !slices.Contains(requestParams, name) })
	value, err := json.Marshal(pushedRequest{ClientID: c.ID, Params: v, Signed: src.signed})
	if err != nil {
		return "", 0, fmt.Errorf("writing pushed request: %w", err)
	}
	life = rs.Lifetimes().Pushed
	if c.Profile == FAPI2 {
		life = min(life, maxFAPIPushed)
	}
	return pushedPrefix + src.pushed, life, rs.Sessions.Put(ctx, pushedKey(src.pushed), value, life)
}

// findPushed returns the parameters of a pushed request of this client.
func (rs *Requests) findPushed(ctx context.Context, c Client, uri string) (url.Values, Source, error) {
	src := Source{pushed: strings.TrimPrefix(uri, pushedPrefix)}
	unknown := oauth("invalid_request_uri", "the pushed request is unknown, has expired or was answered before")
	if len(src.pushed) != tokenLength {
		return nil, src, unknown
	}

	value, err := rs.Sessions.Get(ctx, pushedKey(src.pushed))
	if errors.Is(err, problem.NotFound) {
		return nil, src, unknown
	}
	if err != nil {
		return nil, src, fmt.Errorf("reading pushed request: %w", err)
	}

	var p pushedRequest
	if err := json.Unmarshal(value, &p); err != nil {
		return nil, src, fmt.Errorf("reading pushed request: %w", err)
	}
	if p.ClientID != c.ID {
		return nil, src, unknown
	}
	src.signed = p.Signed
	return p.Params, src, nil
}

// EndPushed ends the pushed request that a is from, if any. Callers send the response only if it
// succeeds: if the request was answered before, EndPushed returns problem.NotFound.
func (rs *Requests) EndPushed(ctx context.Context, a AuthRequest) error {
	if a.Pushed == "" {
		return nil
	}
	// A browser that has already opened the request may answer it for as long as its pages are
	// valid.
	err := rs.Sessions.Add(ctx, answeredKey(a.Pushed), []byte("1"), 2*rs.Lifetimes().Request)
	if errors.Is(err, problem.Conflict) {
		return problem.NoSuch("pushed request")
	}
	if err != nil {
		return fmt.Errorf("ending pushed request: %w", err)
	}
	return rs.Sessions.Delete(ctx, pushedKey(a.Pushed))
}
