package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/selvage/selvage/openapi/openapitest"
	"github.com/selvage/selvage/test/harness"
)

// The OpenAPI document is the table of rights. For each operation, it lists the kinds of
// credentials that the operation accepts (security), and the scopes of which these credentials need
// one (x-scopes). The tests in this file send each kind of credentials to each operation and
// compare the result with the table.

// An operation is a row of the table.
type operation struct {
	method, path string
	accepts      []string // kinds of credentials: basic, service, login, sat, guest, invite, none
	of           *openapi3.Operation
	example      any // example body; nil if the operation has none
}

func (o operation) String() string { return o.method + " " + o.path }

// operations returns the operations in the table. It omits pages and the endpoints that
// authenticate OAuth clients, because they do not depend on the rights of a project or a
// subscriber.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	for path, item := range openapitest.Ours().Paths.Map() {
		prefixes := openapitest.Prefixes(item)
		for method, op := range item.Operations() {
			for _, prefix := range prefixes {
				o := operation{
					method:  method,
					path:    prefix + path,
					accepts: openapitest.Accepted(op),
					of:      op,
					example: exampleOf(op),
				}
				if len(o.accepts) > 0 && !slices.Contains(o.accepts, "client") &&
					!strings.HasPrefix(o.path, "/oauth/") {
					all = append(all, o)
				}
			}
		}
	}

	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.String(), b.String()) })
	if len(all) < 150 {
		t.Fatalf("the table has only %d operations", len(all))
	}
	return all
}

// exampleOf returns the example of an operation's JSON body, or nil.
func exampleOf(op *openapi3.Operation) any {
	if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	return op.RequestBody.Value.Content["application/json"].Example
}

// A credentials value holds credentials of one kind for a project.
type credentials struct {
	name   string
	kind   string   // kind in the table, or "" for credentials that no operation accepts
	scopes []string // scopes of keys, services and logins
	send   []harness.Option

	// Returns a DPoP proof for a request; nil if none is needed.
	prove func(method, path string) harness.Option
}

// options returns the credentials for a request.
func (c credentials) options(method, path string) []harness.Option {
	if c.prove == nil {
		return c.send
	}
	return append(slices.Clone(c.send), c.prove(method, path))
}

// may reports whether the table permits the credentials to use an operation.
func (c credentials) may(o operation) bool {
	if slices.Contains(o.accepts, "none") {
		return true
	}
	if !slices.Contains(o.accepts, c.kind) {
		return false
	}

	scoped := c.kind == "basic" || c.kind == "service" || c.kind == "login"
	return !scoped || openapitest.MayUse(o.of, c.scopes...)
}

// isRefused reports whether a response refuses the credentials. A login that may read recordings is
// authenticated, but may not change them. Operations that change recordings therefore return 403 to
// it.
func (c credentials) isRefused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden && c.kind == "login"
}

// allScopes lists the scopes of keys and clients.
var allScopes = []string{"Voice", "Messaging", "Fax", "Video", "Management", "Numbers", "Chat", "Storage", "Tasking",
	"Datasphere", "Pubsub"}

// eachCredentials returns credentials of every kind: keys and services with each scope alone and
// with all scopes, tokens of subscribers and guests, and credentials that no operation accepts.
func eachCredentials(t *testing.T, p *harness.Project) (all []credentials) {
	t.Helper()
	add := func(name, kind string, scopes []string, send ...harness.Option) {
		all = append(all, credentials{name: name, kind: kind, scopes: scopes, send: send})
	}

	sealed := p.NewClient(t, "service", "--scope", strings.Join(allScopes, ","))
	jwt := p.NewClient(t, "service", "--access-token", "jwt", "--scope", strings.Join(allScopes, ","))
	tokenOf := func(c *harness.Client, scopes []string) harness.Option {
		form := clientCredentials()
		form.Set("scope", strings.Join(scopes, " "))
		response := c.Token(t, form).Want(t, 200)
		return harness.Bearer(fmt.Sprint(response.Object(t)["access_token"]))
	}

	sets := [][]string{allScopes, {"Management", "Voice"}}
	for _, scope := range allScopes {
		sets = append(sets, []string{scope})
	}
	for _, scopes := range sets {
		name := strings.Join(scopes, "+")
		add("a key with "+name, "basic", scopes, harness.Basic(p.ID, p.NewKey(t, scopes...)))
		add("a service with "+name, "service", scopes, tokenOf(sealed, scopes))
		add("a service by JWT with "+name, "service", scopes, tokenOf(jwt, scopes))
	}

	sat := p.NewSAT(t, "ada")
	address := p.Address(t, sat.SubscriberID)
	guest := p.NewGuest(t, address)
	add("a SAT", "sat", nil, harness.Bearer(sat.Token))
	add("a guest token", "guest", nil, harness.Bearer(guest.Token))
	add("an invite", "invite", nil, harness.Bearer(p.NewInvite(t, sat.Token, address)))
	add("a refresh token", "", nil, harness.Bearer(sat.RefreshToken))
	add("a guest's refresh token", "", nil, harness.Bearer(guest.RefreshToken))

	spa := p.NewClient(t, "spa", "--first-party", "--access-token", "jwt", "--scope", "openid,offline_access,Voice")
	sub := p.NewSubscriber(t)
	voice, _ := spa.SignIn(t, sub, "openid offline_access Voice")
	plain, _ := spa.SignIn(t, sub, "openid")
	add("a login with Voice", "login", []string{"Voice"}, harness.Bearer(voice.AccessToken))
	add("a login without Voice", "login", []string{"openid"}, harness.Bearer(plain.AccessToken))
	add("an ID token", "", nil, harness.Bearer(voice.IDToken))
	add("an OAuth refresh token", "", nil, harness.Bearer(voice.RefreshToken))

	embed := p.CLI(t, "", "token", "embed", "--address", address, "--project", p.ID)
	embedKey := fmt.Sprint(embed["key"])
	add("an embed key", "", nil, harness.Bearer(embedKey))
	add("an embed key as a password", "", nil, harness.Basic(p.ID, embedKey))

	foreignKey := project(t).NewKey(t, allScopes...)
	add("another project's key", "", nil, harness.Basic(p.ID, foreignKey))
	add("a key as a token", "", nil, harness.Bearer(p.NewKey(t, allScopes...)))

	revoked := p.CLI(t, "", "key", "create", "--project", p.ID, "--scope", "Voice", "--scope", "Management")
	p.Command(t, "", "key", "revoke", fmt.Sprint(revoked["id"]))
	add("a revoked key", "", nil, harness.Basic(p.ID, fmt.Sprint(revoked["key"])))
	add("nothing", "", nil)
	return append(append(all, boundCredentials(t, p)...), otherCredentials(t, p)...)
}

// boundCredentials returns tokens that are bound to a key. One comes with the proof that it needs.
// The others come with no proof, with a proof by another key, or with a proof for another request,
// or are sent as Bearer tokens.
func boundCredentials(t *testing.T, p *harness.Project) (all []credentials) {
	t.Helper()
	owner, thief := harness.NewHolder(t, p.Issuer()), harness.NewHolder(t, p.Issuer())
	c := p.NewClient(t, "service", "--scope", strings.Join(allScopes, ","), "--dpop-bound-access-tokens")
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {strings.Join(allScopes, " ")}}
	var got harness.Tokens
	p.Post(t, "/oauth/token", append(c.Authenticated(form), owner.Proof("POST", "/oauth/token", "", ""))...).
		Want(t, 200).Read(t, &got)

	token, dpop := got.AccessToken, harness.Header("Authorization", "DPoP "+got.AccessToken)
	by := func(h harness.Holder) func(method, path string) harness.Option {
		return func(method, path string) harness.Option {
			path, _, _ = strings.Cut(path, "?")
			return h.Proof(method, path, token, "")
		}
	}

	return []credentials{
		{name: "a bound token", kind: "service", scopes: allScopes, send: []harness.Option{dpop}, prove: by(owner)},
		{name: "a bound token as Bearer", send: []harness.Option{harness.Bearer(token)}},
		{
			name:  "a bound token as Bearer with a proof",
			send:  []harness.Option{harness.Bearer(token)},
			prove: by(owner),
		},
		{name: "a bound token without a proof", send: []harness.Option{dpop}},
		{name: "a bound token with a thief's proof", send: []harness.Option{dpop}, prove: by(thief)},
		{name: "a bound token with a proof for another request",
			send: []harness.Option{dpop, owner.Proof("GET", "/oauth/userinfo", token, "")}},
	}
}

// otherCredentials returns credentials for other purposes: ingest keys, registration tokens, SIP
// passwords and client secrets. No operation in the table accepts them.
func otherCredentials(t *testing.T, p *harness.Project) (all []credentials) {
	t.Helper()
	manager := harness.Basic(p.ID, p.NewKey(t, "Management", "Voice"))
	made := func(path string) string {
		token, _ := p.Post(t, path, manager, harness.JSON(map[string]any{"name": "table"})).Want(t, 201).
			Object(t)["token"].(string)
		if token == "" {
			t.Fatalf("POST %s returned no token", path)
		}
		return token
	}

	p.CLI(t, "", "project", "update", p.ID, "--client-registration", "token")
	initial := made("/api/project/registration_tokens")
	registered := p.Post(t, "/oauth/register", harness.Bearer(initial), harness.JSON(map[string]any{
		"redirect_uris": []string{"https://app.example/cb"}})).Want(t, 201).Object(t)
	const sip = "granite-otter-nine"
	p.Post(t, "/api/fabric/resources/sip_endpoints", p.Basic(), harness.JSON(map[string]any{
		"username":     "table",
		"password":     sip,
		"call_handler": "passthrough",
	})).Want(t, 201)
	service := p.NewClient(t, "service", "--scope", strings.Join(allScopes, ","))

	for name, secret := range map[string]string{
		"an ingest key":                made("/api/project/ingest_keys"),
		"an initial access token":      initial,
		"a registration access token":  fmt.Sprint(registered["registration_access_token"]),
		"a SIP password":               sip,
		"a client's secret":            service.Secret,
		"a registered client's secret": fmt.Sprint(registered["client_secret"]),
	} {
		all = append(all, credentials{name: name + " as a token", send: []harness.Option{harness.Bearer(secret)}},
			credentials{name: name + " as a key", send: []harness.Option{harness.Basic(p.ID, secret)}})
	}

	for user, secret := range map[string]string{service.ID: service.Secret, "table": sip} {
		all = append(all, credentials{name: user + " with its secret",
			send: []harness.Option{harness.Basic(user, secret)}})
	}
	return all
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// fill replaces each parameter of a path with the result of ids. If the result is empty, fill uses
// an unknown ID.
func fill(path string, ids func(parameter string) string) string {
	return inPath.ReplaceAllStringFunc(path, func(m string) string {
		if id := ids(strings.Trim(m, "{}")); id != "" {
			return id
		}
		return uuid.NewString()
	})
}

// TestK09Rights sends every kind of credentials to every operation, for objects that do not exist.
// The operations accept exactly the credentials that the table permits.
func TestK09Rights(t *testing.T) {
	p := limited(t, "API_REQUESTS=0", "API_WRITES=0", "MEDIA_MISSES_PER_NETWORK=0", "LOGIN_PER_NETWORK=0")
	everyone, table := eachCredentials(t, p), operations(t)

	// Most IDs are unknown, so that no operation revokes the credentials that the test uses.
	ids := func(parameter string) string {
		if parameter == "AccountSid" {
			return p.ID
		}
		return ""
	}

	var all sync.WaitGroup
	requests := make(chan func())
	for range 4 {
		all.Go(func() {
			for ask := range requests {
				ask()
			}
		})
	}

	for _, o := range table {
		for _, c := range everyone {
			requests <- func() {
				path := fill(o.path, ids)
				a, err := p.TryPatiently(o.method, path, append(c.options(o.method, path), body(o))...)
				if err != nil {
					t.Errorf("%s with %s: %v", o, c.name, err)
					return
				}
				if c.isRefused(a.Status) == c.may(o) || a.Status >= 500 {
					t.Errorf("%s with %s returned %d; permitted by the table: %v", o, c.name, a.Status,
						c.may(o))
				}
			}
		}
	}

	close(requests)
	all.Wait()
	t.Logf("%d operations, %d kinds of credentials, %d requests", len(table), len(everyone), len(table)*len(everyone))
}

// body returns a body that changes nothing: an empty object or, for uploads, bytes that are not
// audio.
func body(o operation) harness.Option {
	if strings.Contains(o.path, "/Accounts/") {
		return harness.Body("application/octet-stream", []byte("not audio"))
	}
	return harness.JSON("{}")
}
