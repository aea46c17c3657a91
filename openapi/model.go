package openapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Group is a heading in the navigation, with its tags.
type Group struct {
	Name string
	Tags []Tag
}

// A Tag is an area of the document, with its operations.
type Tag struct {
	Name        string
	Description string
	Operations  []Operation
}

// An Operation is an operation of the API: a method on a path.
type Operation struct {
	ID, Method, Path     string
	Server               string // the first element of Servers
	Servers              []string
	Summary, Description string
	Who                  []string // accepted security schemes; "none" means no credentials
	Scopes               []string // one of these scopes is needed
	Also                 []string // all of these scopes are needed in addition
	Parameters           []Parameter
	Bodies               []Body
	Responses            []Response
}

// A Parameter is a parameter in the path, query or headers.
type Parameter struct {
	Name, In, Description string
	Required              bool
	Example               string // "" means there is none
	Schema                Schema
}

// A Body is one variant of a body: a media type, a schema, and an example in JSON.
type Body struct {
	Type    string
	Schema  Schema
	Example string
}

// A Response is the response with a given status.
type Response struct {
	Status, Description string
	Shared              bool // a failure that many operations share
	Bodies              []Body
}

// Description returns the introduction of the document.
func (d *Document) Description() string { return value(get(d.root, "info"), "description") }

// Groups returns all operations in navigation order.
func (d *Document) Groups() []Group {
	byTag := make(map[string][]Operation)
	eachMember(get(d.root, "paths"), func(path string, item *yaml.Node) {
		servers := serversOf(item)
		if servers == nil {
			servers = serversOf(d.root)
		}
		eachMember(item, func(method string, n *yaml.Node) {
			if method != "servers" {
				tag := words(get(n, "tags"))[0]
				byTag[tag] = append(byTag[tag], d.operation(strings.ToUpper(method), path, servers, n))
			}
		})
	})

	about := make(map[string]string)
	for _, tag := range get(d.root, "tags").Content {
		about[value(tag, "name")] = value(tag, "description")
	}

	var all []Group
	for _, g := range get(d.root, "x-tagGroups").Content {
		group := Group{Name: value(g, "name")}
		for _, name := range words(get(g, "tags")) {
			group.Tags = append(group.Tags, Tag{
				Name:        name,
				Description: about[name],
				Operations:  byTag[name],
			})
		}
		all = append(all, group)
	}

	return all
}

func serversOf(n *yaml.Node) (all []string) {
	if servers := get(n, "servers"); servers != nil {
		for _, s := range servers.Content {
			all = append(all, value(s, "url"))
		}
	}
	return all
}

// operation converts an operation in the document, and resolves its references.
func (d *Document) operation(method, path string, servers []string, n *yaml.Node) Operation {
	op := Operation{
		ID:          value(n, "operationId"),
		Method:      method,
		Path:        path,
		Server:      servers[0],
		Servers:     servers,
		Summary:     value(n, "summary"),
		Description: value(n, "description"),
		Scopes:      words(get(n, "x-scopes")),
		Also:        words(get(n, "x-also-scopes")),
	}

	for _, s := range get(n, "security").Content {
		if len(s.Content) == 0 {
			op.Who = append(op.Who, "none")
		} else {
			op.Who = append(op.Who, s.Content[0].Value)
		}
	}

	if params := get(n, "parameters"); params != nil {
		for _, p := range params.Content {
			p = d.resolve(p)
			op.Parameters = append(op.Parameters, Parameter{
				Name:        value(p, "name"),
				In:          value(p, "in"),
				Description: value(p, "description"),
				Required:    value(p, "required") == "true",
				Example:     value(p, "example"),
				Schema:      d.schema(get(p, "schema"), 0),
			})
		}
	}

	op.Bodies = d.bodies(get(n, "requestBody"))
	eachMember(get(n, "responses"), func(status string, r *yaml.Node) {
		found := d.resolve(r)
		op.Responses = append(op.Responses,
			Response{
				Status:      status,
				Description: value(found, "description"),
				Shared:      found != r,
				Bodies:      d.bodies(found),
			})
	})

	slices.SortStableFunc(op.Responses, func(a, b Response) int { return strings.Compare(a.Status, b.Status) })
	return op
}

// bodies returns the variants of a body.
func (d *Document) bodies(n *yaml.Node) (all []Body) {
	eachMember(get(n, "content"), func(kind string, media *yaml.Node) {
		b := Body{Type: kind, Schema: d.schema(get(media, "schema"), 0)}
		if example := get(media, "example"); example != nil {
			b.Example = jsonText(example)
		} else {
			b.Example = jsonText(d.example(get(media, "schema"), 0))
		}
		all = append(all, b)
	})
	return all
}

// resolve follows references. If a referenced node is missing, it returns nil. After eight
// references in a row, it returns an empty mapping.
func (d *Document) resolve(n *yaml.Node) *yaml.Node {
	for range 8 {
		target := value(n, "$ref")
		if target == "" {
			return n
		}
		at := d.root
		for step := range strings.SplitSeq(strings.TrimPrefix(target, "#/"), "/") {
			at = get(at, step)
		}
		n = at
	}
	return mapping()
}
