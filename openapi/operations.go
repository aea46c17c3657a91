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

// add adds the operations and schemas of an area to the document. It returns the first error.
func (b *builder) add(src *yaml.Node) error {
	var firstErr error
	fail := func(err error) {
		if firstErr == nil {
			firstErr = err
		}
	}

	a := area{errors: value(src, "errors"), servers: value(src, "servers"), ids: get(src, "ids")}
	if added := get(src, "tags"); added != nil {
		tags := get(b.root, "tags")
		tags.Style = 0
		tags.Content = append(tags.Content, added.Content...)
		b.group(value(src, "group"), added)
	}

	eachMember(get(src, "paths"), func(path string, item *yaml.Node) {
		eachMember(item, func(method string, op *yaml.Node) {
			if err := b.expand(a, path, op); err != nil {
				fail(fmt.Errorf("%s %s: %w", method, path, err))
			}
		})
		if servers := a.serverList(); servers != nil {
			put(item, "servers", servers)
		}
		b.put("paths", path, item)
	})

	schemas := sub(sub(b.root, "components"), "schemas")
	eachMember(get(src, "schemas"), func(name string, schema *yaml.Node) {
		if get(schemas, name) != nil {
			fail(fmt.Errorf("there is already a schema %s", name))
		}
		put(schemas, name, schema)
	})
	return firstErr
}

// put sets a member of a section of the document.
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
	if scopes == nil && (slices.Contains(who, "basic") || slices.Contains(who, "service")) {
		scopes = plain(anyScope)
	}
	if scopes != nil {
		put(op, "x-scopes", scopes)
	}
	if also := take(op, "also"); also != nil {
		put(op, "x-also-scopes", also)
	}
	put(op, "security", securityOf(who))
	if err := addParameters(path, op, ids); err != nil {
		return err
	}

	body := addBody(op)
	responses := take(op, "responses")
	eachMember(responses, func(_ string, r *yaml.Node) { expandResponse(r) })
	b.addFailures(a, op, responses, traits{
		guarded:        len(who) > 0 && !slices.Contains(who, "none"),
		body:           body,
		hasPathParams:  strings.Contains(path, "{"),
		hasQueryParams: hasQuery(op),
		extra:          words(take(op, "fails")),
	})

	put(op, "responses", responses)
	return nil
}

// securityOf returns the security requirements of an operation that accepts these credentials.
func securityOf(who []string) *yaml.Node {
	security := &yaml.Node{Kind: yaml.SequenceNode}
	if len(who) == 0 {
		security.Style = yaml.FlowStyle
	}
	for _, name := range who {
		requirement := mapping()
		if name != "none" { // an empty requirement allows requests without credentials
			put(requirement, name, list())
		}
		requirement.Style = yaml.FlowStyle
		security.Content = append(security.Content, requirement)
	}
	return security
}

// pathParameter matches a parameter in a path.
var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// addParameters adds the parameters in the path, the operation's own parameters, and those for pagination.
func addParameters(path string, op, ids *yaml.Node) error {
	parameters := &yaml.Node{Kind: yaml.SequenceNode}
	add := func(nodes ...*yaml.Node) { parameters.Content = append(parameters.Content, nodes...) }
	for _, match := range pathParameter.FindAllStringSubmatch(path, -1) {
		name := match[1]
		about := value(ids, name)
		if about == "" {
			return fmt.Errorf("the path parameter {%s} is not described", name)
		}
		add(mapping(
			"name", name,
			"in", "path",
			"required", yes(),
			"description", about,
			"schema", mapping("type", "string"),
		))
	}

	if own := take(op, "parameters"); own != nil {
		add(own.Content...)
	}
	if take(op, "pages") != nil {
		add(
			ref("parameters", "page_size"),
			ref("parameters", "page_number"),
			ref("parameters", "page_token"),
		)
	}
	if len(parameters.Content) > 0 {
		put(op, "parameters", parameters)
	}
	return nil
}

// hasQuery reports whether an operation has parameters in the query.
func hasQuery(op *yaml.Node) bool {
	params := get(op, "parameters")
	return params != nil && slices.ContainsFunc(params.Content, func(p *yaml.Node) bool {
		return get(p, "$ref") != nil || value(p, "in") == "query"
	})
}

// addBody adds the requestBody to an operation, and reports whether the operation has one.
func addBody(op *yaml.Node) bool {
	content, required := mapping(), yes()
	if takes := take(op, "takes"); takes != nil {
		addJSON(content, takes)
		if get(takes, "optional") != nil {
			required.Value = "false"
		}
	}
	if form := take(op, "form"); form != nil {
		addForm(content, op, form)
	}
	if take(op, "uploads") != nil {
		addUpload(content)
	}

	if len(content.Content) == 0 {
		return false
	}
	put(op, "requestBody", mapping("required", required, "content", content))
	return true
}

// addJSON adds JSON to the content of a request, and forms with the same members if takes says so.
func addJSON(content, takes *yaml.Node) {
	withSchema := func() *yaml.Node { return mapping("schema", ref("schemas", value(takes, "schema"))) }
	media := withSchema()
	if example := get(takes, "example"); example != nil {
		put(media, "example", example)
	}
	put(content, "application/json", media)
	if get(takes, "form") != nil {
		put(content, "application/x-www-form-urlencoded", withSchema())
		put(content, "multipart/form-data", withSchema())
	}
}

// addForm adds a form to the content of a request. form describes its fields.
func addForm(content, op, form *yaml.Node) {
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

// addUpload adds a file to the content of a request.
func addUpload(content *yaml.Node) {
	binary := mapping("type", "string", "format", "binary")
	put(content, "audio/*", mapping("schema", binary))
	put(content, "application/octet-stream", mapping("schema", plain(binary)))
	form := mapping("type", "object", "properties", mapping("file", plain(binary)))
	put(content, "multipart/form-data", mapping("schema", form))
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
