package openapi

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric/kinds"
)

var kindTemplate = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{"quote": strconv.Quote, "under": (*kinds.Kind).Under}
	return template.Must(template.New("kind.yaml.tmpl").Funcs(functions).ParseFS(sources, "source/kind.yaml.tmpl"))
})

// A kindView is the data for the template of a kind.
type kindView struct {
	*kinds.Kind
	Name            string // name of its schema, such as "VideoRoom"
	One, Many, A    string // such as "conference room", "conference rooms", "a"
	Plural          string // such as "Conference rooms"
	About           string
	ChannelList     string
	Creatable       bool
	Updates         []method
	AddressPaths    []string
	Notes           map[string]string // by path, appended to titles that would otherwise be the same
	Example, Change string            // JSON
}

// callable lists the types of resources whose calls the server handles without a script.
var callable = []string{"video_room", "sip_gateway", "sip_endpoint", "ring_group"}

// A method is a way to update a resource.
type method struct{ Method, Verb, Note, About string }

// addKinds adds the operations and schemas of all kinds and of the parts of resources.
func (b *builder) addKinds(all *kinds.Catalog) error {
	var each []*yaml.Node
	b.note(slices.Concat(schemasOf("SipAddress"), schemasOf("SipCredential")))
	for _, k := range all.All() {
		name, err := b.addKind(k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Type, err)
		}
		each = append(each, ref("schemas", name))
	}

	each = append(each, ref("schemas", "Subscriber"))
	schemas := get(get(b.root, "components"), "schemas")
	put(schemas, "Resource", mapping("description", "A resource of any kind; `type` names the kind.",
		"oneOf", &yaml.Node{Kind: yaml.SequenceNode, Content: each}))
	b.addPart(all.Part("sip_address"), "SipAddress", []*yaml.Node{
		described("id", "string", "uuid", "The id of the SIP address."), described("type", "", "", "sip_address"),
		described("resource_id", "string", "uuid", "The resource that handles the calls."),
		described("display_name", "string", "", "The display name."),
		described("context", "", "", "public"), described("uri", "string", "", "The SIP URI to dial."),
		described("created_at", "string", "date-time", ""), described("updated_at", "string", "date-time", ""),
	})

	b.addPart(all.Part("sip_credential"), "SipCredential",
		[]*yaml.Node{described("id", "string", "uuid", "The id of the credentials.")})
	return nil
}

// described returns a member with its schema. about is its description. If typ is "", the member is a
// constant, and about is its value.
func described(name, typ, format, about string) *yaml.Node {
	if typ == "" {
		return mapping(name, mapping("const", about))
	}

	m := mapping("type", typ)
	if format != "" {
		put(m, "format", textNode(format))
	}
	if about != "" {
		put(m, "description", textNode(about))
	}
	if example := exampleIDs[name]; example != "" {
		put(m, "examples", texts(example))
	}
	if format == "date-time" {
		put(m, "examples", texts("2026-11-21T08:00:00Z"))
	}

	return mapping(name, m)
}

// addKind adds a kind. It returns the name of the schema that represents the kind in a list of all
// resources.
func (b *builder) addKind(k *kinds.Kind) (name string, err error) {
	v, src, err := b.describe(k)
	if err != nil {
		return "", err
	}
	if err := b.add(src); err != nil {
		return "", err
	}

	id := described("id", "string", "uuid", "The id of the "+v.One+".")
	typ := described("type", "", "", k.Type)
	own := b.fields(k, v.Name, []*yaml.Node{id})
	if k.Flat {
		own = b.fields(k, v.Name, []*yaml.Node{typ, id})
	}

	schemas := get(get(b.root, "components"), "schemas")
	name = v.Name
	if k.Flat {
		put(schemas, v.Name, own)
		own, name = ref("schemas", v.Name), v.Name+"Resource"
	}

	envelope := []*yaml.Node{id, described("project_id", "string", "uuid", "The id of its project."),
		described("display_name", "string", "", "The display name.")}
	if k.EnvelopeName {
		envelope = append(envelope, described("name", "string", "", "The same name."))
	}

	envelope = append(envelope, typ, described("created_at", "string", "date-time", ""),
		described("updated_at", "string", "date-time", ""), mapping(k.Key, own))
	put(schemas, name, object(envelope, nil, nil))
	return name, nil
}

// describe executes the template for a kind. For the schemas, the operations and the area, it
// chooses names that are not in use.
func (b *builder) describe(k *kinds.Kind) (kindView, *yaml.Node, error) {
	v := view(k)
	if b.taken[areaOf(v.Plural)] {
		v.Plural += " (" + k.Path + ")"
	}

	for ; ; v.Name += "Kind" {
		var out bytes.Buffer
		if err := kindTemplate().Execute(&out, v); err != nil {
			return v, nil, err
		}
		src, err := parse(out.Bytes())
		if err != nil {
			return v, nil, err
		}
		names := slices.Concat(namesIn(src), schemasOf(v.Name), []string{v.Name + "Resource"})
		if !slices.ContainsFunc(names, func(name string) bool { return b.taken[name] }) {
			b.note(names)
			return v, src, nil
		}
	}
}

// schemasOf returns the names of the schemas that are generated from fields.
func schemasOf(name string) []string {
	return []string{name, name + "CreateRequest", name + "UpdateRequest"}
}

// addPart adds the schemas for a part of resources.
func (b *builder) addPart(k *kinds.Kind, name string, before []*yaml.Node) {
	put(get(get(b.root, "components"), "schemas"), name, b.fields(k, name, before))
}

// fields adds the schemas for the bodies that create and update a resource. It returns the schema
// of the resource itself, which has the members in before, followed by the kind's members.
func (b *builder) fields(k *kinds.Kind, name string, before []*yaml.Node) *yaml.Node {
	var create, change, shown []*yaml.Node
	var required, always []string
	var either *yaml.Node
	for _, f := range k.Fields {
		schema, err := parse(f.Schema)
		if err != nil {
			schema = mapping() // cannot happen: the catalog has parsed it
		}
		if example := exampleOf(k, f); example != nil && get(schema, "examples") == nil {
			put(schema, "examples", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{example}})
		}

		member := mapping(f.Name, unstyled(schema))
		if !f.ReadOnly {
			create, change = append(create, member), append(change, member)
		}

		alias := aliasOf(k, f.Name)
		if alias != "" && !f.ReadOnly {
			other := mapping(alias, mapping("type", f.Type, "description", "Another name of `"+f.Name+"`."))
			create, change = append(create, other), append(change, other)
		}

		if f.Required && alias == "" {
			required = append(required, f.Name)
		} else if f.Required {
			either = list(mapping("required", texts(f.Name)), mapping("required", texts(alias)))
		}

		if !f.WriteOnly {
			shown = append(shown, member)
			if f.Required || f.Nullable || f.Default != nil {
				always = append(always, f.Name)
			}
		}
	}

	schemas := get(get(b.root, "components"), "schemas")
	if k.Create == "" {
		request := object(nil, create, required)
		if either != nil {
			put(request, "anyOf", either)
		}
		put(schemas, name+"CreateRequest", request)
	}

	put(schemas, name+"UpdateRequest", object(nil, change, nil))
	return object(before, shown, always)
}

// aliasOf returns the alias of a member, or "".
func aliasOf(k *kinds.Kind, name string) string {
	for alias, of := range k.Alias {
		if of == name {
			return alias
		}
	}
	return ""
}

// object returns the schema of an object. The members in before are always present.
func object(before, members []*yaml.Node, required []string) *yaml.Node {
	properties, always := mapping(), []string(nil)
	for _, m := range before {
		always = append(always, m.Content[0].Value)
	}
	for _, m := range append(before, members...) {
		put(properties, m.Content[0].Value, plain(m.Content[1]))
	}
	o := mapping("type", "object")
	always = append(always, required...)
	if len(always) > 0 {
		put(o, "required", texts(always...))
	}
	put(o, "properties", properties)
	return o
}

// view returns the data for the template of a kind.
func view(k *kinds.Kind) kindView {
	v := kindView{
		Kind:        k,
		Creatable:   k.Create == "",
		About:       k.Description,
		ChannelList: strings.Join(k.Channels, ", "),
	}
	v.One = lowerFirst(k.Title)
	v.Many, v.Plural, v.A = v.One+"s", k.Title+"s", article(v.One)
	v.Name = camel(k.Type)
	if !v.Creatable {
		v.About += " The operator creates them with `selvage resource create " + k.Path + " FILE.json`."
	}
	if !slices.Contains(callable, k.Type) {
		v.About += " Calls follow the webhook that the operator has configured; this server does not run them itself."
	}

	kept := "Omitted members stay unchanged."
	if k.Versions {
		kept += " A change must name the next `document_version`, so that concurrent changes are not overwritten."
	}

	other := map[string]string{"PUT": "PATCH", "PATCH": "PUT"}[k.Update]
	v.Updates = []method{
		{strings.ToLower(k.Update), "update", "", kept},
		{strings.ToLower(other), strings.ToLower(other), " (" + other + ")", "The same as `" + k.Update + "`."},
	}

	v.AddressPaths = []string{k.Under()}
	if k.Under() != k.Path {
		v.AddressPaths, v.Notes = append(v.AddressPaths, k.Path), map[string]string{k.Path: " (other path)"}
	}

	v.Example, v.Change = exampleBodies(k)
	return v
}

// camel converts video_room to VideoRoom.
func camel(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// lowerFirst converts the first letter to lower case, except in names such as SIP, AI and
// FreeSWITCH.
func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 1 && !slices.ContainsFunc([]rune(strings.Fields(s)[0])[1:], unicode.IsUpper) &&
		!slices.Contains(brands, strings.Fields(s)[0]) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

// brands are names that keep their capital letter.
var brands = []string{"Dialogflow"}

// article returns the indefinite article for a word, or for an abbreviation that is pronounced
// letter by letter.
func article(s string) string {
	word, _, _ := strings.Cut(s, " ")
	spelled := word == strings.ToUpper(word) && !strings.ContainsAny(word, "AEIOU")
	if spelled && strings.ContainsAny(word[:1], "FHLMNRSX") || strings.ContainsAny(word[:1], "AEIOUaeiou") {
		return "an"
	}
	return "a"
}
