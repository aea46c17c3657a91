// Package web is the HTTP plumbing that the protocols share: handlers which
// return errors, credentials, bodies, browser sessions, middleware.
//
// It knows no protocol: how an error looks is the business of the package that
// serves it, which passes an [ErrorWriter].
package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// A Handler serves a request or returns an error, before anything is written.
type Handler func(w http.ResponseWriter, r *http.Request) error

// An ErrorWriter answers a request with an error, in its protocol's own shape.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Handle makes an http.Handler of h, with errors written by fail.
func Handle(h Handler, fail ErrorWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			fail(w, r, err)
		}
	})
}

// JSON answers with v as JSON.
func JSON(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // links stay readable; nosniff keeps it from being HTML
	if err := enc.Encode(v); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may have gone; nobody is left to tell
	return nil
}

// NoStore forbids every cache to keep the answer (RFC 6749, section 5.1).
func NoStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
}

// Encoded reports whether the body is compressed: such bodies are not read here,
// so that a few bytes cannot become a gigabyte.
func Encoded(r *http.Request) bool { return r.Header.Get("Content-Encoding") != "" }

// Basic returns the credentials of HTTP Basic (RFC 7617). Two Authorization
// headers are none.
func Basic(r *http.Request) (name, secret string, ok bool) {
	if len(r.Header.Values("Authorization")) != 1 {
		return "", "", false
	}
	return r.BasicAuth()
}

// Bearer returns the token of an Authorization header (RFC 6750, section 2.1). Two
// Authorization headers are none; a token in the query or body is not looked at.
func Bearer(r *http.Request) (token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " ,\t") {
		return "", false
	}
	return token, true
}

// A Mux is where an API mounts its handlers: an http.ServeMux, or [Patterns].
type Mux interface {
	Handle(pattern string, h http.Handler)
}

// Patterns notes what an API mounts, for who asks which routes there are.
type Patterns []string

// Handle notes a pattern.
func (p *Patterns) Handle(pattern string, _ http.Handler) { *p = append(*p, pattern) }
