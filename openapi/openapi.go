// Package openapi puts together the OpenAPI document of the HTTP APIs, which
// docs/openapi.yaml is, /docs shows and tests hold every response against.
//
// What is written by hand is in the folder source, a file an area, in OpenAPI
// with the shortcuts below; what belongs to the kinds of resources comes from
// their schemas in fabric/kinds. An operation that is new goes into the file of
// its area; then
//
//	go test ./openapi -update
//
// writes docs/openapi.yaml. A route that is in no file fails the tests.
//
// A file says its group in the navigation, the shape of its errors (fabric, laml,
// oauth) and its servers (public, auth, laml); {public_url} and {auth_url} stand for
// the addresses of the server. The shortcuts of an operation are:
//
//	who: [basic, service]              the security schemes, one of them; none stands for nobody
//	scopes: [Voice]                    one of which it takes; the fabric's any four unless they are said
//	pages: true                        the parameters of a page of a list
//	takes: {schema: X, example: {…}}   the JSON of its body; with form: true a form too, with optional: true may be left out
//	form: {name: text}                 the fields of a form that is its body, required: of them, example: of them
//	uploads: true                      the body is a file, or a form with one
//	ids: {id: text}                    what parameters of the path are; of a whole file at its top
//	fails: [403]                       failures beside those that follow from the above
//
// and those of a response:
//
//	gives: X                           the JSON schema of its body
//	lists: X                           the fabric's page of them
//
// Schemas are joined by merging (<<) their properties, not by allOf: tests allow no
// members of an object but those in its own properties.
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

// A Config says what the document is about.
type Config struct {
	Kinds     *kinds.Catalog // nil means those of selvage
	PublicURL string         // "" means http://localhost:8080
	AuthURL   string         // "" means PublicURL
}

// A Document is an OpenAPI document. It is not changed once it is made.
type Document struct {
	root *yaml.Node
}

// areas are the files with operations, in the order of the document. The kinds
// come after the resources.
var areas = []string{"tokens", "subscribers", "held", "addresses", "resources", kindsArea, "sip", "webhooks",
	"clients", "logouts", "audit", "recordings", "native", "identity", "keys"}

const kindsArea = "kinds"

// Build puts the document together.
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

// YAML writes the document.
func (d *Document) YAML() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(d.root); err != nil {
		return nil, fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	return out.Bytes(), nil
}

// What stands for the addresses of the server in the sources. OAuth's endpoints are
// where people log in.
const (
	publicURL = "{public_url}"
	authURL   = "{auth_url}"
)

// relocate puts the addresses of the server in their place.
func relocate(root *yaml.Node, c Config) {
	if c.PublicURL == "" {
		c.PublicURL = "http://localhost:8080"
	}
	if c.AuthURL == "" {
		c.AuthURL = c.PublicURL
	}
	replace(root, strings.NewReplacer(publicURL, c.PublicURL, authURL, c.AuthURL))
}

// replace replaces in all values of a node.
func replace(n *yaml.Node, with *strings.Replacer) {
	n.Value = with.Replace(n.Value)
	for _, child := range n.Content {
		replace(child, with)
	}
}
