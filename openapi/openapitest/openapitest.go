// Package openapitest checks responses against the OpenAPI document, for tests. It reports statuses
// and bodies that are not documented, and required headers that are missing. Either the code or the
// document is then wrong.
//
// It is stricter than the document: objects may have only the members that the document describes,
// unless the document explicitly allows others.
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

// A Document is an OpenAPI document to check responses against. It is safe for concurrent use.
type Document struct {
	*openapi3.T
	paths    []path
	compiler *jsonschema.Compiler
	mu       sync.Mutex                    // guards compiler and compiled
	compiled map[string]*jsonschema.Schema // by JSON Pointer
}

// Ours returns selvage's document with the built-in kinds. It does not validate the document,
// because validation takes longer than loading; a test of package openapi validates it.
var Ours = sync.OnceValue(func() *Document {
	d, err := New(openapi.Config{})
	if err != nil {
		panic(err) // cannot happen: tests of package openapi build the document
	}
	return d
})

// New builds a document and loads it.
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

// Load loads a document.
func Load(text []byte) (*Document, error) {
	t, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	d := &Document{T: t, compiled: make(map[string]*jsonschema.Schema)}
	d.findPaths()
	if err := d.prepare(); err != nil {
		return nil, err
	}
	return d, nil
}

// Valid returns an error if the document, or an example in it, is not valid.
func (d *Document) Valid() error {
	return d.T.Validate(context.Background(), openapi3.IsOpenAPI31OrLater())
}

// location is the document's URL for the schema compiler.
const location = "openapi:///document.json"

// prepare sets up the schema compiler. Schemas are compiled when they are needed.
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

// closeObjects makes schemas reject members that are not described.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, hasProperties := v["properties"].(map[string]any)
		_, isExplicit := v["additionalProperties"]
		if v["type"] == "object" && hasProperties && !isExplicit {
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

// schema returns the compiled schema at a JSON Pointer.
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

// Check returns an error if a response differs from the document. It does not check paths that are
// not in the document, such as pages.
func (d *Document) Check(method, target string, status int, header http.Header, body []byte) error {
	found, ok := d.find(target)
	if !ok || method == http.MethodOptions {
		return nil
	}

	documented := method // the document does not describe HEAD
	if method == http.MethodHead {
		documented = http.MethodGet
	}

	op := found.item.GetOperation(documented)
	switch {
	case status == http.StatusMethodNotAllowed:
		return nil
	case op == nil && (status == http.StatusUnauthorized || status == http.StatusNotFound):
		return nil // treated like any unknown path
	case op == nil:
		return fmt.Errorf("%s %s answered %d, but the document has no such operation for %s",
			method, target, status, found.name)
	}

	response := op.Responses.Status(status)
	if response == nil {
		return fmt.Errorf("%s (%s) answered %d, which is not documented: %.300s",
			op.OperationID, target, status, body)
	}
	if err := checkHeaders(response.Value, header); err != nil {
		return fmt.Errorf("%s (%s) answered %d: %w", op.OperationID, target, status, err)
	}
	if method == http.MethodHead {
		return nil
	}

	pointer := pointerTo(found.name, documented, status, response.Ref)
	if err := d.checkBody(pointer, response.Value, header, body); err != nil {
		return fmt.Errorf("%s (%s) answered %d with a body that is not documented: %w: %.600s",
			op.OperationID, target, status, err, body)
	}
	return nil
}

// pointerTo returns the JSON Pointer to a response of an operation. If ref is not "", it is the
// reference to the response.
func pointerTo(path, method string, status int, ref string) string {
	if ref != "" {
		return strings.TrimPrefix(ref, "#")
	}
	return fmt.Sprintf("/paths/%s/%s/responses/%d", escape(path), strings.ToLower(method), status)
}

// escape escapes a key for a JSON Pointer in the fragment of a URL.
func escape(key string) string { return pointerEscapes.Replace(key) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B", " ", "%20")

// checkHeaders returns an error if a required header is missing.
func checkHeaders(r *openapi3.Response, header http.Header) error {
	for name, h := range r.Headers {
		if h.Value.Required && header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	return nil
}

// checkBody checks a body against the schema for its media type.
func (d *Document) checkBody(pointer string, r *openapi3.Response, header http.Header, body []byte) error {
	if len(r.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the response must have no body")
		}
		return nil
	}

	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	media := r.Content[kind]
	if media == nil {
		return fmt.Errorf("the media type %q is not documented", kind)
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
