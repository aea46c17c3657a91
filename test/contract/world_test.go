package contract

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/selvage/selvage/openapi/openapitest"
	"github.com/selvage/selvage/test/harness"
)

// A world is a project with one object of every kind that operations need, and the credentials of
// another project, which must not see the objects.
type world struct {
	*harness.Project
	doc     *openapitest.Document
	tag     map[string]string                    // name of the group to which a tag belongs, by tag
	who     map[string]harness.Option            // credentials by security scheme
	foreign map[string]harness.Option            // credentials of the other project
	weak    harness.Option                       // key whose scope permits nothing
	small   harness.Option                       // key with only the scope Management
	values  map[string]func(t *testing.T) string // creates a real value, by the example value that it replaces
	fixed   map[string]fixture                   // fixtures by operation ID
}

// A fixture is a path and body for those calls of an operation that change nothing. It is created
// once, and all these calls use it.
type fixture struct {
	path string
	body []byte
}

var everyScope = append(slices.Clone(harness.APIScopes), "Management")

func newWorld(t *testing.T) *world {
	t.Helper()
	s := harness.Shared(t)
	w := &world{Project: s.NewProject(t), tag: make(map[string]string), fixed: make(map[string]fixture)}
	other := s.NewProject(t)
	w.who, w.foreign = w.credentials(t), (&world{Project: other}).credentials(t)
	w.weak, w.small = harness.Basic(w.ID, w.NewKey(t, "Numbers")), harness.Basic(w.ID, w.NewKey(t, "Management"))

	var err error
	if w.doc, err = openapitest.Load(s.Get(t, "/docs/openapi.yaml").Want(t, 200).Body); err != nil {
		t.Fatal(err)
	}

	groups, _ := w.doc.Extensions["x-tagGroups"].([]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		tags, _ := group["tags"].([]any)
		for _, tag := range tags {
			w.tag[tag.(string)] = group["name"].(string)
		}
	}
	w.values = w.newValues()
	return w
}

// credentials returns a credential for each security scheme.
func (w *world) credentials(t *testing.T) map[string]harness.Option {
	t.Helper()
	key := w.NewKey(t, everyScope...)
	var flags []string
	for _, scope := range everyScope {
		flags = append(flags, "--scope", scope)
	}
	service := w.NewClient(t, "service", flags...)
	var tokens harness.Tokens
	service.Token(t, url.Values{"grant_type": {"client_credentials"},
		"scope": {strings.Join(everyScope, " ")}}).Want(t, 200).Read(t, &tokens)

	sat := w.NewSAT(t, "ada")
	address := w.Address(t, sat.SubscriberID)

	return map[string]harness.Option{
		"basic":   harness.Basic(w.ID, key),
		"service": harness.Bearer(tokens.AccessToken),
		"sat":     harness.Bearer(sat.Token),
		"guest":   harness.Bearer(w.NewGuest(t, address).Token),
		"invite":  harness.Bearer(w.NewInvite(t, sat.Token, address)),
	}
}

// newValues returns functions that create real values for the example values.
func (w *world) newValues() map[string]func(t *testing.T) string {
	subscriber := func(t *testing.T) string { return w.NewSAT(t, "ada").SubscriberID }
	return map[string]func(t *testing.T) string{
		"0f6d2f34-1c55-4f0b-bb0e-5a1c6a3d7e12": func(t *testing.T) string { return w.Address(t, subscriber(t)) },
		"5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13": func(t *testing.T) string { return w.create(t, "SWML scripts") },
		"9a4e6d1b-2c3f-4a5e-8b7d-6c5e4f3a2b14": func(t *testing.T) string { return w.create(t, "SIP addresses") },
		"d4f0c3b2-a1e9-4d8c-b7f6-5a4e3d2c1b17": func(t *testing.T) string { return w.create(t, "SIP endpoints") },
		"eyJhbGciOiJkaXIi…":                    func(t *testing.T) string { return w.NewSAT(t, "ada").RefreshToken },
		"c2c_7acc0e5e968706a032983cd80cdca219": func(t *testing.T) string {
			made := w.CLI(t, "", "token", "embed", "--address", w.Address(t, subscriber(t)))
			return made["token"].(string)
		},
		// Nothing must be sent to a real host.
		"example.com/hooks": func(*testing.T) string { return "hooks.invalid/fabric" },
		"grace@example.com": func(*testing.T) string { return unique("grace") + "@example.com" },
		"alan@example.com":  func(*testing.T) string { return unique("alan") + "@example.com" },
		`"Acme ID"`:         func(*testing.T) string { return `"` + unique("Acme ID ") + `"` },
		`"support"`:         func(*testing.T) string { return `"` + unique("support") + `"` },
		`"grace-desk"`:      func(*testing.T) string { return `"` + unique("phone") + `"` },
		"+4930123456":       func(*testing.T) string { return unique("+49301234") },
	}
}

var serial atomic.Int64

func unique(name string) string { return name + strconv.FormatInt(serial.Add(1), 10) }

// An operation is an operation of the OpenAPI document.
type operation struct {
	*openapi3.Operation
	method, path string // path below the server, with parameters in braces
}

// operations returns the operations of the groups, sorted by ID.
func (w *world) operations(groups ...string) (all []operation) {
	for path, item := range w.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if slices.Contains(groups, w.tag[op.Tags[0]]) {
				all = append(all, operation{
					Operation: op,
					method:    method,
					path:      openapitest.Prefixes(item)[0] + path,
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// body returns the example body of an operation, with real values instead of the example values. It
// returns nil if the operation has no body.
func (w *world) body(t *testing.T, op operation) []byte {
	t.Helper()
	text := openapitest.Example(op.Operation)
	for value, create := range w.values {
		if bytes.Contains(text, []byte(value)) {
			text = bytes.ReplaceAll(text, []byte(value), []byte(create(t)))
		}
	}

	switch {
	case op.OperationID == "rotateSigningKey":
		return []byte(`{"overlap":0}`) // without overlap, the next rotation need not wait
	case w.tag[op.Tags[0]] == "Kinds of resources":
		return renamed(t, text)
	}
	return text
}

// bodyFor is like body, but for one security scheme. With the scheme sat, a message goes from one
// subscriber to another, because nobody can write to themselves.
func (w *world) bodyFor(t *testing.T, op operation, scheme string) []byte {
	t.Helper()
	text := w.body(t, op)
	if op.Tags[0] != "Messages" || scheme != "sat" {
		return text
	}
	own, other := w.NewSAT(t, "ada"), w.NewSAT(t, "grace")
	return bytes.ReplaceAll(text, []byte(w.Address(t, own.SubscriberID)), []byte(w.Address(t, other.SubscriberID)))
}

// fixture returns the path and body of an operation's fixture, for calls that only read or that are
// refused. Calls that change something use a new subject; see [world.subject].
func (w *world) fixture(t *testing.T, op operation) (path string, body []byte) {
	t.Helper()
	f, ok := w.fixed[op.OperationID]
	if !ok {
		f = fixture{w.subject(t, op), w.body(t, op)}
		w.fixed[op.OperationID] = f
	}
	return f.path, f.body
}

// renamed returns an example with new names, because resources of the same type must have different
// names.
func renamed(t *testing.T, text []byte) []byte {
	t.Helper()
	if text == nil {
		return nil
	}
	all := members(t, text)
	for _, name := range []string{"name", "display_name", "friendly_name", "title", "username"} {
		if _, ok := all[name]; ok {
			all[name] = []byte(`"` + unique(name) + `"`)
		}
	}

	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask sends a request to an operation. If body is nil, the request has no body.
func (w *world) ask(t *testing.T, op operation, who harness.Option, path string, body []byte) harness.Answer {
	t.Helper()
	opts := []harness.Option{who}
	if body != nil {
		opts = append(opts, harness.Body("application/json", body))
	}
	return w.Do(t, op.method, path, opts...)
}

// nobody returns an option that sends no credentials.
func nobody() harness.Option { return harness.Header("Accept", "*/*") }

// create creates an object of the kind that a tag names, and returns its ID. It calls the operation
// with this tag that creates objects, with the example body. If there is no such operation, it uses
// the command line.
func (w *world) create(t *testing.T, tag string) string {
	t.Helper()
	for _, op := range w.operations(w.tag[tag]) {
		if op.Tags[0] == tag && op.method == "POST" && !strings.Contains(op.path, "{") {
			return id(t, w.ask(t, op, w.who["basic"], op.path, w.body(t, op)).Want(t, 200, 201))
		}
	}

	kind := strings.ToLower(strings.ReplaceAll(tag, " ", "_"))
	text, err := os.ReadFile(filepath.Join("..", "..", "fabric", "kinds", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}

	var file struct{ Examples []json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}

	example := filepath.Join(t.TempDir(), "example.json")
	if err := os.WriteFile(example, renamed(t, file.Examples[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	made := w.CLI(t, "", "resource", "create", kind, example, "--project", w.ID)
	return made["id"].(string)
}

func id(t *testing.T, a harness.Answer) string {
	t.Helper()
	found, _ := a.Object(t)["id"].(string)
	if found == "" {
		t.Fatalf("%s has no member id", a.Body)
	}
	return found
}
