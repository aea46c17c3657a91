package rest_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
)

// An authorization adds credentials to a request.
type authorization func(*http.Request)

// nobody adds no credentials.
func nobody(*http.Request) {}

// bearer returns the authorization with a token.
func bearer(token string) authorization {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// basicAuth returns the authorization with the secret of an API key.
func basicAuth(projectID, secret string) authorization {
	return func(r *http.Request) { r.SetBasicAuth(projectID, secret) }
}

// altered returns a token that differs from the given token in the last characters. Some bits of
// the last character have no meaning, so altered changes more than this character.
func altered(token string) string {
	if strings.HasSuffix(token, "AA") {
		return token[:len(token)-2] + "QA"
	}
	return token[:len(token)-2] + "AA"
}

// basic returns the credentials of the world's first project.
func (w *world) basic() authorization { return w.withKey(w.key) }

// withKey returns the authorization with the secret of a key of the world's first project.
func (w *world) withKey(secret string) authorization { return basicAuth(w.project.ID, secret) }

// stranger returns the credentials of the world's other project.
func (w *world) stranger() authorization { return basicAuth(w.other.ID, w.foreign) }

// newKey creates a key for the world's first project.
func (w *world) newKey(expires time.Time, scopes ...fabric.Scope) (fabric.APIKey, authorization) {
	w.t.Helper()
	in := fabric.APIKeyInput{Scopes: scopes, Expires: &expires}
	key, secret, err := w.fabric.APIKeys.Create(context.Background(), w.project.ID, in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, w.withKey(secret)
}

// manager returns credentials with only the scope Management.
func (w *world) manager() authorization {
	w.t.Helper()
	_, auth := w.newKey(time.Time{}, fabric.Management)
	return auth
}

// administrator returns credentials with the scopes Management and Voice.
func (w *world) administrator() authorization {
	w.t.Helper()
	_, auth := w.newKey(time.Time{}, fabric.Voice, fabric.Management)
	return auth
}

// service returns a service token that belongs to the world's first project and expires in an hour.
func (w *world) service(scopes ...string) string {
	w.t.Helper()
	return must[string](w.t)(w.fabric.Tokens.Seal(fabric.Token{
		Kind:      fabric.Service,
		ProjectID: w.project.ID,
		Scope:     scopes,
		ExpiresAt: w.now().Add(time.Hour),
	}))
}

// wantUnauthorized sends a request, which must be refused with the standard 401 response.
func (w *world) wantUnauthorized(sender string, auth authorization, method, path, body string) {
	w.t.Helper()
	requested := method + " " + path + " by " + sender
	r := w.call(auth, method, path, body)
	r.wantError(w.t, requested, http.StatusUnauthorized)
	if r.header.Get("WWW-Authenticate") == "" {
		w.t.Errorf("%s: the response has no header WWW-Authenticate", requested)
	}
}
