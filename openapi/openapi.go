// Package openapi builds the OpenAPI document of the HTTP APIs. docs/openapi.yaml is a copy of it,
// /docs shows it, and tests check every response against it.
//
// The folder source contains the parts that are written manually, one file per area, in OpenAPI
// with the shortcuts below. The parts about kinds of resources are generated from their schemas in
// fabric/kinds. Add a new operation to the file of its area; then
//
//	go test ./openapi -update
//
// writes docs/openapi.yaml. Tests fail if no file contains a route of the server.
//
// A file names its group in the navigation, the shape of its errors (fabric, laml, relay, oauth)
// and its servers (public, auth, laml). {public_url} and {auth_url} stand for the addresses of the
// server. The shortcuts in an operation are:
//
//	who: [basic, service]              accepted security schemes; "none" means no credentials
//	scopes: [Voice]                    one of these is needed; default: any scope of the fabric
//	also: [Voice]                      all of these are needed in addition
//	pages: true                        adds the parameters of a paginated list
//	takes: {schema: X, example: {…}}   the JSON body; form: true also accepts forms, optional: true allows no body
//	form: {name: text}                 the fields of a form body; required: and example: apply to them
//	uploads: true                      the body is a file, or a form with a file
//	ids: {id: text}                    descriptions of path parameters; at the top of a file for all operations
//	fails: [403]                       failures in addition to those that follow from the above
//
// The shortcuts in a response are:
//
//	gives: X                           the JSON schema of the body
//	lists: X                           a page of X, as in the fabric API
//
// Schemas are combined by merging (<<) their properties, not by allOf: tests reject members of an
// object that are not in its own properties.
package openapi

import (
	"bytes"
	"embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric/kinds"
)

//go:embed source
var sources embed.FS

// A Config describes the server whose API is documented.
type Config struct {
	Kinds     *kinds.Catalog // nil means the built-in kinds
	PublicURL string         // "" means http://localhost:8080
	AuthURL   string         // "" means PublicURL
}

// A Document is an OpenAPI document. It is immutable.
type Document struct {
	root *yaml.Node
}

// areas lists the files with operations, in the order of the document. The kinds are inserted after
// the resources.
var areas = []string{"tokens", "subscribers", "held", "addresses", "resources", kindsArea, "sip", "rooms",
	"messages", "upstreams", "webhooks", "clients", "logouts", "audit", "calls", "recordings", "ingest", "native",
	"identity", "keys"}

const kindsArea = "kinds"

// Build builds the document.
func Build(c Config) (*Document, error) {
	if c.Kinds == nil {
		c.Kinds = kinds.Builtin()
	}

	root, err := read("base.yaml")
	if err != nil {
		return nil, err
	}

	b := builder{root: root, used: make(map[string]bool), taken: make(map[string]bool)}
	b.note(namesIn(get(root, "components")))
	// Collect all names first, so that the names of kinds also avoid names in later areas.
	files := make(map[string]*yaml.Node)
	for _, name := range areas {
		if name == kindsArea {
			continue
		}
		if files[name], err = read(name + ".yaml"); err != nil {
			return nil, err
		}
		b.note(namesIn(files[name]))
	}

	for _, name := range areas {
		if name == kindsArea {
			err = b.addKinds(c.Kinds)
		} else {
			err = b.add(files[name])
		}
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", name, err)
		}
	}

	b.finish()
	relocate(b.root, c)
	return &Document{b.root}, nil
}

// YAML returns the document as YAML.
func (d *Document) YAML() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(d.root); err != nil {
		return nil, fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	return out.Bytes(), nil
}

// These are the placeholders in the sources for the addresses of the server. The OAuth endpoints
// are on the host on which users sign in.
const (
	publicURL = "{public_url}"
	authURL   = "{auth_url}"
)

// relocate replaces the placeholders with the addresses of the server.
func relocate(root *yaml.Node, c Config) {
	if c.PublicURL == "" {
		c.PublicURL = "http://localhost:8080"
	}
	if c.AuthURL == "" {
		c.AuthURL = c.PublicURL
	}
	replace(root, strings.NewReplacer(publicURL, c.PublicURL, authURL, c.AuthURL))
}

// replace applies a replacer to all values in a node and below it.
func replace(n *yaml.Node, with *strings.Replacer) {
	n.Value = with.Replace(n.Value)
	for _, child := range n.Content {
		replace(child, with)
	}
}
