// Package openapitest holds responses against the OpenAPI document: a status
// that is not documented, or a body of another shape, is a fault of the one or
// the other. It is for tests alone.
//
// It is stricter than the document: an object has no members but those that are
// described, unless the document says that it may.
package openapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/selvage/selvage/openapi"
)

// A Document is one that responses can be held against. It may be used from any
// number of goroutines.
type Document struct {
	*openapi3.T
	paths    []path
	compiler *jsonschema.Compiler
	mu       sync.Mutex                    // of what follows, and the compiler
	compiled map[string]*jsonschema.Schema // by where it stands in the document
}

// Ours returns the document of selvage with its own kinds. That it is valid is a test
// of package openapi, which takes longer than to load it.
var Ours = sync.OnceValue(func() *Document {
	d, err := New(openapi.Config{})
	if err != nil {
		panic(err) // it is tested
	}
	return d
})

// New builds a document.
func New(c openapi.Config) (*Document, error) {
	built, err := openapi.Build(c)
	if err != nil {
		return nil, err
	}
	text, err := built.YAML()
	if err != nil {
		return nil, err
	}
	return Load(text)
}

// Load reads a document.
func Load(text []byte) (*Document, error) {
	t, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	d := &Document{T: t, compiled: make(map[string]*jsonschema.Schema)}
	d.findPaths()
	return d, d.prepare()
}

// Valid reports what is wrong with the document, its examples among it.
func (d *Document) Valid() error {
	return d.T.Validate(context.Background(), openapi3.IsOpenAPI31OrLater())
}

// location names the document to the compiler of schemas.
const location = "openapi:///document.json"

// prepare makes ready to compile schemas, which is done when one is needed.
func (d *Document) prepare() error {
	text, err := d.T.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing as JSON: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading as JSON: %w", err)
	}
	closeObjects(doc)
	d.compiler = jsonschema.NewCompiler()
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	return d.compiler.AddResource(location, doc)
}

// closeObjects refuses members that are not described.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, described := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; described && !said && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			closeObjects(member)
		}
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	}
}

// schema returns the compiled schema at a place of the document.
func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(location + "#" + pointer)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", pointer, err)
	}
	d.compiled[pointer] = s
	return s, nil
}

// Check reports how a response differs from what is documented. What the document
// does not describe, such as pages, is not looked at.
func (d *Document) Check(method, target string, status int, header http.Header, body []byte) error {
	found, ok := d.find(target)
	if !ok || method == http.MethodOptions {
		return nil
	}
	wanted := method
	if method == http.MethodHead {
		wanted = http.MethodGet
	}
	op := found.item.GetOperation(wanted)
	switch {
	case status == http.StatusMethodNotAllowed:
		return nil
	case op == nil && (status == http.StatusUnauthorized || status == http.StatusNotFound):
		return nil // as of any path that is not there
	case op == nil:
		return fmt.Errorf("%s %s answered %d, and the document has no such operation of %s", method, target,
			status, found.name)
	}
	response := op.Responses.Status(status)
	if response == nil {
		return fmt.Errorf("%s (%s) answered %d, which is not documented: %.300s", op.OperationID, target,
			status, body)
	}
	if err := checkHeaders(response.Value, header); err != nil {
		return fmt.Errorf("%s (%s) answered %d: %w", op.OperationID, target, status, err)
	}
	if method == http.MethodHead {
		return nil
	}
	if err := d.checkBody(pointerTo(found.name, wanted, status, response.Ref), response.Value, header, body); err != nil {
		return fmt.Errorf("%s (%s) answered %d with a body that is not documented: %w: %.600s",
			op.OperationID, target, status, err, body)
	}
	return nil
}

func pointerTo(path, method string, status int, ref string) string {
	if ref != "" {
		return strings.TrimPrefix(ref, "#")
	}
	return fmt.Sprintf("/paths/%s/%s/responses/%d", escape(path), strings.ToLower(method), status)
}

// escape writes a key as a step of a JSON pointer in a URL's fragment.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B", " ", "%20").Replace(key)
}

func checkHeaders(r *openapi3.Response, header http.Header) error {
	for name, h := range r.Headers {
		if h.Value.Required && header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	return nil
}

// checkBody holds a body against the schema of its type.
func (d *Document) checkBody(pointer string, r *openapi3.Response, header http.Header, body []byte) error {
	if len(r.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("there should be none")
		}
		return nil
	}
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	media := r.Content[kind]
	if media == nil {
		return fmt.Errorf("its type is %q", kind)
	}
	if !strings.HasSuffix(kind, "json") || media.Schema == nil {
		return nil
	}
	s, err := d.schema(pointer + "/content/" + escape(kind) + "/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// Example returns the JSON example of an operation's request body, or nil.
func Example(op *openapi3.Operation) []byte {
	if op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content["application/json"]
	if media == nil || media.Example == nil {
		return nil
	}
	raw, err := json.Marshal(media.Example)
	if err != nil {
		return nil
	}
	return raw
}
