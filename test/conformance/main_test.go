package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A plan is a certification plan of the OpenID Foundation.
type plan struct {
	name    string // name in the Foundation's suite
	test    string // name of the Go test
	mode    string // response_mode of the requests; "" sends none
	modules []entry
	types   []string // response types of the requests, or names of a [way]; nil means only code
}

// An entry is a module of a plan and its function.
type entry struct {
	name string
	run  func(*module)
	only []string // response types for which the module runs; nil means all of the plan's types
}

// A module is the state of a running module. Its browser has no cookies, so the person has not
// signed in yet.
type module struct {
	*testing.T
	op      *provider
	mode    string
	kind    string // response_type of the requests, or the name of a way
	browser *harness.Browser
	keys    map[string]jose.JSONWebKey // keys of clients that registered themselves, by client
	outcome string                     // passes, or warns or skipped with the reason after it
}

// These are the outcomes of a module that does not fail.
const (
	passes  = "passes"
	warns   = "warning: "
	skipped = "skipped: "
)

// A provider is a server with what the plans' configuration requires: three registered clients and
// a person. It also holds the server's metadata and keys.
type provider struct {
	*harness.Project
	metadata            map[string]any
	keys                jose.JSONWebKeySet
	basic, second, post *harness.Client
	person              harness.Subscriber
	initial             harness.Option // initial access token, if clients register themselves
	banks               map[string][2]bank
}

// logoutURI is the clients' post-logout redirect URI.
const logoutURI = "https://rp.example/post_logout_redirect"

func newProvider(t *testing.T) *provider {
	t.Helper()
	return newProviderOf(t, harness.Shared(t))
}

// said holds the person's claims that are not part of the subscriber's profile, so that no standard
// claim is missing.
var said = map[string]any{
	"email_verified": true, "middle_name": "King", "nickname": "Ada", "preferred_username": "ada",
	"profile": "https://example.com/ada",
	"picture": "https://example.com/ada.png", "website": "https://example.com", "gender": "female",
	"birthdate": "1915-12-10", "locale": "en-GB",
	"phone_number": "+442071234567", "phone_number_verified": true,
	"address": map[string]string{"street_address": "12 St James's Square", "locality": "London", "country": "GB"},
}

// newProviderOf returns a provider on the given server, with additional flags for its clients.
func newProviderOf(t *testing.T, s *harness.Server, flags ...string) *provider {
	t.Helper()
	p := s.NewProject(t)
	op := &provider{Project: p, person: p.NewSubscriber(t)}
	full := harness.JSON(map[string]string{"timezone": "Europe/London"})
	p.Do(t, "PUT", "/api/fabric/resources/subscribers/"+op.person.ID, p.Basic(), full).Want(t, 200)
	keeper := harness.Basic(p.ID, p.NewKey(t, "Voice", "Management"))
	p.Do(t, "PUT", "/api/fabric/resources/subscribers/"+op.person.ID+"/claims", keeper,
		harness.JSON(said)).Want(t, 200)
	// The plans send a code challenge only where they test it.
	register := func(method string) *harness.Client {
		all := []string{"--pkce", "optional", "--auth-method", method, "--post-logout-redirect-uri",
			logoutURI, "--access-token", "jwt", "--scope", "openid,profile,email,address,phone,offline_access"}
		return p.NewClient(t, "web", append(all, flags...)...)
	}
	op.basic, op.second, op.post =
		register("client_secret_basic"), register("client_secret_basic"), register("client_secret_post")

	op.metadata = p.Get(t, "/.well-known/openid-configuration").Want(t, 200).Object(t)
	p.Get(t, op.endpoint(t, "jwks_uri")).Want(t, 200).Read(t, &op.keys)
	return op
}

// endpoint returns the URL of an endpoint from the metadata.
func (op *provider) endpoint(t harness.T, name string) string {
	t.Helper()
	u, _ := op.metadata[name].(string)
	if u == "" {
		t.Fatalf("the metadata has no endpoint %s", name)
	}
	return u
}

// offers reports whether the given list in the metadata contains a value.
func (op *provider) offers(list, value string) bool {
	values, _ := op.metadata[list].([]any)
	for _, v := range values {
		if v == value {
			return true
		}
	}
	return false
}

// run runs every module of the plan, and compares the outcome of each with docs/openid.md.
func (p plan) run(t *testing.T, op *provider) {
	t.Parallel()
	if t.Name() != p.test {
		t.Errorf("the plan %s is run by %s, but docs/openid.md names %s", p.name, t.Name(), p.test)
	}

	page := readPage(t)
	for _, e := range p.modules {
		if p.types == nil {
			t.Run(e.name, p.module(e, op, "code", page.state(e.name)))
			continue
		}
		for _, kind := range p.types {
			if e.only == nil || slices.Contains(e.only, kind) {
				t.Run(e.name+"/"+strings.ReplaceAll(kind, " ", "+"), p.module(e, op, kind, page.state(e.name)))
			}
		}
	}
}

// module returns a test that runs a module for a response type. state is the module's outcome in
// docs/openid.md.
func (p plan) module(e entry, op *provider, kind, state string) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		m := &module{
			T:       t,
			op:      op,
			mode:    p.mode,
			kind:    kind,
			browser: op.Browser(),
			outcome: passes,
			keys:    make(map[string]jose.JSONWebKey),
		}
		e.run(m)
		if !t.Failed() && state != m.outcome {
			t.Errorf("docs/openid.md has the outcome %q for this module, but it was %q", state, m.outcome)
		}
	}
}

// warn records that the suite would warn about something.
func (m *module) warn(format string, args ...any) { m.outcome = warns + fmt.Sprintf(format, args...) }

// skip records that the suite would end the module, because the provider does not offer the feature
// that the module tests.
func (m *module) skip(format string, args ...any) { m.outcome = skipped + fmt.Sprintf(format, args...) }

// check fails the module unless ok.
func (m *module) check(ok bool, format string, args ...any) {
	m.Helper()
	if !ok {
		m.Errorf(format, args...)
	}
}

// only returns an error if members contains a name that is not in names.
func only[V any](members map[string]V, names ...string) error {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	for name := range members {
		if !known[name] {
			return fmt.Errorf("%q is not one of %q", name, names)
		}
	}
	return nil
}
