package openapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// traits are the properties of an operation that determine its failures.
type traits struct {
	guarded bool     // needs credentials
	body    bool     // takes a body
	fills   bool     // has parameters in the path
	asks    bool     // has parameters in the query
	extra   []string // statuses that the operation lists itself
}

// A failure is an error response that many operations share.
type failure struct{ status, name, about string }

var failures = []failure{
	{"400", "BadRequest", "The request cannot be read."},
	{"401", "Unauthorized", "There are no credentials, or they are wrong, expired, revoked, or without the scope."},
	{"403", "Forbidden", "It is not allowed to who asks."},
	{"404", "NotFound", "There is no such thing in the project."},
	{"406", "NotAcceptable", "It cannot be given in this format; the answer says why."},
	{"409", "Conflict", "It stands against what is there already."},
	{"413", "TooLarge", "The body is too large."},
	{"415", "Unsupported", "The body is of a type that is not read, or compressed."},
	{"422", "Invalid", "Something is wrong with the values; the answer tells all of it."},
	{"429", "Busy", "Too much at a time; come back."},
	{"500", "Internal", "A fault of the server, which is in its log."},
	{"503", "Unavailable", "Something behind the server is away; come back."},
}

// A shape is the format of a protocol's errors: a prefix for their names, and their schema.
type shape struct{ prefix, schema string }

var shapes = map[string]shape{
	"fabric": {"Fabric", "Error"},
	"laml":   {"Laml", "LamlError"},
	"relay":  {"Relay", "Error"},
	"oauth":  {"OAuth", "OAuthError"},
}

// statuses returns the failures of an operation in a file with this shape of errors.
func (t traits) statuses(errors string) []string {
	all := t.extra
	add := func(is bool, statuses ...string) {
		if is {
			all = append(all, statuses...)
		}
	}

	switch errors {
	case "fabric", "relay":
		add(t.guarded, "401", "429")
		add(t.fills, "404")
		add(t.asks, "422")
		add(t.body, "400", "413", "415", "422")
		add(true, "500", "503")
	case "laml":
		add(t.guarded, "401")
		add(t.asks || t.body, "400")
		add(true, "404", "429", "500", "503")
	case "oauth":
		add(t.body || t.guarded, "429", "500", "503")
	}

	return all
}

// addFailures adds the failures of an operation to its responses.
func (b *builder) addFailures(a area, op, responses *yaml.Node, t traits) {
	statuses := t.statuses(a.errors)
	for _, f := range failures {
		if slices.Contains(statuses, f.status) && get(responses, f.status) == nil {
			name := shapes[a.errors].prefix + f.name
			b.used[name] = true
			put(responses, f.status, ref("responses", name))
		}
	}
}

// finish adds the failures that operations refer to, and the groups of the navigation.
func (b *builder) finish() {
	into := sub(get(b.root, "components"), "responses")
	for _, errors := range []string{"fabric", "laml", "relay", "oauth"} {
		for _, f := range failures {
			if name := shapes[errors].prefix + f.name; b.used[name] {
				put(into, name, f.response(errors))
			}
		}
	}
	put(b.root, "x-tagGroups", &yaml.Node{Kind: yaml.SequenceNode, Content: b.groups})
}

// response returns the response for a failure in a shape of errors.
func (f failure) response(errors string) *yaml.Node {
	schema := shapes[errors].schema
	switch {
	case errors == "fabric" && f.status == "422":
		schema = "ValidationErrors"
	case errors == "relay" && f.status == "422":
		schema = "RelayErrors"
	}

	r := mapping("description", f.about)
	headers := mapping()
	switch {
	case f.status == "401":
		put(headers, "WWW-Authenticate", ref("headers", "WWWAuthenticate"))
	case strings.Contains("429 503", f.status):
		put(headers, "Retry-After", ref("headers", "RetryAfter"))
	}

	if len(headers.Content) > 0 {
		put(r, "headers", headers)
	}

	put(r, "content", mapping("application/json", mapping("schema", ref("schemas", schema))))
	return r
}
