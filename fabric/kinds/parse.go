package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// parse parses and validates the file that defines a kind.
func parse(text []byte) (*Kind, error) {
	k := &Kind{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, err
	}
	var err error
	if k.Fields, err = fields(text); err != nil {
		return nil, err
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	k.schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) { return k.compile(text) })
	return k, nil
}

// compile returns the compiled schema of each field, by name.
func (k *Kind) compile(text []byte) (map[string]*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	c.RegisterFormat(&jsonschema.Format{Name: "uri", Validate: webURL})
	c.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: instant})
	c.AssertFormat()
	if err := c.AddResource(k.url(), doc); err != nil {
		return nil, err
	}

	whole, err := c.Compile(k.url())
	if err != nil {
		return nil, err
	}

	return whole.Properties, nil
}

// checkSchema compiles the schema and validates the defaults.
func (k *Kind) checkSchema() error {
	if _, err := k.schemas(); err != nil {
		return err
	}
	for _, f := range k.Fields {
		if f.Default == nil {
			continue
		}
		if err := k.checkField(f, f.Default); err != nil {
			return fmt.Errorf("the default of %s: %w", f.Name, err)
		}
	}
	return nil
}

// A nowhere is a schema loader that rejects all references, so that nothing is fetched.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("a kind cannot refer to %s", url)
}

// webURL validates a URL to which telephony can send requests. It must be http or https, without
// credentials.
func webURL(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("is not an http or https URL")
	}
	return nil
}

// instant validates a time. JSON Schema also permits forms that package time cannot read, such as a
// leap second or a "t" in lower case. A room with such a time could not be entered.
func instant(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	var at time.Time
	return at.UnmarshalText([]byte(text))
}

// A property contains the keywords of a property's schema that this package uses.
type property struct {
	Type        types           `json:"type"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Enum        []any           `json:"enum"`
	Default     json.RawMessage `json:"default"`
	ReadOnly    bool            `json:"readOnly"`
	WriteOnly   bool            `json:"writeOnly"`
	Minimum     json.Number     `json:"minimum"`
	Maximum     json.Number     `json:"maximum"`
	MaxLength   int             `json:"maxLength"`
	Items       json.RawMessage `json:"items"`
	Properties  json.RawMessage `json:"properties"`
}

// types is the type keyword, which is one type or several types.
type types []string

func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// fields parses the properties of a schema, in their order in the file.
func fields(text []byte) (all []Field, err error) {
	var doc struct {
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}

	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}

	// Decode token by token, because a map would lose the order of the properties.
	dec := json.NewDecoder(bytes.NewReader(doc.Properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the kind has no properties")
	}

	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}

		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		var p property
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}

		f, err := p.field(fmt.Sprint(t))
		if err != nil {
			return nil, err
		}

		f.Required, f.Schema = slices.Contains(doc.Required, f.Name), raw
		f.inside(p, raw)
		all = append(all, f)
	}

	for _, name := range doc.Required {
		if !slices.ContainsFunc(all, func(f Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("%s is required but not a property", name)
		}
	}

	return all, nil
}

func (p property) field(name string) (Field, error) {
	f := Field{
		Name:        name,
		Description: p.Description,
		Format:      p.Format,
		Default:     p.Default,
		ReadOnly:    p.ReadOnly,
		WriteOnly:   p.WriteOnly,
		Nullable:    slices.Contains(p.Type, "null"),
	}

	for _, t := range p.Type {
		if t != "null" {
			f.Type = t
		}
	}

	if !slices.Contains([]string{"string", "integer", "boolean", "object", "array"}, f.Type) {
		return f, fmt.Errorf("%s has an unknown type: %s", name, strings.Join(p.Type, ", "))
	}

	for _, v := range p.Enum {
		if v != nil {
			f.Enum = append(f.Enum, fmt.Sprint(v))
		}
	}

	f.Minimum, f.Maximum, f.MaxLength = string(p.Minimum), string(p.Maximum), p.MaxLength
	f.Mixed = len(p.Type) > 2 || len(p.Type) == 2 && !f.Nullable
	return f, nil
}

// inside sets the members of an object or the items of an array, for forms. If the schema of a
// member or item has an unsupported type, inside leaves Members or Items unset, and forms edit the
// value as JSON.
func (f *Field) inside(p property, raw json.RawMessage) {
	if p.Properties != nil {
		f.Members, _ = fields(raw)
	}
	var items property
	if p.Items == nil || json.Unmarshal(p.Items, &items) != nil {
		return
	}
	if item, err := items.field(f.Name); err == nil {
		item.Schema = p.Items
		item.inside(items, p.Items)
		f.Items = &item
	}
}
