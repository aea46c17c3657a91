package oidc

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// These are the limits of requests to the token endpoint and similar endpoints.
const (
	maxTokenBody   = 32 << 10
	maxTokenFields = 40
)

// A clientHandler serves a request that [server.strict] has accepted. It must authenticate the client
// with cc.
type clientHandler func(w http.ResponseWriter, r *http.Request, cc *op.ClientCredentials)

// errLibrary is logged for requests that the library rejects before it calls server.
var errLibrary = problem.New(problem.Malformed, "invalid_request", "a parameter is missing or invalid")

// byLibrary lets the library serve a request. The library reads the credentials again.
func byLibrary(library http.Handler) clientHandler {
	return func(w http.ResponseWriter, r *http.Request, _ *op.ClientCredentials) {
		web.Refuse(r.Context(), errLibrary)
		library.ServeHTTP(w, withCertificates(r))
	}
}

// strict reads the form of a request before the library does. It rejects methods other than POST,
// parameters in the query, JSON from clients that are not mobile-legacy, repeated parameters,
// more than one kind of client authentication, and bodies that are too large.
func (s *server) strict(next clientHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.NoStore(w)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			web.Refuse(r.Context(), errMethod)
			s.writeOAuth(w, r, http.StatusMethodNotAllowed, "invalid_request", "use POST")
			return
		}

		form, refusal := s.readForm(r)
		var cc *op.ClientCredentials
		if refusal == nil {
			cc, refusal = checkForm(r, form)
		}

		w = &challenger{w, challenged(r, form)}
		if refusal != nil {
			web.Refuse(r.Context(), refusal.problem())
			s.writeOAuth(w, r, refusal.status, refusal.code, refusal.text)
			return
		}

		err := s.countRequest(r, cc.ClientID)
		if p := problem.First(err); p != nil {
			web.RetryAfter(w, p)
			web.Refuse(r.Context(), p)
			s.writeOAuth(w, r, http.StatusTooManyRequests, "slow_down", p.Message)
			return
		}
		if err != nil {
			// The request was not counted, perhaps because the client has stopped sending. The client
			// can still receive the response, which must not reveal whether the secret is correct.
			op.WriteError(w, r, s.status(r.Context(), err), nil)
			return
		}

		if r.URL.Path != parPath { // a pushed request has the parameters of an authorization request
			keepKnown(form)
		}
		r.Form, r.PostForm = form, form
		next(w, r, cc)
	})
}

// countRequest counts a request for a client before the client is authenticated, so that its secret
// cannot be guessed. Each network has its own count, so one network cannot use up the limit of
// others.
func (s *server) countRequest(r *http.Request, id string) error {
	return s.Limits.Pass(r.Context(), limit.TokenPerClient, id+" "+web.Network(r))
}

// keepKnown removes unknown parameters. The library ignores the case of names, so a parameter in a
// different spelling could otherwise bypass the checks.
func keepKnown(form url.Values) {
	for name := range form {
		if !slices.Contains(knownParams, name) {
			delete(form, name)
		}
	}
}

// knownParams lists the parameters that keepKnown keeps. checkForm rejects any repeated parameter
// except resource, which may be repeated (RFC 8707, section 2).
var knownParams = []string{
	"grant_type", "code", "redirect_uri", "code_verifier", "client_id", "client_secret", "client_assertion",
	"client_assertion_type",
	"refresh_token", "device_code", "scope", "token", "token_type_hint", "assertion", "resource",
}

// A refusal is an OAuth error found while reading a request.
type refusal struct {
	status int
	code   string
	text   string
}

// problem returns the refusal as an error, for the log.
func (f *refusal) problem() error { return problem.New(problem.Malformed, f.code, "%s", f.text) }

func invalidRequest(text string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "invalid_request", text: text}
}

// readForm reads the form in the body of r, or the JSON that mobile-legacy clients send.
func (s *server) readForm(r *http.Request) (url.Values, *refusal) {
	if web.Encoded(r) {
		return nil, &refusal{
			status: http.StatusUnsupportedMediaType,
			code:   "invalid_request",
			text:   "compressed bodies are not supported",
		}
	}

	body, err := readBody(r)
	if err != nil {
		return nil, invalidRequest("the body is incomplete")
	}
	if len(body) > maxTokenBody {
		return nil, &refusal{
			status: http.StatusRequestEntityTooLarge,
			code:   "invalid_request",
			text:   "the body is too large",
		}
	}

	unsupported := &refusal{
		status: http.StatusUnsupportedMediaType,
		code:   "invalid_request",
		text:   "the body must be application/x-www-form-urlencoded",
	}
	kind := r.Header.Get("Content-Type")
	if kind != formType {
		var params map[string]string
		kind, params, err = mime.ParseMediaType(kind)
		if cs := params["charset"]; err != nil || cs != "" && !strings.EqualFold(cs, "utf-8") {
			return nil, unsupported
		}
	}

	switch kind {
	case formType:
		form, err := parseForm(string(body))
		if err != nil {
			return nil, invalidRequest("the form is invalid")
		}
		return form, nil
	case "application/json":
		if form, ok := s.legacyJSON(r, body); ok {
			return form, nil
		}
	}
	return nil, unsupported
}

const formType = "application/x-www-form-urlencoded"

// readBody reads the body of r. If the body is too large, readBody returns one byte more than
// allowed.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > maxTokenBody {
		return io.ReadAll(io.LimitReader(r.Body, maxTokenBody+1))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// parseForm is like url.ParseQuery, with a fast path for forms without escapes, which are the most
// common. ParseQuery examines each byte.
func parseForm(body string) (url.Values, error) {
	for _, c := range []byte("%+;") {
		if strings.IndexByte(body, c) >= 0 {
			return url.ParseQuery(body)
		}
	}
	form := make(url.Values, 8)
	for part := range strings.SplitSeq(body, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		form[name] = append(form[name], value)
	}
	return form, nil
}

// legacyJSON reads a JSON body as a form. It returns false unless r is a token request whose body
// names a mobile-legacy client.
func (s *server) legacyJSON(r *http.Request, body []byte) (url.Values, bool) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	members, err := web.Members(r)
	if r.URL.Path != tokenPath || err != nil {
		return nil, false
	}
	form := make(url.Values)
	for name, raw := range members {
		var value string
		if json.Unmarshal(raw, &value) == nil {
			form.Set(name, value)
		}
	}
	c, err := s.Clients.Find(r.Context(), form.Get("client_id"))
	return form, err == nil && c.Profile == idp.MobileLegacy
}

func checkForm(r *http.Request, form url.Values) (*op.ClientCredentials, *refusal) {
	switch {
	case r.URL.RawQuery != "":
		return nil, invalidRequest("parameters belong in the body, not in the query")
	case len(form) > maxTokenFields:
		return nil, invalidRequest("too many parameters")
	}
	if err := checkParams(form); err != nil {
		return nil, invalidRequest(err.Error())
	}
	return readCredentials(r, form)
}

// writeOAuth writes an error response as defined in RFC 6749, section 5.2.
func (co *core) writeOAuth(w http.ResponseWriter, r *http.Request, status int, code, text string) {
	if err := web.JSON(w, status, oauthError(code, text)); err != nil {
		web.LogInternal(r, co.log, err)
	}
}

// challenged reports whether a 401 response to r includes a challenge. It does if the client sent
// an Authorization header (RFC 6749, section 5.2) or did not identify itself. A client that
// identifies itself in the form does not use Basic, and strict libraries would show the challenge
// instead of the error.
func challenged(r *http.Request, form url.Values) bool {
	return len(r.Header.Values("Authorization")) > 0 || !form.Has("client_id") && !form.Has("client_assertion")
}

// A challenger adds a challenge to 401 responses if challenge is set (RFC 9110, section 11.6.1). It
// adds Retry-After to 503 responses.
type challenger struct {
	http.ResponseWriter
	challenge bool
}

func (c *challenger) WriteHeader(status int) {
	if status == http.StatusServiceUnavailable {
		c.Header().Set("Retry-After", "1")
	}
	if status == http.StatusUnauthorized && c.challenge {
		c.Header().Set("WWW-Authenticate", `Basic realm="selvage", charset="UTF-8"`)
	}
	c.ResponseWriter.WriteHeader(status)
}
