package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// An apiRoute is the method and the path of a request.
type apiRoute struct{ method, path string }

// projectRoutes are requests that accept an API key or a service token.
var projectRoutes = []apiRoute{
	{"POST", guests},
	{"GET", subscribers},
	{"POST", subscribers},
	{"POST", "/api/fabric/subscribers"},
	{"GET", subscribers + "/x"},
	{"PUT", subscribers + "/x"},
	{"PATCH", subscribers + "/x"},
	{"DELETE", subscribers + "/x"},
	{"GET", subscribers + "/x/addresses"},
	{"POST", issue},
	{"POST", refreshPath},
}

// satRoutes are requests that accept a SAT, but no API key and no service token.
var satRoutes = []apiRoute{
	{"GET", addresses},
	{"GET", addresses + "/x"},
	{"GET", "/subscriber/info"},
	{"GET", "/api/fabric/subscriber/info"},
	{"POST", invites},
}

// TestChallenge shows that the header of a 401 response describes what is wrong with the
// credentials, but not whether a key exists.
func TestChallenge(t *testing.T) {
	w := newWorld(t)
	const (
		info     = "/subscriber/info" // needs a token
		wrong    = "credentials are missing, wrong or expired, or lack the scope"
		needsSAT = "an API key was sent, but this operation needs a token"
		noScope  = "the credentials lack the scope Voice or Messaging or Fax or Video"
	)

	for _, tt := range []struct {
		name string
		auth authorization
		path string
		want string
	}{
		{"nothing", nobody, subscribers, "neither an API key nor a token was sent"},
		{"no token", nobody, info, "no token was sent"},
		{"a key", w.basic(), info, needsSAT},
		{"no scope", w.manager(), subscribers, noScope},
		{"a wrong key", w.withKey("PT00"), subscribers, wrong},
		{"the key of another project", basicAuth(w.other.ID, w.key), subscribers, wrong},
		{"a wrong token", bearer("nonsense"), info, wrong},
	} {
		r := w.call(tt.auth, "GET", tt.path, "")
		r.wantStatus(t, tt.name, http.StatusUnauthorized)
		want := `error_description="` + tt.want + `"`
		if got := r.header.Get("WWW-Authenticate"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: WWW-Authenticate is %s, want …%s", tt.name, got, want)
		}
	}
}

func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	id := w.address(ada.Token).ID
	guest, invite := w.guest(id), w.invite(ada.Token, id)
	elsewhere := openWorld(t, t.TempDir()).tokens(`{"reference":"ada"}`)
	_, chatting, _ := w.newProject("chatting", fabric.Chat, fabric.Management)
	raw := func(value string) authorization {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}

	wrong := map[string]authorization{
		"nothing":                           nobody,
		"a wrong key":                       w.withKey("PT00"),
		"an empty key":                      w.withKey(""),
		"another project's id":              basicAuth(w.other.ID, w.key),
		"an unknown project":                basicAuth("x\x00", w.key),
		"a missing scope":                   w.withKey(chatting),
		"a service token without the scope": bearer(w.service("Chat")),
		"bad base64":                        raw("Basic %%%"),
		"a different scheme":                raw("Digest x"),
		"no token":                          raw("Bearer "),
		"nonsense":                          bearer("nonsense"),
		"another ring's SAT":                bearer(elsewhere.Token),
		"a refresh token":                   bearer(ada.RefreshToken),
		"a guest's refresh token":           bearer(guest.RefreshToken),
		"a changed SAT":                     bearer(altered(ada.Token)),
		"half a SAT":                        bearer(ada.Token[:len(ada.Token)/2]),
		"alg none":                          bearer("eyJhbGciOiJub25lIn0.e30."),
		"two headers": func(r *http.Request) {
			w.basic()(r)
			r.Header.Add("Authorization", "Bearer "+ada.Token)
		},
		"a token in the query": func(r *http.Request) { r.URL.RawQuery = "access_token=" + ada.Token },
	}

	for name, auth := range wrong {
		for _, route := range slices.Concat(projectRoutes, satRoutes) {
			w.wantUnauthorized(name, auth, route.method, route.path, "")
		}
		w.wantUnauthorized(name, auth, "GET", "/api/fabric/nothing", "")
	}

	for _, route := range projectRoutes {
		w.wantUnauthorized("a guest token", bearer(guest.Token), route.method, route.path, "{}")
		w.wantUnauthorized("an invite", bearer(invite), route.method, route.path, "{}")
		if route.path != guests { // subscribers may issue guest tokens
			w.wantUnauthorized("a SAT", bearer(ada.Token), route.method, route.path, "{}")
		}
	}

	for _, route := range satRoutes {
		w.wantUnauthorized("an API key", w.basic(), route.method, route.path, "{}")
		if !strings.HasPrefix(route.path, addresses) { // guests may list addresses
			w.wantUnauthorized("a guest token", bearer(guest.Token), route.method, route.path, "{}")
			w.wantUnauthorized("an invite", bearer(invite), route.method, route.path, "{}")
		}
	}
}

func TestServiceToken(t *testing.T) {
	w := newWorld(t)
	token := must[string](t)(w.fabric.Tokens.Seal(fabric.Token{
		Kind:      fabric.Service,
		ProjectID: w.project.ID,
		ClientID:  "c",
		Scope:     []string{"calling"},
		ExpiresAt: w.now().Add(time.Hour),
	}))
	for _, route := range projectRoutes {
		if r := w.call(bearer(token), route.method, route.path, "{}"); r.status == http.StatusUnauthorized {
			t.Errorf("%s %s with a service token: got 401, want it accepted", route.method, route.path)
		}
	}
	for _, route := range satRoutes {
		w.wantUnauthorized("a service token", bearer(token), route.method, route.path, "{}")
	}
}

func TestEndsOfTokens(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name    string
		onlySAT bool // whether the tokens issued with the SAT remain valid
		end     func(w *world, sat fabric.Token) error
	}{
		{"it expires", false, func(w *world, _ fabric.Token) error {
			w.pass(2 * time.Hour)
			return nil
		}},
		{"it is revoked", true, func(w *world, sat fabric.Token) error {
			return w.fabric.Tokens.Revoke(ctx, sat)
		}},
		{"its key is revoked", false, func(w *world, _ fabric.Token) error {
			return w.fabric.APIKeys.Revoke(ctx, w.project.ID, w.keyID)
		}},
		{"its project is deleted", false, func(w *world, _ fabric.Token) error {
			return w.fabric.Projects.Delete(ctx, w.project.ID)
		}},
		{"its subscriber is deleted", false, func(w *world, sat fabric.Token) error {
			return w.fabric.Subscribers.Delete(ctx, w.project.ID, sat.SubscriberID)
		}},
		{"its login ends", false, func(w *world, sat fabric.Token) error {
			return w.endLogin(ctx, sat.SessionID)
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			sat := w.open(w.tokens(`{"reference":"ada"}`).Token, fabric.SAT)
			sat.SessionID, sat.ID = "login", "" // as if issued by a login
			token := must[string](t)(w.fabric.Tokens.Seal(sat))
			id := w.address(token).ID
			invite := w.invite(token, id)
			guest := as[tokens](t, w.call(bearer(token), "POST", guests, allowing(id))).Token
			if err := tt.end(w, w.open(token, fabric.SAT)); err != nil {
				t.Fatal(err)
			}

			w.wantInfo(token, http.StatusUnauthorized)
			if !tt.onlySAT {
				w.wantUnauthorized("an invite issued with the SAT", bearer(invite), "GET", addresses, "")
				w.wantUnauthorized("a guest token issued with the SAT", bearer(guest), "GET", addresses, "")
			}
		})
	}
}

func TestRevokedKey(t *testing.T) {
	w := newWorld(t)
	w.wants(w.basic(), http.StatusOK, "before the revocation")

	// Keys of other projects and unknown keys cannot be revoked.
	for _, id := range []string{"nonsense", w.project.ID} {
		if err := w.fabric.APIKeys.Revoke(t.Context(), w.project.ID, id); err == nil {
			t.Errorf("Revoke(%s): got nil, want an error", id)
		}
	}
	if err := w.fabric.APIKeys.Revoke(t.Context(), w.other.ID, w.keyID); err == nil {
		t.Error("Revoke by another project: got nil, want an error")
	}
	if err := w.fabric.APIKeys.Revoke(t.Context(), w.project.ID, w.keyID); err != nil {
		t.Fatal(err)
	}

	w.wantUnauthorized("a revoked key", w.basic(), "GET", subscribers, "")
	w.pass(2 * time.Minute) // the key is no longer cached, so its row is read
	w.wantUnauthorized("a revoked key", w.basic(), "GET", subscribers, "")
}

// TestStaleRevocations shows that a node that receives no revocations accepts no tokens. It still
// accepts API keys, because it can check their rows.
func TestStaleRevocations(t *testing.T) {
	w := newWorld(t)
	sat := w.tokens(`{"reference":"ada"}`).Token
	w.deafen()
	w.mu.Lock()
	w.ahead += 6 * time.Second
	w.mu.Unlock()
	r := w.do(bearer(sat), "GET", "/subscriber/info", "", "")
	r.wantError(t, "a SAT on a stale node", http.StatusServiceUnavailable)
	if got := r.header.Get("Retry-After"); got != "1" {
		t.Errorf("a SAT on a stale node: Retry-After is %q, want 1", got)
	}
	w.wants(w.basic(), http.StatusOK, "a key on a stale node")
}

func TestMethodsAndPaths(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ method, path, wantAllow string }{
		{"DELETE", subscribers, "GET, POST, HEAD"},
		{"GET", issue, "POST"},
		{"POST", "/subscriber/info", "GET, HEAD"},
		{"POST", subscribers + "/x", "DELETE, GET, PATCH, PUT, HEAD"},
	} {
		r := w.call(w.basic(), tt.method, tt.path, "")
		r.wantError(t, tt.method+" "+tt.path, http.StatusMethodNotAllowed)
		if got := r.header.Get("Allow"); got != tt.wantAllow {
			t.Errorf("%s %s: Allow is %q, want %q", tt.method, tt.path, got, tt.wantAllow)
		}
	}

	sat := bearer(w.tokens(`{"reference":"ada"}`).Token)
	for _, path := range []string{
		"/api/fabric", "/api/fabric/", "/api/fabric/nothing", "/api/fabric/addresses/", "/subscriber/nothing",
	} {
		r := w.call(w.basic(), "GET", path, "")
		r.wantError(t, "GET "+path+" with a key", http.StatusNotFound)
		r = w.call(sat, "GET", path, "")
		r.wantError(t, "GET "+path+" with a SAT", http.StatusNotFound)
		r = w.call(nobody, "GET", path, "")
		r.wantStatus(t, "GET "+path+" without credentials", http.StatusUnauthorized)
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t)
	page := func(r *http.Request) { r.Header.Set("Origin", "https://app.example") }
	preflight := func(r *http.Request) {
		page(r)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
	}
	for _, path := range []string{addresses, "/subscriber/info", invites} {
		r := w.call(preflight, "OPTIONS", path, "")
		if r.status/100 != 2 {
			t.Errorf("preflight of %s: got %d, want 2xx", path, r.status)
		}
		if got := r.header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("preflight of %s: Access-Control-Allow-Origin is %q, want *", path, got)
		}
		if got := r.header.Get("Access-Control-Allow-Credentials"); got != "" {
			t.Errorf("preflight of %s: Access-Control-Allow-Credentials is %q, want none", path, got)
		}

		// Pages may read errors, too.
		r = w.call(page, "GET", path, "")
		if got := r.header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("GET %s: Access-Control-Allow-Origin is %q, want *", path, got)
		}
	}
}
