package oidc_test

import (
	"context"
	"crypto"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestManageRegistration shows that a client can read, replace and delete its registration, and
// that nobody else can.
func TestManageRegistration(t *testing.T) {
	w := newWorld(t)
	initial := w.initialToken()
	created := w.registerClient(initial, appMetadata(metadata{
		"token_endpoint_auth_method": "none",
		"contacts":                   []string{"a@b.example"},
	}))
	other := w.registerClient(initial, appMetadata(nil))
	path, token := registerPath+"/"+text(created["client_id"]), text(created["registration_access_token"])

	read := w.send("GET", path, token, nil)
	if !maps.EqualFunc(read.json(t), created, func(a, b any) bool { return text(a) == text(b) }) {
		t.Errorf("reading the registration: %s, want %v", read.body, created)
	}

	for _, wrong := range []string{"", initial, text(other["registration_access_token"]), token + "x"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			got := w.send(method, path, wrong, appMetadata(metadata{"client_id": created["client_id"]}))
			wantStatus(t, method+" with the token "+wrong, got, http.StatusUnauthorized)
		}
	}

	own, _ := w.client(nil) // a client that an operator created cannot be managed this way
	for _, token := range []string{"", token} {
		got := w.send("GET", registerPath+"/"+own.ID, token, nil)
		wantStatus(t, "reading a client that an operator created", got, http.StatusUnauthorized)
	}

	for member, body := range map[string]metadata{
		"client_id":     appMetadata(nil),
		"client_secret": appMetadata(metadata{"client_id": created["client_id"], "client_secret": "wrong"}),
		"redirect_uris": {"client_id": created["client_id"]},
	} {
		got := w.send("PUT", path, token, body)
		wantStatus(t, "replacing the metadata with a wrong "+member, got, http.StatusBadRequest)
		wantText(t, "replacing the metadata with a wrong "+member, got, member)
	}

	change := appMetadata(metadata{"client_id": created["client_id"], "client_name": "Owl"})
	replaced := w.send("PUT", path, token, change).json(t)
	if replaced["client_name"] != "Owl" {
		t.Errorf("after the replacement, the client_name is %v, want Owl", replaced["client_name"])
	}
	if replaced["contacts"] != nil {
		t.Errorf("after a replacement without contacts, the contacts are %v, want none", replaced["contacts"])
	}
	clientSecret := text(replaced["client_secret"])
	c := w.clientOf(created)
	if c.Name != "Owl" {
		t.Errorf("after the replacement, the client has the name %q, want Owl", c.Name)
	}
	if c.AuthMethod != idp.AuthBasic {
		t.Errorf("after the replacement, the client authenticates with %s, want %s", c.AuthMethod, idp.AuthBasic)
	}
	if c.Type != idp.Web {
		t.Errorf("after the replacement, the client has the type %s, want %s", c.Type, idp.Web)
	}
	if !c.HasSecret(clientSecret, w.now()) {
		t.Errorf("the client does not have the secret %q of the response", clientSecret)
	}

	tokens := w.tokensOf(c, clientSecret)
	wantStatus(t, "deleting", w.send("DELETE", path, token, nil), http.StatusNoContent)
	info := w.userinfo(text(tokens["access_token"]))
	wantStatus(t, "userinfo with a token of the deleted client", info, http.StatusUnauthorized)
	wantStatus(t, "reading the deleted client", w.send("GET", path, token, nil), http.StatusUnauthorized)
}

// tokensOf signs ada in to a third-party client with a secret.
func (w *world) tokensOf(c idp.Client, password string) map[string]any {
	w.t.Helper()
	b := w.newBrowser()
	code := b.consent(b.logIn(b.authorize(request(c)), email, secret), "allow").param("code")
	return w.postAs(c.ID, password, "/oauth/token", with(redemption(c, code), "client_id", "")).json(w.t)
}

// failingSecrets is a store that cannot store the secrets of clients.
type failingSecrets struct{ *store.Store }

func (failingSecrets) SetClientSecret(context.Context, idp.Client, string, *fabric.Rights) error {
	return problem.New(problem.Unavailable, "unavailable", "the database is down")
}

// TestSecretAfterFailure shows that a client that changes to an authentication method with a secret,
// but whose secret cannot be stored, gets a secret when it replaces its registration again.
func TestSecretAfterFailure(t *testing.T) {
	w := newWorld(t)
	created := w.registerClient(w.initialToken(), appMetadata(metadata{"token_endpoint_auth_method": "none"}))
	find := func() idp.RegisteredClient {
		c, err := w.idp.Registrations.Authenticate(t.Context(), text(created["client_id"]),
			text(created["registration_access_token"]))
		must(t, err)
		return c
	}
	asked := find().Registered()
	asked.AuthMethod = idp.AuthBasic

	node := w.idp.Config
	node.Store.Clients = failingSecrets{w.rows}
	_, err := idp.New(node).Registrations.Update(t.Context(), find(), asked, "192.0.2.1")
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("replacing while secrets cannot be stored: %v, want Unavailable", err)
	}

	w.pass(time.Second) // the cached client expires
	again, err := w.idp.Registrations.Update(t.Context(), find(), asked, "192.0.2.1")
	must(t, err)
	if again.Secret == "" {
		t.Error("replacing again: no secret, want one")
	}
}

// TestOperatorKeepsScopes shows that a client that replaces its registration may keep the scopes
// that an operator gave it. It cannot give itself other scopes, or scopes that the operator
// removed.
func TestOperatorKeepsScopes(t *testing.T) {
	w := newWorld(t)
	created := w.registerClient(w.initialToken(), appMetadata(nil))
	id, token := text(created["client_id"]), text(created["registration_access_token"])
	for scope, want := range map[string][]string{
		"":                                    {"openid", "Voice"},
		"openid":                              {"openid"},
		"openid Voice":                        {"openid", "Voice"},
		"openid Voice Management":             {"openid", "Voice"},
		"openid profile email offline_access": {"openid"},
	} {
		must(t, w.idp.Clients.Change(t.Context(), id, func(c *idp.Client) {
			c.Scopes, c.RequireACR = []string{"openid", "Voice"}, "2"
		}))
		w.send("PUT", registerPath+"/"+id, token, appMetadata(metadata{"client_id": id, "scope": scope}))

		c := w.clientOf(created)
		if !slices.Equal(c.Scopes, want) {
			t.Errorf("after a replacement with the scope %q, the client has %q, want %q", scope, c.Scopes, want)
		}
		if c.RequireACR != "2" {
			t.Errorf("after a replacement with the scope %q, the client needs the acr %q, want 2", scope, c.RequireACR)
		}
	}
}

// TestDeleteRegistrationTogether shows that only one of several concurrent requests deletes a
// client. The others get the error for an invalid token.
func TestDeleteRegistrationTogether(t *testing.T) {
	w := newWorld(t)
	created := w.registerClient(w.initialToken(), appMetadata(nil))
	c, err := w.idp.Registrations.Authenticate(t.Context(), text(created["client_id"]),
		text(created["registration_access_token"]))
	must(t, err)

	var requests sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		requests.Go(func() {
			statuses[i] = w.send("DELETE", registerPath+"/"+c.ID, c.AccessToken, nil).status
		})
	}
	requests.Wait()
	slices.Sort(statuses)
	if want := []int{204, 401, 401, 401, 401, 401, 401, 401}; !slices.Equal(statuses, want) {
		t.Errorf("concurrently deleting a client: statuses %v, want %v", statuses, want)
	}

	// This also applies to requests that authenticated before the client was deleted.
	if err := w.idp.Registrations.Delete(t.Context(), c); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("deleting a client that was just deleted: %v, want Unauthenticated", err)
	}
	_, err = w.idp.Registrations.Update(t.Context(), c, c.Registered(), "192.0.2.1")
	if !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("replacing a client that was just deleted: %v, want Unauthenticated", err)
	}
}

// TestRegisterFAPI shows that a client can choose the profile fapi2 when it registers. It then
// completes a flow by the rules of the profile, and cannot change to another profile.
func TestRegisterFAPI(t *testing.T) {
	w := newWorld(t)
	p := party{w: w, kid: "k1", alg: jose.ES256, key: newKey(t, jose.ES256)}
	asked := appMetadata(metadata{
		"profile":                    "fapi2",
		"token_endpoint_auth_method": "private_key_jwt",
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"scope":                      "openid offline_access",
		"jwks":                       keySet(t, "", map[string]crypto.Signer{p.kid: p.key}),
	})
	initial := w.initialToken()
	created := w.registerClient(initial, asked)
	for name, want := range map[string]any{
		"profile":                      "fapi2",
		"id_token_signed_response_alg": "ES256",
		"client_secret":                nil,
	} {
		if created[name] != want {
			t.Fatalf("the %s of the client is %v, want %v", name, created[name], want)
		}
	}

	p.c = w.clientOf(created)
	b := bank{p, w.newHolder()}
	direct := w.newBrowser().authorize(request(b.c))
	wantParam(t, "a request that is not pushed", direct, "error", "invalid_request")
	pushed := b.post(t, "/oauth/par", request(b.c, "scope", "openid offline_access")).json(t)
	br := w.newBrowser()
	consent := br.logIn(br.authorize(reference(b.c, text(pushed["request_uri"]))), email, secret)
	code := br.consent(consent, "allow").param("code")
	if set := b.post(t, "/oauth/token", b.redemption(code)).json(t); set["token_type"] != "DPoP" {
		t.Errorf("the tokens are %v, want DPoP tokens", set)
	}

	for name, change := range map[string]metadata{
		"profile":                      {"profile": "default"},
		"token_endpoint_auth_method":   {"token_endpoint_auth_method": "client_secret_basic"},
		"id_token_signed_response_alg": {"id_token_signed_response_alg": "RS256"},
	} {
		put := metadata{"client_id": created["client_id"]}
		maps.Copy(put, asked)
		maps.Copy(put, change)
		got := w.send("PUT", registerPath+"/"+b.c.ID, text(created["registration_access_token"]), put)
		wantStatus(t, "replacing the "+name, got, http.StatusBadRequest)
		wantText(t, "replacing the "+name, got, name)
	}

	put := metadata{"client_id": created["client_id"]}
	maps.Copy(put, asked)
	delete(put, "profile")
	w.send("PUT", registerPath+"/"+b.c.ID, text(created["registration_access_token"]), put)
	if c := w.clientOf(created); c.Profile != idp.FAPI2 {
		t.Errorf("after a replacement without a profile, the client's profile is %s, want fapi2", c.Profile)
	}

	got := w.send("POST", registerPath, initial, appMetadata(metadata{"profile": "mobile-legacy"}))
	wantStatus(t, "registering with the profile mobile-legacy", got, http.StatusBadRequest)
}
