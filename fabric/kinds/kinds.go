// Package kinds defines the kinds of resources. Each kind is one JSON Schema. Routes, validation,
// JSON documents and forms are derived from the schema.
//
// Each file in this folder is a JSON Schema (2020-12) of the members that callers send and read.
// The members are in the order in which pages display them. Our additions to the schema are in the
// x-kind member, see [Meta]. Operators can define kinds of their own, with files of the same format in
// another directory.
package kinds

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed *.json parts/*.json
var builtin embed.FS

// A Kind is one kind of resource.
type Kind struct {
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Fields      []Field `json:"-"` // the kind's own members, in order

	// Examples holds a complete resource, as clients send it, and an update of it.
	Examples []json.RawMessage `json:"examples,omitempty"`

	Meta `json:"x-kind"`

	// schemas returns the compiled schemas of the fields by name. It compiles them on first use.
	// Compiling all kinds would dominate the startup time, and most runs need at most one kind.
	schemas func() (map[string]*jsonschema.Schema, error)
}

// Meta holds what JSON Schema cannot express about a kind.
type Meta struct {
	Type     string            `json:"type"`               // the type in documents
	Path     string            `json:"path"`               // the path below /resources/
	Key      string            `json:"key"`                // the member that holds the kind's own fields
	Update   string            `json:"update"`             // the method for updates: PUT or PATCH
	Name     []string          `json:"name"`               // members for the display name, in order
	Alias    map[string]string `json:"alias,omitempty"`    // accepted alternative names of members
	Address  string            `json:"address"`            // the type of its addresses: app, room or call
	Channels []string          `json:"channels"`           // channels of its addresses: audio, messaging, video
	Context  string            `json:"context,omitempty"`  // context of its first address
	Create   string            `json:"create,omitempty"`   // "command": only operators create it
	Versions bool              `json:"versions,omitempty"` // its resources have deployed versions

	// AddressName is the member that names the resource's first address; "" means the display name.
	AddressName string `json:"addressName,omitempty"`
	// AddressesUnder replaces Path in the routes for the resource's addresses and versions; ""
	// means Path.
	AddressesUnder string `json:"addressesUnder,omitempty"`
	// Flat puts the kind's own members at the top level of the documents that the routes under Path
	// return.
	Flat bool `json:"flat,omitempty"`
	// Form describes the form that creates or changes a resource.
	Form FormHints `json:"form,omitzero"`
	// EnvelopeName means that documents have a member name in addition to display_name.
	EnvelopeName bool `json:"envelopeName,omitempty"`
}

// FormHints describe a form to people who do not know the names of the members.
type FormHints struct {
	First    []string          `json:"first,omitempty"`    // the members shown first, in order
	Labels   map[string]string `json:"labels,omitempty"`   // labels by member
	Hints    map[string]string `json:"hints,omitempty"`    // sentences that replace the descriptions
	Examples map[string]string `json:"examples,omitempty"` // examples in empty fields
}

// A Field is one of the kind's own members.
type Field struct {
	Name        string
	Description string
	Type        string          // string, integer, boolean, object or array
	Format      string          // uri, uuid, date-time, or ""
	Enum        []string        // the allowed values; nil means any
	Default     json.RawMessage // the value if the member is not sent; nil means none
	Required    bool            // the member must be sent to create a resource
	Nullable    bool            // null means no value
	ReadOnly    bool            // only the server sets the member
	WriteOnly   bool            // a secret: accepted, never shown
	Schema      json.RawMessage // the schema as written in the file

	// These fields describe the form's input, and help people to fill it in. Values are validated
	// against the schema, not against these fields.
	Mixed            bool    // the schema allows several types besides null
	Minimum, Maximum string  // bounds of an integer; "" means none
	MaxLength        int     // maximum length of a string; 0 means none
	Members          []Field // the members of an object, in order, if the schema lists them
	Items            *Field  // the items of an array, if the schema describes them
}

// A Catalog is a set of kinds. Create one with [Load]. A Catalog is safe for concurrent
// use.
type Catalog struct {
	all    []*Kind
	byPath map[string]*Kind
	byType map[string]*Kind
	parts  map[string]*Kind // parts by type
}

// Builtin returns the kinds built into selvage.
var Builtin = sync.OnceValue(func() *Catalog {
	c, err := Load("")
	if err != nil {
		panic(err) // the built-in kinds are embedded and tested
	}
	return c
})

// Load returns the built-in kinds, and the kinds that the *.json files in dir define. If dir is ""
// or does not exist, Load returns only the built-in kinds.
func Load(dir string) (*Catalog, error) {
	c := &Catalog{
		byPath: make(map[string]*Kind),
		byType: make(map[string]*Kind),
		parts:  make(map[string]*Kind),
	}
	if err := errors.Join(c.read(builtin, false), c.readParts()); err != nil {
		return nil, err
	}

	if dir == "" {
		return c, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err := c.read(os.DirFS(dir), true); err != nil {
		return nil, fmt.Errorf("in %s: %w", dir, err)
	}

	return c, nil
}

// read adds the kinds in a folder. If checked is set, read immediately compiles each schema and
// checks its defaults. Load does this for operators' kinds. Tests check the built-in kinds.
func (c *Catalog) read(files fs.FS, checked bool) error {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return fmt.Errorf("listing kinds: %w", err)
	}

	for _, name := range names {
		k, err := readKind(files, name)
		if err != nil {
			return err
		}
		if checked {
			if err := k.checkSchema(); err != nil {
				return fmt.Errorf("reading kind %s: %w", name, err)
			}
		}
		if c.byPath[k.Path] != nil || c.byType[k.Type] != nil || taken[k.Path] {
			return fmt.Errorf("reading kind %s: the kind %s already exists", name, k.Type)
		}

		c.byPath[k.Path] = k
		c.byType[k.Type] = k
		c.all = append(c.all, k)
	}

	slices.SortFunc(c.all, func(a, b *Kind) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// readParts reads the schemas of SIP addresses and credentials. These belong to resources, but are
// not resources.
func (c *Catalog) readParts() error {
	names, err := fs.Glob(builtin, "parts/*.json")
	if err != nil {
		return err
	}
	for _, name := range names {
		k, err := readKind(builtin, name)
		if err != nil {
			return err
		}
		c.parts[k.Type] = k
	}
	return nil
}

// readKind reads the file that defines a kind.
func readKind(files fs.FS, name string) (*Kind, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading kind: %w", err)
	}
	k, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading kind %s: %w", name, err)
	}
	return k, nil
}

// Part returns the schema of a part of resources: "sip_address" or "sip_credential".
func (c *Catalog) Part(typ string) *Kind { return c.parts[typ] }

// taken lists the paths below /resources/ that other routes use.
var taken = map[string]bool{"subscribers": true, "addresses": true, "call_flow": true, "conference_room": true}

// All returns the kinds, sorted by path.
func (c *Catalog) All() []*Kind { return c.all }

// ByPath returns the kind with a path such as "ai_agents", or nil.
func (c *Catalog) ByPath(path string) *Kind { return c.byPath[path] }

// ByType returns the kind with a type such as "ai_agent", or nil.
func (c *Catalog) ByType(typ string) *Kind { return c.byType[typ] }

// word matches valid types, paths and keys.
var word = regexp.MustCompile(`^[a-z][a-z0-9_]{0,49}$`)

// check validates the x-kind part of the schema. It returns all errors joined.
func (k *Kind) check() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}

	for name, v := range map[string]string{"type": k.Type, "path": k.Path, "key": k.Key} {
		need(word.MatchString(v), "x-kind.%s must be lower-case letters, digits and _; it is %q", name, v)
	}

	need(k.Update == "PUT" || k.Update == "PATCH", "x-kind.update must be PUT or PATCH")
	need(slices.Contains([]string{"app", "room", "call"}, k.Address), "x-kind.address must be app, room or call")
	need(k.Context == "" || k.Context == "public" || k.Context == "private",
		"x-kind.context must be public or private")
	need(k.Create == "" || k.Create == "command", "x-kind.create must be command, or be omitted")

	for _, ch := range k.Channels {
		need(slices.Contains([]string{"audio", "messaging", "video"}, ch),
			"each of x-kind.channels must be audio, messaging or video; one is %q", ch)
	}

	// The members named in x-kind must be properties of the schema.
	need(len(k.Name) > 0, "x-kind.name must name the member for the display name")
	for _, name := range k.Name {
		need(k.Field(name) != nil, "x-kind.name has %q, which is not a property", name)
	}

	need(k.AddressName == "" || k.Field(k.AddressName) != nil,
		"x-kind.addressName is %q, which is not a property", k.AddressName)
	for alias, name := range k.Alias {
		need(k.Field(alias) == nil && k.Field(name) != nil,
			"x-kind.alias %q must be an alias of a property", alias)
	}

	return errors.Join(errs...)
}

// Field returns the kind's own member with this name, or nil.
func (k *Kind) Field(name string) *Field {
	for i := range k.Fields {
		if k.Fields[i].Name == name {
			return &k.Fields[i]
		}
	}
	return nil
}

// Under returns the path segment of the routes for addresses and versions.
func (k *Kind) Under() string {
	if k.AddressesUnder != "" {
		return k.AddressesUnder
	}
	return k.Path
}

// url returns the URL that identifies the kind's schema to the compiler.
func (k *Kind) url() string { return "kind:" + path.Clean("/"+k.Path) }
