package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A builder builds a document.
type builder struct {
	root   *yaml.Node
	groups []*yaml.Node    // groups of tags
	used   map[string]bool // failures that operations refer to
	taken  map[string]bool // used names of schemas, operations and areas
}

// An area holds the settings of a file, which apply to all its operations.
type area struct {
	errors  string // the format of the area's errors
	servers string
	ids     *yaml.Node
}

// note records that the given names are in use.
func (b *builder) note(names []string) {
	for _, name := range names {
		b.taken[name] = true
	}
}

// namesIn returns the names of the schemas, operations and areas in a source.
func namesIn(src *yaml.Node) (all []string) {
	if tags := get(src, "tags"); tags != nil {
		for _, tag := range tags.Content {
			all = append(all, areaOf(value(tag, "name")))
		}
	}
	eachMember(get(src, "schemas"), func(name string, _ *yaml.Node) { all = append(all, name) })
	eachMember(get(src, "paths"), func(_ string, item *yaml.Node) {
		eachMember(item, func(_ string, op *yaml.Node) { all = append(all, value(op, "operationId")) })
	})
	return all
}

// areaOf returns the name under which an area is recorded as in use. It is in lower case, like the
// URL of the area's page.
func areaOf(name string) string { return "area " + strings.ToLower(name) }

// add adds the operations and schemas of an area to the document.
func (b *builder) add(src *yaml.Node) (err error) {
	a := area{errors: value(src, "errors"), servers: value(src, "servers"), ids: get(src, "ids")}
	tags := get(b.root, "tags")
	if tag := get(src, "tags"); tag != nil {
		tags.Style = 0
		tags.Content = append(tags.Content, tag.Content...)
		b.group(value(src, "group"), tag)
	}

	eachMember(get(src, "paths"), func(path string, item *yaml.Node) {
		eachMember(item, func(method string, op *yaml.Node) {
			if e := b.expand(a, path, op); e != nil && err == nil {
				err = fmt.Errorf("%s %s: %w", method, path, e)
			}
		})
		if servers := a.serverList(); servers != nil {
			put(item, "servers", servers)
		}
		b.put("paths", path, item)
	})

	schemas := sub(sub(b.root, "components"), "schemas")
	eachMember(get(src, "schemas"), func(name string, schema *yaml.Node) {
		if get(schemas, name) != nil && err == nil {
			err = fmt.Errorf("there is a schema %s already", name)
		}
		put(schemas, name, schema)
	})

	return err
}

func (b *builder) put(section, key string, v *yaml.Node) {
	m := get(b.root, section)
	m.Style = 0
	put(m, key, v)
}

// group adds tags to a group in the navigation. It creates the group if necessary.
func (b *builder) group(name string, tags *yaml.Node) {
	i := slices.IndexFunc(b.groups, func(g *yaml.Node) bool { return value(g, "name") == name })
	if i < 0 {
		b.groups = append(b.groups, mapping("name", name, "tags", &yaml.Node{Kind: yaml.SequenceNode}))
		i = len(b.groups) - 1
	}
	into := get(b.groups[i], "tags")
	for _, tag := range tags.Content {
		into.Content = append(into.Content, textNode(value(tag, "name")))
	}
}

// value returns the value of the scalar member named key, or "".
func value(m *yaml.Node, key string) string {
	if v := get(m, key); v != nil {
		return v.Value
	}
	return ""
}

// serverList returns the servers of an area, or nil if it uses the document's servers.
func (a area) serverList() *yaml.Node {
	switch a.servers {
	case "laml":
		return list(mapping("url", publicURL+"/api/laml/2010-04-01"), mapping("url", publicURL+"/2010-04-01"))
	case "auth":
		return list(mapping("url", authURL))
	}
	return nil
}

// anyScope lists all scopes of the fabric.
var anyScope = texts("Voice", "Messaging", "Fax", "Video")

// expand replaces the shortcuts in an operation with OpenAPI.
func (b *builder) expand(a area, path string, op *yaml.Node) error {
	ids := a.ids
	if own := take(op, "ids"); own != nil {
		ids = own
	}

	who, scopes := words(take(op, "who")), take(op, "scopes")
	if slices.Contains(who, "basic") || slices.Contains(who, "service") || scopes != nil {
		if scopes == nil {
			scopes = plain(anyScope)
		}
		put(op, "x-scopes", scopes)
	}
	if also := take(op, "also"); also != nil {
		put(op, "x-also-scopes", also)
	}

	// An empty requirement ({}) allows requests without credentials.
	security := &yaml.Node{Kind: yaml.SequenceNode}
	for _, name := range who {
		if name == "none" {
			security.Content = append(security.Content, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle})
			continue
		}
		m := mapping(name, list())
		m.Style = yaml.FlowStyle
		security.Content = append(security.Content, m)
	}

	if len(who) == 0 {
		security.Style = yaml.FlowStyle
	}

	put(op, "security", security)
	if err := addParameters(path, op, ids); err != nil {
		return err
	}

	body := addBody(op)
	responses := take(op, "responses")
	eachMember(responses, func(_ string, r *yaml.Node) { expandResponse(r) })
	b.addFailures(a, op, responses, traits{
		guarded: len(who) > 0 && !slices.Contains(who, "none"),
		body:    body,
		fills:   strings.Contains(path, "{"),
		asks:    asks(op),
		extra:   words(take(op, "fails")),
	})

	put(op, "responses", responses)
	return nil
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// addParameters adds the parameters in the path, and those for pagination.
func addParameters(path string, op, ids *yaml.Node) error {
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for _, found := range inPath.FindAllStringSubmatch(path, -1) {
		name := found[1]
		about := value(ids, name)
		if about == "" {
			return fmt.Errorf("the path parameter {%s} is not described", name)
		}
		all.Content = append(all.Content,
			mapping("name", name, "in", "path", "required", yes(), "description", about, "schema",
				mapping("type", "string")))
	}

	if own := take(op, "parameters"); own != nil {
		all.Content = append(all.Content, own.Content...)
	}

	if take(op, "pages") != nil {
		all.Content = append(all.Content, ref("parameters", "page_size"), ref("parameters", "page_number"),
			ref("parameters", "page_token"))
	}

	if len(all.Content) > 0 {
		put(op, "parameters", all)
	}
	return nil
}

// asks reports whether an operation has parameters in the query.
func asks(op *yaml.Node) bool {
	params := get(op, "parameters")
	return params != nil && slices.ContainsFunc(params.Content, func(p *yaml.Node) bool {
		return get(p, "$ref") != nil || value(p, "in") == "query"
	})
}

// addBody adds the requestBody to an operation, and reports whether the operation has one.
func addBody(op *yaml.Node) bool {
	content, required := mapping(), yes()
	if takes := take(op, "takes"); takes != nil {
		media := mapping("schema", ref("schemas", value(takes, "schema")))
		if example := get(takes, "example"); example != nil {
			put(media, "example", example)
		}
		if get(takes, "optional") != nil {
			required.Value = "false"
		}
		put(content, "application/json", media)
		if get(takes, "form") != nil {
			put(content, "application/x-www-form-urlencoded",
				mapping("schema", ref("schemas", value(takes, "schema"))))
			put(content, "multipart/form-data", mapping("schema", ref("schemas", value(takes, "schema"))))
		}
	}

	if form := take(op, "form"); form != nil {
		properties := mapping()
		eachMember(form, func(name string, about *yaml.Node) {
			put(properties, name, mapping("type", "string", "description", about.Value))
		})
		schema := mapping("type", "object", "properties", properties)
		if required := take(op, "required"); required != nil {
			put(schema, "required", required)
		}
		media := mapping("schema", schema)
		if example := take(op, "example"); example != nil {
			put(media, "example", example)
		}
		put(content, "application/x-www-form-urlencoded", media)
	}

	if take(op, "uploads") != nil {
		binary := mapping("type", "string", "format", "binary")
		put(content, "audio/*", mapping("schema", binary))
		put(content, "application/octet-stream", mapping("schema", plain(binary)))
		form := mapping("type", "object", "properties", mapping("file", plain(binary)))
		put(content, "multipart/form-data", mapping("schema", form))
	}

	if len(content.Content) == 0 {
		return false
	}

	put(op, "requestBody", mapping("required", required, "content", content))
	return true
}

// expandResponse replaces the shortcuts in a response with OpenAPI.
func expandResponse(r *yaml.Node) {
	r.Style = 0
	if gives := take(r, "gives"); gives != nil {
		putJSON(r, ref("schemas", gives.Value))
	}
	if lists := take(r, "lists"); lists != nil {
		items := mapping("type", "array", "items", ref("schemas", lists.Value))
		properties := mapping("data", items, "links", ref("schemas", "Links"))
		putJSON(r, mapping("type", "object", "required", texts("data", "links"), "properties", properties))
	}
}

// putJSON sets the content of a response to JSON with the given schema.
func putJSON(r, schema *yaml.Node) {
	put(r, "content", mapping("application/json", mapping("schema", schema)))
}
