package openapitest

import (
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation returns the operation that serves a request, or nil.
func (d *Document) Operation(method, target string) *openapi3.Operation {
	p, ok := d.find(target)
	if !ok {
		return nil
	}
	return p.item.GetOperation(method)
}

// Accepted returns the names of the credentials that an operation accepts. The name "none" stands
// for requests without credentials.
func Accepted(op *openapi3.Operation) (names []string) {
	if op.Security == nil {
		return nil
	}
	for _, requirement := range *op.Security {
		if len(requirement) == 0 {
			names = append(names, "none")
		}
		for name := range requirement {
			names = append(names, name)
		}
	}
	return names
}

// MayUse reports whether a key or service with the given scopes may use an operation. It must have
// one of the operation's scopes, and all scopes that the operation needs in addition.
func MayUse(op *openapi3.Operation, scopes ...string) bool {
	has := func(s string) bool { return slices.Contains(scopes, s) }
	lacks := func(s string) bool { return !has(s) }
	return slices.ContainsFunc(extension(op, "x-scopes"), has) &&
		!slices.ContainsFunc(extension(op, "x-also-scopes"), lacks)
}

// extension returns the strings in an extension of op.
func extension(op *openapi3.Operation, name string) (all []string) {
	if text, err := json.Marshal(op.Extensions[name]); err == nil {
		_ = json.Unmarshal(text, &all) // leaves all empty if it is not a list of strings
	}
	return all
}
