// Package web contains the HTTP code that the protocols share: handlers that return errors,
// functions that read credentials and bodies, browser sessions, and middleware.
//
// It does not depend on any protocol. The package that serves a protocol passes an [ErrorWriter],
// which determines the format of errors.
package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// A Handler serves a request. If it returns an error, it must not have written a response.
type Handler func(w http.ResponseWriter, r *http.Request) error

// An ErrorWriter answers a request with err, in the format of its protocol.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Handle returns an http.Handler that calls h and passes any error to fail.
func Handle(h Handler, fail ErrorWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			fail(w, r, err)
		}
	})
}

// JSON writes v as JSON with the given status.
func JSON(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // keeps links readable; nosniff keeps browsers from rendering JSON as HTML
	if err := enc.Encode(v); err != nil {
		return err
	}

	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // an error means that the client has disconnected
	return nil
}

// NoStore tells caches not to store the response (RFC 6749, section 5.1).
func NoStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
}

// Encoded reports whether the body is compressed. Compressed bodies are refused, because a few
// bytes could expand to a gigabyte.
func Encoded(r *http.Request) bool { return r.Header.Get("Content-Encoding") != "" }

// Basic returns the credentials for HTTP Basic (RFC 7617). ok is false unless there is exactly one
// Authorization header.
func Basic(r *http.Request) (name, secret string, ok bool) {
	if len(r.Header.Values("Authorization")) != 1 {
		return "", "", false
	}
	return r.BasicAuth()
}

// Bearer returns the token in the Authorization header (RFC 6750, section 2.1). ok is false unless
// there is exactly one such header. Tokens in the query or body are ignored.
func Bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := credential(r)
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return token, true
}

// AccessToken returns the token of the scheme Bearer, as Bearer does, or of the scheme DPoP (RFC
// 9449, section 7.1). If the token is bound to a key or certificate, the caller must check that the
// client has this key or certificate.
func AccessToken(r *http.Request) (token string, ok bool) {
	scheme, token, ok := credential(r)
	if !ok || !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "DPoP") {
		return "", false
	}
	return token, true
}

// credential returns the scheme and token of the Authorization header. ok is false unless there is
// exactly one such header.
func credential(r *http.Request) (scheme, token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	return scheme, token, found && token != "" && !strings.ContainsAny(token, " ,\t")
}

// A Mux is the multiplexer to which an API adds its handlers.
type Mux interface {
	Handle(pattern string, h http.Handler)
}

// Mount returns a multiplexer with the handlers that mount adds.
func Mount(mount func(Mux)) *http.ServeMux {
	mux := http.NewServeMux()
	mount(mux)
	return mux
}

// Routes returns the patterns of the handlers that mount adds.
func Routes(mount func(Mux)) []string {
	var all patterns
	mount(&all)
	return all
}

type patterns []string

// Handle records a pattern.
func (p *patterns) Handle(pattern string, _ http.Handler) { *p = append(*p, pattern) }
