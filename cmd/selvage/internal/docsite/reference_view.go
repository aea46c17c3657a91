package docsite

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/templates"
)

// view converts a document for the templates.
func view(doc *openapi.Document) (groups []templates.DocsGroup) {
	for _, g := range doc.Groups() {
		group := templates.DocsGroup{Name: g.Name}
		for _, tag := range g.Tags {
			area := templates.DocsArea{Name: tag.Name, URL: Prefix + slug(tag.Name), Text: rich(tag.Description)}
			for _, op := range tag.Operations {
				area.Operations = append(area.Operations, viewOperation(op))
			}
			group.Areas = append(group.Areas, area)
		}
		groups = append(groups, group)
	}
	return groups
}

// slug converts a name to the last segment of a path.
func slug(name string) string {
	dashed := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	return strings.Trim(dashed, "-")
}

// viewOperation converts an operation for the templates. It has separate tables for path, query and
// header parameters. Its samples are the request and the successful JSON responses.
func viewOperation(op openapi.Operation) templates.DocsOperation {
	paths := pathsOf(op)
	v := templates.DocsOperation{
		ID:         op.ID,
		Method:     op.Method,
		Path:       paths[0],
		OtherPaths: paths[1:],
		Summary:    op.Summary,
		Text:       rich(op.Description),
		Access:     accessOf(op),
		Samples:    []templates.DocsSample{{Title: "Request", Text: curl(op)}},
	}

	tables := []struct{ in, title string }{
		{"path", "Path"},
		{"query", "Query"},
		{"header", "Headers"},
	}
	for _, table := range tables {
		var members []templates.DocsMember
		for _, p := range op.Parameters {
			if p.In == table.in {
				p.Schema.Description = p.Description
				members = append(members, member(p.Name, p.Required, p.Schema))
			}
		}
		if len(members) > 0 {
			v.Parameters = append(v.Parameters, templates.DocsParameters{Title: table.title, Members: members})
		}
	}

	v.Bodies = bodies(op.Bodies)
	for _, r := range op.Responses {
		shown := templates.DocsResponse{
			Status: r.Status,
			Class:  class(r.Status),
			Text:   inline(r.Description),
		}
		for _, b := range r.Bodies {
			if shown.Members == nil && !r.Shared {
				shown.Members = membersOf(b.Schema)
				shown.Schema = b.Schema.Name
			}
			if shown.Class == "good" && strings.HasSuffix(b.Type, "json") {
				title := r.Status + " " + statusText(r.Status)
				v.Samples = append(v.Samples, templates.DocsSample{Title: title, Text: indent(b.Example)})
			}
		}
		v.Responses = append(v.Responses, shown)
	}
	return v
}

// pathsOf returns the paths of an operation, one for each server that provides it.
func pathsOf(op openapi.Operation) (all []string) {
	for _, server := range op.Servers {
		prefix := ""
		if u, err := url.Parse(server); err == nil {
			prefix = strings.TrimSuffix(u.Path, "/")
		}
		all = append(all, prefix+op.Path)
	}
	return all
}

// statusText returns the text of a status that successful responses with JSON have.
func statusText(status string) string {
	switch status {
	case "200":
		return http.StatusText(http.StatusOK)
	case "201":
		return http.StatusText(http.StatusCreated)
	}
	return ""
}

// class returns the CSS class of a status.
func class(status string) string {
	if strings.HasPrefix(status, "2") {
		return "good"
	}
	return "other"
}

// schemeNames maps security schemes to their names in prose.
var schemeNames = map[string]string{
	"basic":      "project and API key",
	"service":    "service's token",
	"sat":        "SAT",
	"guest":      "guest token",
	"invite":     "invite",
	"login":      "token of a login",
	"client":     "OAuth client",
	"registrar":  "initial access token",
	"registered": "registration access token",
}

// accessOf describes the credentials and scopes that an operation accepts.
func accessOf(op openapi.Operation) template.HTML {
	var who []string
	anybody := len(op.Who) == 0
	for _, name := range op.Who {
		if name == "none" {
			anybody = true
			continue
		}
		who = append(who, "<strong>"+template.HTMLEscapeString(schemeNames[name])+"</strong>")
	}

	text := "Takes a " + joinOr(who) + "."
	switch {
	case anybody && len(who) > 0:
		text = "Takes no credentials, or a " + joinOr(who) + "."
	case anybody:
		text = "Takes no credentials."
	}

	switch len(op.Scopes) {
	case 0:
	case 1:
		needed := slices.Concat(op.Scopes, op.Also)
		text += " It needs the scope " + strings.Join(needed, " and the scope ") + "."
	default:
		text += " A key or service needs one of the scopes " + strings.Join(op.Scopes, ", ") + "."
	}

	articles := strings.NewReplacer(
		"a <strong>invite", "an <strong>invite",
		"a <strong>OAuth", "an <strong>OAuth",
	)
	return template.HTML(articles.Replace(text))
}

// joinOr joins words as "a, b or c".
func joinOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// bodies converts the variants of a body. Variants with the first one's schema are merged with it.
func bodies(all []openapi.Body) (views []templates.DocsBody) {
	for i, b := range all {
		if i > 0 && b.Schema.Name != "" && b.Schema.Name == all[0].Schema.Name {
			views[0].MediaType += ", " + b.Type
			continue
		}
		about := "The bytes of the file."
		if strings.HasPrefix(b.Type, "multipart/") {
			about = ""
		}
		views = append(views, templates.DocsBody{
			MediaType: b.Type,
			About:     about,
			Members:   membersOf(b.Schema),
		})
	}
	return views
}

// membersOf converts the members of an object, or of the objects in an array.
func membersOf(s openapi.Schema) (all []templates.DocsMember) {
	for _, p := range s.Properties {
		all = append(all, member(p.Name, p.Required, p.Schema))
	}
	return all
}

// member converts a member of an object, or a parameter.
func member(name string, required bool, s openapi.Schema) templates.DocsMember {
	m := templates.DocsMember{
		Name:     name,
		Type:     s.Type,
		Required: required,
		Limits:   strings.Join(s.Limits, "; "),
		Members:  membersOf(s),
	}
	if s.Description != "" {
		m.Text = rich(s.Description)
	}
	return m
}

// indent formats JSON on several lines.
func indent(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}
