package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// operations holds one request for each route, grouped by the credentials that the route accepts.
var operations = map[string][][2]string{
	"project": {
		{"POST", guests},
		{"GET", subscribers}, {"POST", subscribers}, {"POST", "/api/fabric/subscribers"},
		{"GET", subscribers + "/x"}, {"PUT", subscribers + "/x"}, {"PATCH", subscribers + "/x"},
		{"DELETE", subscribers + "/x"},
		{"GET", subscribers + "/x/addresses"},
		{"POST", issue}, {"POST", refreshPath},
	},
	"sat": {
		{"GET", addresses}, {"GET", addresses + "/x"},
		{"GET", "/subscriber/info"}, {"GET", "/api/fabric/subscriber/info"}, {"POST", invites},
	},
}

func wantUnauthorized(t *testing.T, name string, op [2]string, r reply) {
	t.Helper()
	if r.status != http.StatusUnauthorized || strings.TrimSpace(r.text) != `{"error":"Unauthorized"}` ||
		r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s %s with %s: got %d %s, WWW-Authenticate %q, want 401", op[0], op[1], name, r.status,
			r.text, r.header.Get("WWW-Authenticate"))
	}
}

// TestChallenge shows that the header of a 401 response describes what is wrong with the
// credentials, but not whether a key exists.
func TestChallenge(t *testing.T) {
	w := newWorld(t)
	managing, key, _ := w.newProject("managing", fabric.Management)
	basic := func(name, secret string) authorization { return func(r *http.Request) { r.SetBasicAuth(name, secret) } }

	const wrong = "credentials are missing, wrong or expired, or lack the scope"
	info, list := [2]string{"GET", "/subscriber/info"}, [2]string{"GET", subscribers}
	for name, tt := range map[string]struct {
		op   [2]string
		auth authorization
		want string
	}{
		"nothing":  {list, nobody, "neither an API key nor a token was sent"},
		"no token": {info, nobody, "no token was sent"},
		"a key":    {info, w.basic(), "an API key was sent, but this operation needs a token"},
		"no scope": {list, basic(managing.ID, key),
			"the credentials lack the scope Voice or Messaging or Fax or Video"},
		"a wrong key":                {list, basic(w.project.ID, "PT00"), wrong},
		"the key of another project": {list, basic(w.other.ID, w.key), wrong},
		"a wrong token":              {info, bearer("nonsense"), wrong},
	} {
		r := w.call(tt.auth, tt.op[0], tt.op[1], "")
		if got := r.header.Get("WWW-Authenticate"); r.status != http.StatusUnauthorized ||
			!strings.HasSuffix(got, `error_description="`+tt.want+`"`) {
			t.Errorf("%s: %d, WWW-Authenticate %q, want %q", name, r.status, got, tt.want)
		}
	}
}

func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	id := w.address(ada.Token).ID
	guest, invite := w.guest(id), w.invite(ada.Token, id)
	elsewhere := openWorld(t, t.TempDir()).tokens(`{"reference":"ada"}`)
	_, fax, _ := w.newProject("chatting", fabric.Chat, fabric.Management)
	now := w.now()
	access := must[string](t)(w.fabric.Tokens.Seal(
		fabric.Token{
			Kind:      fabric.Service,
			ProjectID: w.project.ID,
			Scope:     []string{"Chat"},
			ExpiresAt: now.Add(time.Hour),
		}))
	basic := func(name, secret string) authorization { return func(r *http.Request) { r.SetBasicAuth(name, secret) } }
	raw := func(value string) authorization {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}

	nowhere := map[string]authorization{
		"nothing":                             nobody,
		"a wrong key":                         basic(w.project.ID, "PT00"),
		"an empty key":                        basic(w.project.ID, ""),
		"another's project":                   basic(w.other.ID, w.key),
		"an unknown project":                  basic("x\x00", w.key),
		"a missing scope":                     basic(w.project.ID, fax),
		"a service's token without the scope": bearer(access),
		"bad base64":                          raw("Basic %%%"),
		"a different scheme":                  raw("Digest x"),
		"no token":                            raw("Bearer "),
		"nonsense":                            bearer("nonsense"),
		"another ring's SAT":                  bearer(elsewhere.Token),
		"a refresh token":                     bearer(ada.RefreshToken),
		"a guest's refresh":                   bearer(guest.RefreshToken),
		"a changed SAT":                       bearer(altered(ada.Token)),
		"half a SAT":                          bearer(ada.Token[:len(ada.Token)/2]),
		"alg none":                            bearer("eyJhbGciOiJub25lIn0.e30."),
		"two headers": func(r *http.Request) {
			w.basic()(r)
			r.Header.Add("Authorization", "Bearer "+ada.Token)
		},
		"a token in the query": func(r *http.Request) { r.URL.RawQuery = "access_token=" + ada.Token },
	}

	for name, auth := range nowhere {
		for _, ops := range operations {
			for _, op := range ops {
				wantUnauthorized(t, name, op, w.call(auth, op[0], op[1], ""))
			}
		}
		wantUnauthorized(t, name, [2]string{"GET", "/api/fabric/nothing"},
			w.call(auth, "GET", "/api/fabric/nothing", ""))
	}

	for _, op := range operations["project"] {
		for name, token := range map[string]string{
			"a SAT":         ada.Token,
			"a guest token": guest.Token,
			"an invite":     invite,
		} {
			if op[1] != guests || name != "a SAT" {
				wantUnauthorized(t, name, op, w.call(bearer(token), op[0], op[1], "{}"))
			}
		}
	}

	for _, op := range operations["sat"] {
		wantUnauthorized(t, "an API key", op, w.call(w.basic(), op[0], op[1], "{}"))
		if !strings.HasPrefix(op[1], addresses) {
			wantUnauthorized(t, "a guest token", op, w.call(bearer(guest.Token), op[0], op[1], "{}"))
			wantUnauthorized(t, "an invite", op, w.call(bearer(invite), op[0], op[1], "{}"))
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
	for _, op := range operations["project"] {
		if r := w.call(bearer(token), op[0], op[1], "{}"); r.status == http.StatusUnauthorized {
			t.Errorf("%s %s with a service's token: got 401", op[0], op[1])
		}
	}

	for _, op := range operations["sat"] {
		wantUnauthorized(t, "a service's token", op, w.call(bearer(token), op[0], op[1], "{}"))
	}
}

func TestEndsOfTokens(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name string
		end  func(w *world, t fabric.Token) error
	}{
		{"it expires", func(w *world, _ fabric.Token) error { w.pass(2 * time.Hour); return nil }},
		{"it is revoked", func(w *world, t fabric.Token) error { return w.fabric.Tokens.Revoke(ctx, t) }},
		{"its key is revoked", func(w *world, _ fabric.Token) error {
			return w.fabric.APIKeys.Revoke(ctx, w.project.ID, w.keyID)
		}},
		{"its project is deleted", func(w *world, _ fabric.Token) error {
			return w.fabric.Projects.Delete(ctx, w.project.ID)
		}},
		{"its subscriber is deleted", func(w *world, t fabric.Token) error {
			return w.fabric.Subscribers.Delete(ctx, w.project.ID, t.SubscriberID)
		}},
		{"its login ends", func(w *world, t fabric.Token) error { w.ended[t.SessionID] = true; return nil }},
	}

	for _, tt := range tests {
		w := newWorld(t)
		sat := w.open(w.tokens(`{"reference":"ada"}`).Token, fabric.SAT)
		sat.SessionID, sat.ID = "login", "" // as if issued by a login
		token := must[string](t)(w.fabric.Tokens.Seal(sat))
		sat = w.open(token, fabric.SAT)
		id := w.address(token).ID
		invite := w.invite(token, id)
		guest := as[tokens](t, w.call(bearer(token), "POST", guests, allowing(id))).Token
		if err := tt.end(w, sat); err != nil {
			t.Fatalf("when %s: %v", tt.name, err)
		}

		w.wantInfo(token, http.StatusUnauthorized)
		if tt.name == "it is revoked" {
			continue // only the SAT is revoked
		}

		for _, born := range []string{invite, guest} {
			wantUnauthorized(t, "a token born of a SAT, when "+tt.name, [2]string{"GET", addresses},
				w.call(bearer(born), "GET", addresses, ""))
		}
	}
}

func TestRevokedKey(t *testing.T) {
	w := newWorld(t)
	if r := w.call(w.basic(), "GET", subscribers, ""); r.status != http.StatusOK {
		t.Fatalf("before the revocation: got %d, want 200", r.status)
	}

	// Keys of other projects and unknown keys cannot be revoked.
	for _, id := range []string{"nonsense", w.project.ID} {
		if err := w.fabric.APIKeys.Revoke(context.Background(), w.project.ID, id); err == nil {
			t.Errorf("APIKeys.Revoke(%s): no error", id)
		}
	}
	if err := w.fabric.APIKeys.Revoke(context.Background(), w.other.ID, w.keyID); err == nil {
		t.Error("RevokeAPIKey by another project: no error")
	}
	if err := w.fabric.APIKeys.Revoke(context.Background(), w.project.ID, w.keyID); err != nil {
		t.Fatal(err)
	}

	wantUnauthorized(t, "a revoked key", [2]string{"GET", subscribers}, w.call(w.basic(), "GET", subscribers, ""))
	w.pass(2 * time.Minute) // the key is no longer cached, so its row is read
	wantUnauthorized(t, "a revoked key", [2]string{"GET", subscribers}, w.call(w.basic(), "GET", subscribers, ""))
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
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "1" ||
		strings.TrimSpace(r.text) != `{"error":"Service Unavailable"}` {
		t.Errorf("a SAT on a stale node: got %d %s, Retry-After %q, want 503", r.status, r.text,
			r.header.Get("Retry-After"))
	}

	if r := w.call(w.basic(), "GET", subscribers, ""); r.status != http.StatusOK {
		t.Errorf("a key on a stale node: got %d, want 200", r.status)
	}
}

func TestMethodsAndPaths(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ method, path, allow string }{
		{"DELETE", subscribers, "GET, POST, HEAD"},
		{"GET", issue, "POST"},
		{"POST", "/subscriber/info", "GET, HEAD"},
		{"POST", subscribers + "/x", "DELETE, GET, PATCH, PUT, HEAD"},
	} {
		r := w.call(w.basic(), tt.method, tt.path, "")
		if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != tt.allow ||
			strings.TrimSpace(r.text) != `{"error":"Method Not Allowed"}` {
			t.Errorf("%s %s: got %d %s, Allow %q, want 405, %q", tt.method, tt.path, r.status, r.text,
				r.header.Get("Allow"), tt.allow)
		}
	}

	sat := w.tokens(`{"reference":"ada"}`).Token
	for _, path := range []string{"/api/fabric", "/api/fabric/", "/api/fabric/nothing",
		"/api/fabric/addresses/", "/subscriber/nothing"} {
		for _, auth := range []authorization{w.basic(), bearer(sat)} {
			if r := w.call(auth, "GET", path, ""); r.status != http.StatusNotFound ||
				strings.TrimSpace(r.text) != `{"error":"Not Found"}` {
				t.Errorf("GET %s: got %d %s, want 404", path, r.status, r.text)
			}
		}
		if r := w.call(nobody, "GET", path, ""); r.status != http.StatusUnauthorized {
			t.Errorf("GET %s without credentials: got %d, want 401", path, r.status)
		}
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{addresses, "/subscriber/info", invites} {
		r := w.call(func(r *http.Request) {
			r.Header.Set("Origin", "https://app.example")
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		}, "OPTIONS", path, "")
		if r.status/100 != 2 || r.header.Get("Access-Control-Allow-Origin") != "*" ||
			r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("preflight of %s: got %d %v, want any origin, without credentials", path, r.status, r.header)
		}
		r = w.call(func(r *http.Request) { r.Header.Set("Origin", "https://app.example") }, "GET", path, "")
		if r.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("GET %s: Access-Control-Allow-Origin %q, want even errors to be readable", path,
				r.header.Get("Access-Control-Allow-Origin"))
		}
	}
}
