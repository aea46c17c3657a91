// Package kinds says what kinds of resources there are: one JSON Schema a kind,
// from which routes, validation, documents and forms are made.
//
// A file of this folder is a schema of the members that a caller sends and
// reads, in the order in which they are shown (JSON Schema 2020-12). What is ours
// in it stands under x-kind, see [Kind]. An operator's own kinds are files of the
// same form in a directory.
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
	Fields      []Field `json:"-"` // the members of its own, in order

	// Examples are a whole one as it is sent, and a change of it.
	Examples []json.RawMessage `json:"examples,omitempty"`

	Meta `json:"x-kind"`

	// schemas returns what checks each field, by its name. Compiling takes longer than
	// all else at the start, and most runs need none or one.
	schemas func() (map[string]*jsonschema.Schema, error)
}

// A Meta is what a schema cannot say.
type Meta struct {
	Type     string            `json:"type"`               // in documents: "video_room"
	Path     string            `json:"path"`               // below /resources/: "conference_rooms"
	Key      string            `json:"key"`                // the member that holds its own members: "conference_room"
	Update   string            `json:"update"`             // the method that clients change it by, PUT or PATCH; both are taken
	Name     []string          `json:"name"`               // the members to take its display name of; the first that is set
	Alias    map[string]string `json:"alias,omitempty"`    // other names under which a member is taken
	Address  string            `json:"address"`            // the type of its addresses: app, room or call
	Channels []string          `json:"channels"`           // of its addresses: audio, messaging, video
	Context  string            `json:"context,omitempty"`  // of its first address; "" means public
	Create   string            `json:"create,omitempty"`   // "command": it is made by the operator, not over HTTP
	Versions bool              `json:"versions,omitempty"` // it has versions, which are deployed

	// AddressName is the member that its first address is named by; "" means the name
	// to show.
	AddressName string `json:"addressName,omitempty"`
	// AddressesUnder is the segment that stands for Path where clients ask for its
	// addresses and versions; "" means Path.
	AddressesUnder string `json:"addressesUnder,omitempty"`
	// Flat documents have its own members at the top, where it is asked for by Path.
	Flat bool `json:"flat,omitempty"`
	// EnvelopeName documents have a name beside their display_name.
	EnvelopeName bool `json:"envelopeName,omitempty"`
}

// A Field is a member of a resource's own.
type Field struct {
	Name        string
	Description string
	Type        string          // string, integer, boolean, object or array
	Format      string          // uri, uuid, date-time, or ""
	Enum        []string        // the values it may have; nil means any
	Default     json.RawMessage // of a member that was not sent; nil means none
	Required    bool            // of who creates one
	Nullable    bool            // null stands for no value
	ReadOnly    bool            // ours to set
	WriteOnly   bool            // a secret: taken, never shown
	Schema      json.RawMessage // as it stands in the file

	// What a form makes of it. The schema checks; these only help who fills it in.
	Mixed            bool    // it may be of several types beside null
	Minimum, Maximum string  // of an integer; "" means none
	MaxLength        int     // of a string; 0 means none
	Members          []Field // of an object that names them, in order
	Items            *Field  // of an array that says what is in it
}

// A Catalog is a set of kinds. Make one with [Load]; it may be read at once from
// any number of goroutines.
type Catalog struct {
	all    []*Kind
	byPath map[string]*Kind
	byType map[string]*Kind
	parts  map[string]*Kind // by type
}

// Builtin returns the kinds of selvage.
var Builtin = sync.OnceValue(func() *Catalog {
	c, err := Load("")
	if err != nil {
		panic(err) // they are in the binary, and tested
	}
	return c
})

// Load returns the kinds of selvage and those of the *.json files in a directory;
// "" is no directory, and one that is not there has none.
func Load(dir string) (*Catalog, error) {
	c := &Catalog{byPath: make(map[string]*Kind), byType: make(map[string]*Kind), parts: make(map[string]*Kind)}
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

// read takes the kinds of a folder. Those that are not ours are tried at once.
func (c *Catalog) read(files fs.FS, try bool) error {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return fmt.Errorf("listing kinds: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading kind: %w", err)
		}
		k, err := parse(text)
		if err == nil && try {
			err = k.try()
		}
		if err != nil {
			return fmt.Errorf("reading kind %s: %w", name, err)
		}
		if c.byPath[k.Path] != nil || c.byType[k.Type] != nil || taken[k.Path] {
			return fmt.Errorf("reading kind %s: there is a kind %s already", name, k.Type)
		}
		c.byPath[k.Path], c.byType[k.Type] = k, k
		c.all = append(c.all, k)
	}
	slices.SortFunc(c.all, func(a, b *Kind) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// readParts takes the schemas of what belongs to resources and is none itself.
func (c *Catalog) readParts() error {
	names, err := fs.Glob(builtin, "parts/*.json")
	for _, name := range names {
		text, err := builtin.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading kind: %w", err)
		}
		k, err := parse(text)
		if err != nil {
			return fmt.Errorf("reading kind %s: %w", name, err)
		}
		c.parts[k.Type] = k
	}
	return err
}

// Part returns the schema of what belongs to resources and is none itself:
// "sip_address" or "sip_credential".
func (c *Catalog) Part(typ string) *Kind { return c.parts[typ] }

// taken are paths below /resources/ that are no kind's of this package.
var taken = map[string]bool{"subscribers": true, "addresses": true, "call_flow": true, "conference_room": true}

// All lists the kinds by their paths.
func (c *Catalog) All() []*Kind { return c.all }

// ByPath returns the kind of a path such as "ai_agents", or nil.
func (c *Catalog) ByPath(path string) *Kind { return c.byPath[path] }

// ByType returns the kind of a type such as "ai_agent", or nil.
func (c *Catalog) ByType(typ string) *Kind { return c.byType[typ] }

// word is what types, paths and keys are.
var word = regexp.MustCompile(`^[a-z][a-z0-9_]{0,49}$`)

// check reports what is wrong with the part of a kind that is ours.
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
	need(k.Create == "" || k.Create == "command", "x-kind.create must be command, or not be there")
	for _, ch := range k.Channels {
		need(slices.Contains([]string{"audio", "messaging", "video"}, ch),
			"x-kind.channels must be of audio, messaging and video; one is %q", ch)
	}
	need(len(k.Name) > 0, "x-kind.name must say which member is the name to show")
	for _, name := range k.Name {
		need(k.Field(name) != nil, "x-kind.name has %q, which is no property", name)
	}
	need(k.AddressName == "" || k.Field(k.AddressName) != nil,
		"x-kind.addressName is %q, which is no property", k.AddressName)
	for alias, name := range k.Alias {
		need(k.Field(alias) == nil && k.Field(name) != nil,
			"x-kind.alias %q must be another name of a property", alias)
	}
	return errors.Join(errs...)
}

// Field returns a member, or nil.
func (k *Kind) Field(name string) *Field {
	for i := range k.Fields {
		if k.Fields[i].Name == name {
			return &k.Fields[i]
		}
	}
	return nil
}

// Under returns the segment under which the addresses and versions are asked for.
func (k *Kind) Under() string {
	if k.AddressesUnder != "" {
		return k.AddressesUnder
	}
	return k.Path
}

// url names a kind's schema to the compiler.
func (k *Kind) url() string { return "kind:" + path.Clean("/"+k.Path) }
